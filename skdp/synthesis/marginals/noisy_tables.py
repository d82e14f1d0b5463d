"""What is measured of a table, and with which part of the budget: by rules in public numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from skdp._checks.units import Units
from skdp._checks.weights import exactly_summable
from skdp._typing import Doubles
from skdp.accounting import DpEvent, GaussianDpEvent, compose
from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.mechanisms.streams import SecretStream
from skdp.mechanisms.unit_norms import average_units
from skdp.synthesis.marginals import pair_selection as selection
from skdp.synthesis.marginals.column_levels import Exclusion
from skdp.synthesis.marginals.contingency_tables import ColumnSet, Interaction, TableSums, noise_per_cell, weighted
from skdp.synthesis.marginals.denoising import TargetTables, targets_of
from skdp.synthesis.marginals.product_mixture import Mixture, fit_mixture

MOST_COLUMNS, MOST_LEVELS = 20, 50
"""A table with more columns, or more levels in one, has its pairs selected unless all are asked for."""

SHARES = (0.2, 0.8)
"""Shares of mu**2 of columns and pairs."""
SHARES_WITH_LABEL = (0.2, 0.65, 0.15)
"""Of columns, pairs, and pairs with the label."""
SHARES_WITH_TRIPLES = (0.15, 0.4, 0.15, 0.3)
"""Share of the budget that pairs of columns within each class get."""
LARGEST_NOISE_OF_TRIPLES = 0.25
"""Total variation of the noise of a triple, before it is shrunk, up to which triples are worth their share."""

ROUND_SHARES = (0.2, 0.05)
"""Shares of mu**2 of columns, and of the scores of all rounds; the rest goes to the selected pairs."""


Noisy = dict[ColumnSet, Interaction]
TableFitter = Callable[[Noisy], tuple[TargetTables, Mixture]]


class LevelRows(NamedTuple):
    """Rows as levels of columns, with weights in [0, 1] that can be summed exactly, or None for no weights. Private.

    Rows of units have weights.
    """

    codes: Sequence[NDArray[np.int32]]
    shares: Doubles | None = None
    units: Units | None = None

    @property
    def has_weights(self) -> bool:
        """Whether there are weights, which is public; their sum, which is not, is released with the first tables."""
        return self.shares is not None


class ModelTerms(NamedTuple):
    """What is public of the table and of the model that is fitted.

    Attributes
    ----------
    levels : sequence of int
        Number of levels of each column; that of the classes comes last if there are labels.
    has_label, with_triples : bool
        Whether there are labels, and whether pairs of columns are measured within each class.
    exclusions : sequence of Exclusion
    n_components : int
    n_iter : int or None
        None for the rule.
    """

    levels: Sequence[int]
    has_label: bool
    with_triples: bool
    exclusions: Sequence[Exclusion]
    n_components: int
    n_iter: int | None


class Measurement(NamedTuple):
    """How a table is measured; all of it is public.

    Attributes
    ----------
    noise_multiplier : float
        Of one release with the whole budget.
    n_rounds : int
        Rounds of selection; 0 if all pairs are measured.
    adjacency : str
    n : float
        Public number of rows, or a noisy sum of their weights.

    Notes
    -----
    **Guarantees.** `measure` makes the releases whose event `event_of` states for its noise multiplier. All that it
    returns is a function of these releases and of public numbers.

    Proof. Without rounds it is one Gaussian release of `TableSums.vector`. With rounds there is one of the columns
    first; each round has one of the scores, and one of the interactions of the pairs that are selected. Which function
    of the rows a release is of depends on earlier releases alone, its sensitivity holds for every such function
    (`TableSums`, `selection.sensitivity`), and its noise multiplier is fixed beforehand. So the event is their
    composition, whatever is selected. Mechanisms of shares that sum to one compose to one release of the whole
    multiplier, since the squares of mu add up (Dong, Roth & Su 2022, corollary 2).
    """

    noise_multiplier: float
    n_rounds: int
    adjacency: str
    n: float

    def _release(
        self, share: float, vector: Doubles, sensitivity: float, stream: SecretStream
    ) -> tuple[Doubles, float]:
        """Return a vector with the noise of a share of the budget, and the standard deviation of that noise."""
        mechanism = GaussianMechanism(self.noise_multiplier / math.sqrt(share), sensitivity)
        return mechanism.release(vector, stream), mechanism.standard_deviation

    def _interactions(
        self, share: float, sums: TableSums, rows: LevelRows, stream: SecretStream
    ) -> tuple[Noisy, float]:
        """Return what is released of the tables, relative to the sum of weights, and that sum."""
        if not sums.sets:
            return {}, self.n
        vector = sums.vector(rows.codes, rows.shares)
        noisy, deviation = self._release(share, vector, sums.sensitivity(self.adjacency), stream)
        # A row weighs 1 at most; of a unit that is clipped by its norm, of 1, a factor times its weight is.
        most = self.n / sums.weights[0] if self._clips_norms(rows) else self.n
        n = sums.total(noisy, most, deviation)
        return sums.interactions(noisy, n, deviation), n

    def _clips_norms(self, rows: LevelRows) -> bool:
        """Whether units are clipped by norms: of one release, where the norm bounds what a neighbour changes."""
        return rows.units is not None and not self.n_rounds and self.adjacency != "replace_one"

    def _clip_units(self, rows: LevelRows, sums: TableSums) -> LevelRows:
        """Return rows with weights by which a unit adds no more than a row may, to these tables or to whatever comes.

        Scores are sums of absolute values, and an exchanged unit may be far from the one before: units are averages of
        their rows there, with weights that add up to 1 at most.
        """
        if rows.units is None or rows.shares is None:
            return rows
        if self._clips_norms(rows):
            return rows._replace(shares=sums.clip_units(rows.units, rows.codes, rows.shares))
        return rows._replace(shares=exactly_summable(average_units(rows.units, rows.shares)))

    def measure(self, rows: LevelRows, terms: ModelTerms, stream: SecretStream) -> tuple[TargetTables, Mixture]:
        """Release, denoise and fit.

        Parameters
        ----------
        rows : LevelRows
            The label is the last column if there is one. Private.
        terms : ModelTerms
        stream : SecretStream

        Returns
        -------
        targets : TargetTables
        mixture : Mixture
        """
        levels, d = terms.levels, len(terms.levels)
        if self.n_rounds:
            first, share, name = (
                weighted(levels, [([(j,) for j in range(d)], 1.0)], rows.has_weights),
                ROUND_SHARES[0],
                "columns",
            )
        else:
            first, share, name = (
                all_tables(levels, terms.has_label, terms.with_triples, rows.has_weights),
                1.0,
                "tables",
            )
        rows = self._clip_units(rows, first)
        noisy, n = self._interactions(share, first, rows, stream.spawn(name))
        n_iter = iterations(n / self.noise_multiplier, terms.with_triples) if terms.n_iter is None else terms.n_iter
        rng = np.random.default_rng(stream.spawn("start of the mixture").words(4).tolist())

        def fitted(noisy: Noisy) -> tuple[TargetTables, Mixture]:
            targets = targets_of(terms.levels, noisy, terms.exclusions)
            return targets, fit_mixture(terms.levels, targets, terms.n_components, n_iter, rng)

        if self.n_rounds:
            return self._replace(n=n)._measure_selected(rows, terms, noisy, fitted, stream)
        return fitted(noisy)

    def _measure_selected(
        self, rows: LevelRows, terms: ModelTerms, noisy: Noisy, fitted: TableFitter, stream: SecretStream
    ) -> tuple[TargetTables, Mixture]:
        """Release scores of pairs and the selected pairs, round by round, after the columns."""
        levels, d = terms.levels, len(terms.levels)
        always: list[ColumnSet] = [(j, d - 1) for j in range(d - 1)] if terms.has_label else []
        open_pairs = selection.candidates(levels, always)
        of_tables = (1.0 - sum(ROUND_SHARES)) / self.n_rounds
        targets, mixture = targets_of(levels, noisy, terms.exclusions), None
        for t in range(self.n_rounds):
            expected = _expectation(self.n, targets, mixture)
            chosen = always if t == 0 else []
            if open_pairs:
                chosen = chosen + self._select(rows, open_pairs, levels, expected, stream.spawn("scores", t))
            sums = weighted(levels, [(chosen, 1.0)])
            noisy |= self._interactions(of_tables, sums, rows, stream.spawn("tables", t))[0]
            open_pairs = [pair for pair in open_pairs if pair not in noisy]
            targets, mixture = fitted(noisy)
        return targets, cast(Mixture, mixture)  # there is a round

    def _select(
        self,
        rows: LevelRows,
        open_pairs: list[ColumnSet],
        levels: Sequence[int],
        expected: selection.Expectation,
        stream: SecretStream,
    ) -> list[ColumnSet]:
        """Return the pairs of a round, by noisy scores."""
        exact = selection.scores(rows.codes, open_pairs, levels, expected, rows.shares)
        share = ROUND_SHARES[1] / self.n_rounds
        found, _ = self._release(share, exact, selection.sensitivity(len(open_pairs)), stream)
        deviation = self.noise_multiplier / math.sqrt((1.0 - sum(ROUND_SHARES)) / self.n_rounds)
        return selection.best_pairs(found, open_pairs, levels, expected, deviation)


def event_of(noise_multiplier: float, n_rounds: int) -> DpEvent:
    """Return the event of a measurement."""
    if not n_rounds:
        return GaussianDpEvent(noise_multiplier)
    shares = [ROUND_SHARES[0]]
    for _ in range(n_rounds):
        shares += [ROUND_SHARES[1] / n_rounds, (1.0 - sum(ROUND_SHARES)) / n_rounds]
    return compose([GaussianDpEvent(noise_multiplier / math.sqrt(share)) for share in shares])


def all_tables(levels: Sequence[int], has_label: bool, with_triples: bool, with_total: bool = False) -> TableSums:
    """Return the sums of all columns and pairs, and of all pairs with the label, the last column, if asked for."""
    d = len(levels)
    ones: list[ColumnSet] = [(j,) for j in range(d)]
    pairs: list[ColumnSet] = list(itertools.combinations(range(d), 2))
    if not has_label:
        return weighted(levels, list(zip([ones, pairs], SHARES, strict=True)), with_total)
    of_label = [pair for pair in pairs if pair[1] == d - 1]
    groups = [ones, [pair for pair in pairs if pair[1] < d - 1], of_label]
    if not with_triples:
        return weighted(levels, list(zip(groups, SHARES_WITH_LABEL, strict=True)), with_total)
    return weighted(levels, list(zip([*groups, triples_of(d)], SHARES_WITH_TRIPLES, strict=True)), with_total)


def triples_of(d: int) -> list[ColumnSet]:
    """Return all pairs of columns with the last one."""
    return [(i, j, d - 1) for i, j in itertools.combinations(range(d - 1), 2)]


def triples_are_worth_it(levels: Sequence[int], n: float, noise_multiplier: float) -> bool:
    """Return whether the noise of triples is small enough, by public numbers."""
    sets = [each for each in triples_of(len(levels)) if all(levels[j] > 1 for j in each)]
    if not sets:
        return False
    deviation = noise_multiplier / math.sqrt(SHARES_WITH_TRIPLES[-1])
    return noise_per_cell(levels, sets, n, deviation) <= LARGEST_NOISE_OF_TRIPLES


def iterations(n_mu: float, with_triples: bool = False) -> int:
    """Return the iterations of the fit: the less noise, the more can be learned before it is learned too.

    Triples hold more than pairs, and take half as many iterations again.
    """
    found = np.clip(400.0 * (n_mu / 8700.0) ** 0.75, 150, 2000)
    return int(1.5 * found if with_triples else found)


def _expectation(n: float, targets: TargetTables, mixture: Mixture | None) -> selection.Expectation:
    """Return the counts of a pair that are expected by the columns alone, or by a model."""
    columns = None if mixture is None else [mixture.column(j) for j in range(len(mixture.levels))]

    def expected(pair: ColumnSet) -> Doubles:
        i, j = pair
        if columns is None:
            return n * np.outer(targets.ones[i], targets.ones[j])
        return (n / len(columns[i])) * (columns[i].T @ columns[j])

    return expected


__all__ = [
    "MOST_COLUMNS",
    "MOST_LEVELS",
    "LevelRows",
    "Measurement",
    "ModelTerms",
    "all_tables",
    "event_of",
    "iterations",
    "triples_are_worth_it",
    "triples_of",
]
