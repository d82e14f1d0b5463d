"""Measured marginals and their fractions of the budget: by rules in public numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from skdp._checks.groups import Units
from skdp._checks.weights import exactly_summable
from skdp.accounting import DpEvent, GaussianDpEvent, compose
from skdp.mechanisms.bounded_sum import clip_groups
from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.mechanisms.streams import SecretStream
from skdp.synthesis.marginals.column_levels import CELLS_OF_A_BIN, Exclusion, exclusions_of
from skdp.synthesis.marginals.contingency_tables import ColumnSet, Interaction, TableSums, count, squared_norm, weighted
from skdp.synthesis.marginals.denoising import TargetTables, targets_of
from skdp.synthesis.marginals.product_mixture import MOST_TOGETHER, Mixture, fit_mixture

Expectation = Callable[[ColumnSet], np.ndarray]


def candidates(levels: Sequence[int], left_out: Sequence[ColumnSet]) -> list[ColumnSet]:
    """Return the pairs of columns that can be selected, by public numbers.

    Pairs with more than a million cells cannot: the noise would hide them for any number of rows that fits in memory.
    """
    gone = set(left_out)
    return [
        (i, j)
        for i, j in itertools.combinations(range(len(levels)), 2)
        if (i, j) not in gone and min(levels[i], levels[j]) > 1 and levels[i] * levels[j] <= 1_000_000
    ]


def sensitivity(n_sets: int) -> float:
    """Return the sensitivity of the scores to one row; half of it under ``replace_one``.

    Proof. A score is the sum over cells of ``|count - expected|``, and the expected counts do not depend on the row,
    given earlier releases. Adding or removing a row changes one count of each table by one, and so its score by at most
    one. Replacing a row changes two counts by one each, and the score by at most two, half of which is one again. Rows
    of weights in [0, 1] change counts by no more. All scores together change by at most the root of their number.
    """
    return math.sqrt(n_sets)


def scores(
    codes: Sequence[np.ndarray],
    pairs: Sequence[ColumnSet],
    levels: Sequence[int],
    expected: Expectation,
    shares: np.ndarray | None = None,
) -> np.ndarray:
    """Return the distance of the counts of each pair from the expected ones: the sum of the absolute differences.

    One table is in memory at a time.
    """
    return np.array([float(np.abs(count(codes, pair, levels, shares) - expected(pair)).sum()) for pair in pairs])


def best_pairs(
    noisy: np.ndarray, pairs: Sequence[ColumnSet], levels: Sequence[int], expected: Expectation, deviation: float
) -> list[ColumnSet]:
    """Return the pairs whose signal exceeds their noise, from noisy scores and public numbers.

    A score is reduced by its expectation for rows drawn from the expected table. If the k best pairs are measured
    together, each gains its score and loses the size of its noise, which grows with the root of k: the k of the largest
    total is used.

    Parameters
    ----------
    noisy : ndarray of shape (n_pairs,)
    pairs : sequence of (int, int)
    levels : sequence of int
    expected : callable
        Expected counts of a pair.
    deviation : float
        Standard deviation of the noise of tables that share a squared norm of one.
    """
    gains = noisy - np.array([_chance(expected(pair)) for pair in pairs])
    losses = np.array([_noise(levels, pair) for pair in pairs]) * deviation
    order = np.argsort(-gains / losses, kind="stable")
    norms = np.cumsum([squared_norm(levels, pairs[k]) for k in order])
    totals = np.cumsum(gains[order]) - np.sqrt(norms) * np.cumsum(losses[order])
    k = int(totals.argmax()) + 1 if len(totals) and totals.max() > 0 else 0
    return sorted(pairs[each] for each in order[:k])


def _noise(levels: Sequence[int], pair: ColumnSet) -> float:
    """Return the sum of the sizes of the noise of a pair's interaction, for noise of deviation one."""
    cells = math.prod(levels[j] for j in pair)
    return cells * math.sqrt(2.0 / math.pi * squared_norm(levels, pair))


def _chance(expected: np.ndarray) -> float:
    """Return about how far counts of rows drawn independently are from those expected, in the same sum."""
    rates = np.maximum(expected, 0.0)
    return float(np.minimum(np.sqrt(2.0 * rates / math.pi), 2.0 * rates).sum())


MOST_ESTIMATED = 50
"""Most levels of a column with privately estimated categories."""

SHARES = (0.2, 0.8)
"""Fractions of mu**2 for columns and pairs."""
SHARES_WITH_LABEL = (0.2, 0.65, 0.15)
"""For columns, pairs, and pairs with the label."""
SHARES_WITH_TRIPLES = (0.15, 0.4, 0.15, 0.3)
"""Fraction of the budget for pairs of columns within each class."""

SHAPE_SHARE = 0.02
"""Fraction of mu**2 of the first tables for the cells of numbers within bins, if they are measured."""

UNITS_PER_NOISE, LARGEST_REACH = 500.0, 3.0
"""Groups per standard deviation of noise from which a group may add more than a row, and the largest such multiple."""

WHOLE_SHARE, LARGEST_FRACTION = 0.01, 0.05
"""Fraction of mu**2 for the counts of integers in columns of other types, and the largest fraction of non-integers, and
of noise, in an integer column."""

ROUND_SHARES = (0.2, 0.05)
"""Fractions of mu**2 for columns, and for the scores of all rounds; the rest is for the selected pairs."""


Noisy = dict[ColumnSet, Interaction]


class LevelRows(NamedTuple):
    """Rows as levels of columns, with weights in [0, 1] that can be summed exactly, or None for no weights. Private.

    Whether there are weights is public; their sum is private, and is released with the first tables.

    Rows of units have weights.
    """

    codes: Sequence[np.ndarray]
    shares: np.ndarray | None = None
    units: Units | None = None


class ModelTerms(NamedTuple):
    """Public terms of the table and of the fitted model.

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
    with_shapes : bool
        Whether cells of numbers within bins are measured beside the tables.
    with_wholes : bool
        Whether whole numbers in columns of other types are counted beside the tables.
    """

    levels: Sequence[int]
    has_label: bool
    with_triples: bool
    exclusions: Sequence[Exclusion]
    n_components: int
    n_iter: int | None
    with_shapes: bool
    with_wholes: bool


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
        Public number of rows, or of groups, or a noisy sum of the weights of rows.
    reach : float
        Largest contribution of a group, in rows: `unit_reach`. 1 for rows.

    Notes
    -----
    **Guarantees.** `measure`, with `shapes` if its terms include them, makes the releases of the event of `event_of`
    for its noise multiplier. Its result is a function of these releases and of public numbers. A group changes each of
    them by at most `reach` times the sensitivity of one row, and the noise is `reach` times as large.

    Proof. Without rounds it is one Gaussian release of `TableSums.vector`; or that, and one each of the cells of
    `shapes` and of `wholes`, which are `TableSums.vector` too, of one table for each column, in one cell of which a row
    is. Their fractions of the budget sum to one, so that their privacy cost is that of one release of the whole
    multiplier. With rounds of pairs there is one of the columns first, whose fraction includes that of cells; each
    round has one of the scores, and one of the interactions of the selected pairs. The function that is released
    depends on earlier releases alone, its sensitivity holds for every such function (`TableSums`, `sensitivity`), and
    its noise multiplier is fixed beforehand. All sensitivities of rows are multiplied by `reach` in one place,
    `_add_noise`: the contribution of a group is clipped, for each release, to that many times the norm of one row, or
    is that many times an average of rows (`_shares`), and so are differences of two of them. So the event is their
    composition, for any selection. Mechanisms whose fractions sum to one compose to one release of the whole
    multiplier, since the squares of mu add up (Dong, Roth & Su 2022, corollary 2).
    """

    noise_multiplier: float
    n_rounds: int
    adjacency: str
    n: float
    reach: float = 1.0

    @property
    def noise_of_rows(self) -> float:
        """Standard deviation of the noise, in sensitivities of one row."""
        return self.noise_multiplier * self.reach

    def terms_of(self, model: Any, table: Any, levels: Sequence[int], has_label: bool) -> ModelTerms:
        """Return what is measured and fitted; "auto" is by public numbers. Of selected pairs there is no more.

        `model` has the parameters, and `table` is the `LevelTable`.
        """
        triples, n_components, columns = model.triples, model.n_components, table.form.columns
        if not isinstance(triples, bool):
            triples = not self.n_rounds and triples_are_worth_it(levels, self.n, self.noise_of_rows)
        triples = has_label and triples
        n_iter = None if model.max_iter is None else int(model.max_iter)
        n_components = (2 if triples else 1) * MOST_TOGETHER if n_components is None else int(n_components)
        shaped = shapes_are_worth_it([columns[j].n_listed for j in table.cells], self.n, self.noise_of_rows)
        noise = self.noise_of_rows * math.sqrt(len(table.fractions) / WHOLE_SHARE)
        with_wholes = 0.0 < noise <= LARGEST_FRACTION * self.n
        exclusions = exclusions_of(columns, table.schema.impossible)
        return ModelTerms(levels, has_label, triples, exclusions, n_components, n_iter, shaped, with_wholes)

    def _add_noise(
        self, share: float, vector: np.ndarray, sensitivity: float, stream: SecretStream
    ) -> tuple[np.ndarray, float]:
        """Return a vector with the noise of a share of the budget, and the standard deviation of that noise.

        `sensitivity` is that of one row.
        """
        mechanism = GaussianMechanism(self.noise_multiplier / math.sqrt(share), self.reach * sensitivity)
        return mechanism.release(vector, stream), mechanism.standard_deviation

    def _interactions(
        self, share: float, sums: TableSums, rows: LevelRows, stream: SecretStream
    ) -> tuple[Noisy, float]:
        """Return the released interactions, relative to the sum of weights, and that sum."""
        if not sums.sets:
            return {}, self.n
        vector = sums.vector(rows.codes, self._shares(rows, sums))
        noisy, deviation = self._add_noise(share, vector, sums.sensitivity(self.adjacency), stream)
        most = self.n  # as a row weighs 1 at most; or that sum, where it was released before
        if rows.units is not None and () in sums.sets:  # of a unit that is clipped by its norm a factor times it is
            most *= self.reach / (sums.weights[0] if self._clips_norms() else 1.0)
        n = sums.total(noisy, most, deviation)
        return sums.interactions(noisy, n, deviation), n

    def _shares(self, rows: LevelRows, sums: TableSums | None = None) -> np.ndarray | None:
        """Return weights of rows by which a group adds at most `reach` rows: to these tables, or to all else.

        Scores are sums of absolute values, and a replaced group can be far from the one before: groups are averages of
        their rows there, with weights that sum to at most `reach`.
        """
        if rows.units is None or rows.shares is None:
            return rows.shares
        if sums is not None and self._clips_norms():
            return sums.clip_units(rows.units, rows.codes, rows.shares, self.reach)
        return exactly_summable(clip_groups(rows.units, rows.shares, self.reach))

    def _clips_norms(self) -> bool:
        """Whether the tables of groups are clipped by norms: if these bound the change between neighbors."""
        return self.adjacency != "replace_one"

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
        levels, d, has_weights = terms.levels, len(terms.levels), rows.shares is not None
        of_shapes = SHAPE_SHARE * terms.with_shapes + WHOLE_SHARE * terms.with_wholes
        # First the columns alone, if pairs are selected, else all tables.
        if self.n_rounds:
            first, share = weighted(levels, [([(j,) for j in range(d)], 1.0)], has_weights), ROUND_SHARES[0]
        else:
            first, share = all_tables(levels, terms.has_label, terms.with_triples, has_weights), 1.0
        name = "columns" if self.n_rounds else "tables"
        noisy, n = self._interactions(share - of_shapes, first, rows, stream.spawn(name))
        n_iter = iterations(n / self.noise_of_rows, terms.with_triples) if terms.n_iter is None else terms.n_iter
        rng = np.random.default_rng(stream.spawn("start of the mixture").words(4).tolist())

        def fitted(noisy: Noisy) -> tuple[TargetTables, Mixture]:
            targets = targets_of(levels, noisy, terms.exclusions)
            return targets, fit_mixture(levels, targets, terms.n_components, n_iter, rng)

        if self.n_rounds:
            return self._replace(n=n)._measure_selected(rows, terms, noisy, fitted, stream)
        return fitted(noisy)

    def shapes(self, cells: LevelRows, n_cells: Sequence[int], stream: SecretStream) -> list[Interaction]:
        """Release the number of rows in each cell of some columns, beside a measurement with shapes.

        Parameters
        ----------
        cells : LevelRows
            The cell of each row in each column. Private.
        n_cells : sequence of int
            Number of cells of each column, 2 or more.
        stream : SecretStream

        Returns
        -------
        noisy : list of Interaction
            Counts relative to the number of rows, centered.
        """
        return self._columns(SHAPE_SHARE, cells, n_cells, stream.spawn("shapes"))

    def wholes(self, fractions: LevelRows, stream: SecretStream) -> list[bool]:
        """Release whether the numbers of some columns are integers, beside a measurement with a fraction for it.

        A column has integers if its noisy count of other numbers, and the noise, are small relative to all its numbers.

        Parameters
        ----------
        fractions : LevelRows
            0 for an integer, 1 for another number, 2 for a missing value. Private.
        stream : SecretStream
        """
        found = []
        for each in self._columns(WHOLE_SHARE, fractions, [3] * len(fractions.codes), stream.spawn("wholes")):
            whole, other, _ = each.values + 1.0 / 3.0
            found.append(bool(max(other, each.deviation) <= LARGEST_FRACTION * (whole + other)))
        return found

    def _columns(
        self, share: float, cells: LevelRows, n_cells: Sequence[int], stream: SecretStream
    ) -> list[Interaction]:
        """Release how many rows are in each cell of some columns, with this share of mu**2."""
        columns: list[ColumnSet] = [(j,) for j in range(len(n_cells))]
        sums = weighted(n_cells, [(columns, 1.0)], cells.shares is not None)
        noisy = self._interactions(share, sums, cells, stream)[0]
        return [noisy[each] for each in columns]

    def _measure_selected(
        self,
        rows: LevelRows,
        terms: ModelTerms,
        noisy: Noisy,
        fitted: Callable[[Noisy], tuple[TargetTables, Mixture]],
        stream: SecretStream,
    ) -> tuple[TargetTables, Mixture]:
        """Release scores of pairs and the selected pairs, round by round, after the columns."""
        levels, d = terms.levels, len(terms.levels)
        always: list[ColumnSet] = [(j, d - 1) for j in range(d - 1)] if terms.has_label else []
        open_pairs = candidates(levels, always)
        of_tables = (1.0 - sum(ROUND_SHARES)) / self.n_rounds
        targets, mixture = targets_of(levels, noisy, terms.exclusions), cast("Mixture | None", None)

        def expected(columns: ColumnSet) -> np.ndarray:
            """Return the counts of a pair that are expected by its columns alone at first, then by the model."""
            if mixture is not None:
                return self.n * mixture.pair(*columns)
            i, j = columns
            return self.n * np.outer(targets.ones[i], targets.ones[j])

        for t in range(self.n_rounds):
            # Select pairs by noisy scores; those with the label are always measured.
            chosen = always if t == 0 else []
            if open_pairs:
                share, stream_of_scores = ROUND_SHARES[1] / self.n_rounds, stream.spawn("scores", t)
                exact = scores(rows.codes, open_pairs, levels, expected, self._shares(rows))
                found, _ = self._add_noise(share, exact, sensitivity(len(open_pairs)), stream_of_scores)
                deviation = self.noise_of_rows / math.sqrt(of_tables)
                chosen = chosen + best_pairs(found, open_pairs, levels, expected, deviation)
            # Measure them, and fit to all that was released so far.
            sums = weighted(levels, [(chosen, 1.0)])
            noisy |= self._interactions(of_tables, sums, rows, stream.spawn("tables", t))[0]
            open_pairs = [pair for pair in open_pairs if pair not in noisy]
            targets, mixture = fitted(noisy)
        return targets, cast("Mixture", mixture)  # there is a round


def unit_reach(n: float, noise_multiplier: float) -> float:
    """Return the largest contribution of a group, in rows: more if noise is small relative to their public number.

    Clipping biases counts for any noise, and the noise grows with the unclipped contribution. On training rows of
    households, the best reach is about 1 if n is 400 times the noise of a count, 1.4 to 2 at 2,000 and 2 to 3 from
    4,000 on.
    """
    return float(np.clip(math.sqrt(n / (UNITS_PER_NOISE * noise_multiplier)), 1.0, LARGEST_REACH))


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
    """Return whether the total variation distance due to noise of a triple is at most a quarter."""
    sets = [each for each in triples_of(len(levels)) if all(levels[j] > 1 for j in each)]
    if not sets:
        return False
    # The mean over triples of half the sum of the absolute noise; together they have a squared norm of one.
    deviation = noise_multiplier / math.sqrt(SHARES_WITH_TRIPLES[-1])
    norm = sum(squared_norm(levels, each) for each in sets)
    cells = float(np.mean([math.prod(levels[j] for j in columns) for columns in sets]))
    return 0.5 * cells * math.sqrt(2.0 / math.pi * norm) * deviation / n <= 0.25


def shapes_are_worth_it(bins_of_lines: Sequence[int], n: float, noise_multiplier: float) -> bool:
    """Return whether the noise of half a bin is smaller than an average bin, by public numbers."""
    if not len(bins_of_lines):
        return False
    deviation = noise_multiplier * math.sqrt(len(bins_of_lines) / SHAPE_SHARE)
    return deviation * math.sqrt(CELLS_OF_A_BIN / 2.0) <= n / float(np.mean(bins_of_lines))


def iterations(n_mu: float, with_triples: bool = False) -> int:
    """Return the iterations of the fit: fewer for larger noise, to avoid fitting it.

    Triples contain more information than pairs, and take half as many iterations again.
    """
    found = np.clip(400.0 * (n_mu / 8700.0) ** 0.75, 150, 2000)
    return int(1.5 * found if with_triples else found)
