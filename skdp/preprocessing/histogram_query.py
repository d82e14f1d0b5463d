"""Noisy histograms of several columns, released jointly: bin edges, bounds, medians and selected categories.

`CountedColumns` counts numbers in disjoint cells, with no more of a unit than of one row. `Purchase` plans, prices and
makes the releases. The rest decides which categories may be named (partition selection).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.stats import norm

from skdp._checks.groups import Units
from skdp._checks.parameters import Bounds
from skdp._checks.weights import exactly_summable, weight_of_each
from skdp.accounting import DpEvent, EpsilonDeltaDpEvent, compose
from skdp.mechanisms.bounded_sum import clip_groups, column_sensitivity, squares_of_counts
from skdp.mechanisms.discrete_noise import DiscreteGaussianMechanism
from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.mechanisms.streams import SecretStream
from skdp.preprocessing import cell_tree


class CountedColumn(NamedTuple):
    """Numbers of a column without its gaps, and which rows they are of."""

    values: np.ndarray
    are_present: np.ndarray


class CountedColumns(NamedTuple):
    """Columns of numbers whose rows are counted in one cell of each, by their weights.

    Attributes
    ----------
    columns : list of CountedColumn
    weights : ndarray of shape (n_rows,) or 1.0
        Private: `exactly_summable` numbers in [0, 1].
    units : Units or None
        Private.

    Notes
    -----
    **Guarantees.** The counts of m columns are nonnegative, and what one row adds to them, or one unit, has a norm of
    at most sqrt(m). A unit of one row adds what the row adds.

    Proof. A row adds its weight to one count of each column, or nothing where it has a gap. The sum of a unit's rows is
    clipped to sqrt(m) (`skdp.mechanisms.bounded_sum.clip_groups`). Its squared norm is a sum of
    squares of exact numbers, m of them for each row at most, whose relative error beyond that of one column is below
    m u, u = 2**-53; it is raised by twice that. Weights times shares are rounded down to multiples of 2**-24, which
    makes every count smaller or leaves it, and all sums exact: what other rows add does not depend on the unit.
    """

    columns: list[CountedColumn]
    weights: Any = 1.0
    units: Units | None = None

    @classmethod
    def of(
        cls, numbers: Sequence[np.ndarray], weights: Any = 1.0, units: Units | None = None, bounds: Sequence[Any] = ()
    ) -> Self:
        """Take columns with NaN for gaps, clipped to their bounds where these are not None."""
        pairs = bounds or [None] * len(numbers)
        columns = []
        for values, pair in zip(numbers, pairs, strict=True):
            present = ~np.isnan(values)
            columns.append(CountedColumn(np.clip(values[present], *(pair or (-np.inf, np.inf))), present))
        return cls(columns, weights, units)

    def counts(self, breaks: Sequence[np.ndarray | None]) -> list[np.ndarray]:
        """Count each column in the ``len(breaks) + 1`` cells between its breaks, closed on the left; none for None."""
        counted = [(column, at) for column, at in zip(self.columns, breaks, strict=True) if at is not None]
        cells = [np.searchsorted(at, column.values, side="right") for column, at in counted]
        weights = self._clipped([column for column, _ in counted], cells)
        made = iter(
            np.bincount(where, weights[column.are_present] if np.ndim(weights) else None, minlength=len(at) + 1).astype(
                np.float64, copy=False
            )
            for (column, at), where in zip(counted, cells, strict=True)
        )
        return [np.empty(0) if at is None else next(made) for at in breaks]

    def _clipped(self, columns: list[CountedColumn], cells: list[np.ndarray]) -> Any:
        """Return weights with which no group adds more to these columns than a row may."""
        if (units := self.units) is None:
            return self.weights
        norm, weights = math.sqrt(len(columns)), weight_of_each(self.weights, len(units.codes))
        squares = np.zeros(units.n_units)
        for column, where in zip(columns, cells, strict=True):
            present = replace(units, codes=units.codes[column.are_present])
            squares += squares_of_counts(present, [where], weights[column.are_present])
        squares *= 1.0 + len(columns) * 2.0**-52
        return exactly_summable(clip_groups(units, weights, norm, norm, squares))


Words = tuple[np.ndarray, Sequence[str]]

_LOCATE, _REFINE = 0.25, (0.25, 0.5)
"""Shares of mu^2 of the round that locates the mass and names the categories, and of those that refine the cells.

Edges come from the last round mostly. Without a first round the others have all (benchmarks/bench_bought_bins.py).
"""

THRESHOLD_SHARE = 0.01
"""Default part of delta for a threshold.

The threshold grows by a twelfth if the part falls from a tenth to a hundredth. A ledger under a budget keeps a tenth
of its delta, or more, for events that can fail: enough for nine such fits at least.
"""

BINS_SHARE = 0.05
"""Part of mu^2 of a pipeline for bins within public bounds, where nothing else of the table is estimated privately."""

NOWHERE = (-1.0, 1.0)
"""Bounds of a column of which nothing stands out of the noise."""


class Held(NamedTuple):
    """How many cells of a column are left: numbers that could be read, or words whose category is named.

    Attributes
    ----------
    cells : float
        Noisy: a sum of released counts. 0.0 where nothing stands out of the noise.
    deviation : float
        Standard deviation of its noise.
    beyond : float
        Upper limit of the rows beyond the bounds of a column of numbers: their noisy count and two standard deviations.
    """

    cells: float
    deviation: float
    beyond: float = 0.0


class Bought(NamedTuple):
    """What a purchase found, all of it private at the price of `Purchase.event_at`.

    Attributes
    ----------
    edges : list of ndarray
        Inner edges of the bins of each column of numbers, ascending: ``searchsorted(edges, x, side="right")`` is the
        bin of x. Empty for a single bin.
    bounds : list of (float, float)
        Between them lies nearly all of each column of numbers; low < high. Public bounds are returned as given.
    categories : list of list of str
        Of each column of words, sorted.
    medians : list of float
        Of each column of numbers: the lower end of the cell in which the median lies, within the bounds.
    held : list of Held
        Of each column of numbers, then of each column of words.
    spans : list of (float, float)
        Between them lies nearly all of each column of numbers, whose bounds may be public.
    """

    edges: list[np.ndarray]
    bounds: list[tuple[float, float]]
    categories: list[list[str]]
    medians: list[float]
    held: list[Held]
    spans: list[tuple[float, float]]


@dataclass(frozen=True)
class Purchase:
    """A joint release of noisy histograms of several columns. All of its fields are public.

    Parameters
    ----------
    n_numbers : int
        Columns of numbers whose bin edges, and bounds, are bought.
    n_words : int
        Columns of words whose categories are bought.
    n_bins : int
        Most bins of a column.
    max_categories : int
        Most categories of a column.
    adjacency : {"zero_out", "add_remove", "replace_one"}
    threshold_delta : float
        In (0, 1): probability with which a category that one row alone has may be named; 0.0 without words.
    bounds : tuple of ((float, float) or None), default=()
        Public bounds of columns of numbers, None where they are bought; empty if all are.

    Notes
    -----
    **What is released.** A first round counts, in each column of numbers without public bounds, the numbers between
    signed powers of two, and in each column of words the words. Each of two further rounds counts the numbers in cells
    of the line which the rounds before it have chosen, finer where there is more mass. Each round is one vector with
    independent normal noise. The rest is post-processing, but for the threshold of categories.

    **Sensitivity.** The cells of a column are disjoint, so a row adds 1 to one count of each of the m columns of a
    round, or less where it has gaps (a gap adds nothing): a vector of norm sqrt(m) at most. That is the sensitivity
    under ``zero_out`` and ``add_remove``. Under ``replace_one`` a column changes by -1 in one count and 1 in another,
    or less; over m columns the norm is sqrt(2 m) at most. The event is priced at twice the sensitivity there, which is
    therefore sqrt(m / 2).

    A row of weight w in [0, 1] adds w instead, and a row of weight 0 nothing. The norm of what a row adds, and that of
    the difference between two rows, is convex in each weight, so it is largest where weights are 0 or 1: at most
    sqrt(m), and at most sqrt(2 m). Weights are multiples of 2**-24, whose sums are exact. Words have no weights.

    **Units.** The counts of a unit of several rows are nonnegative and of the same norm: those of its numbers are
    clipped to that of one row (`skdp.preprocessing.histogram_query.CountedColumns`), and of its words one row is kept
    in each column, so that it adds 1 to one count there or nothing. So it adds sqrt(m) at most, and the inner product
    of what two units add is not negative, which makes their difference sqrt(2 m) at most.

    The row that is kept is drawn evenly among those of the unit without a gap in the column, independently of all other
    units. For each outcome of the draws of the others, a unit that leaves or is replaced changes the kept words as one
    row does, for which all below is proved; and what holds for each outcome holds for the mixture of them, since a
    privacy profile is convex in a pair of laws. So no word that one unit alone has is counted more than once in a
    column, nor is there a second such word, whether its rows have one word of that kind or as many as there are rows.
    Counts that are shared among several words would not do: k counts of 1/k, each below the threshold, have together a
    larger probability to pass it than one count of 1.

    **Categories.** Only words that occur are counted and get noise; those with a noisy count above T are named.
    Let D and D' be neighbours, and call a word private if it occurs in one of them only: then the row in which they
    differ is alone in having it, once in each column at most. By the choice of T (`stability_threshold`), the
    probability that D names a private word is some a <= t = `threshold_delta`, and likewise for D'. If none is named,
    the output is a function f of the noisy counts of the other words and of the numbers, of which those words see the
    noise of Gaussian releases G of D and G' of D' that are as far apart as above, or closer. As the noise of private
    words is independent of theirs, the output of D is (1 - a) f(G) + a (something) in law. As 1 - a >= 1 - t, it is
    also (1 - t) f(G) + t B for some law B; likewise the output of D' is (1 - t) f(G') + t B'. So for every e^eps,

        P(D in S) - e^eps P(D' in S) <= t + (1 - t) (P(f(G) in S) - e^eps P(f(G') in S)),

    in both directions, which is the privacy profile of the Gaussian releases composed with an event that fails with
    probability t: ``EpsilonDeltaDpEvent(0, t)``. Later rounds see the output of earlier ones only, and dominating
    pairs compose adaptively (Zhu, Dong & Wang 2022, theorem 10).

    Words are sorted before they are counted and after: their order in the table is nowhere seen. What named categories
    hold (`Held`) is a sum of their noisy counts, and so a part of f: counts of words that are not named have no say.
    """

    n_numbers: int
    n_words: int
    n_bins: int
    max_categories: int
    adjacency: str
    threshold_delta: float
    bounds: tuple[Bounds, ...] = ()

    # --- the price, and the noise that has it ---

    @property
    def _open(self) -> list[bool]:
        """Of each column of numbers, whether its bounds are bought."""
        return [pair is None for pair in self._all_bounds]

    def _rounds(self, noise_multiplier: float) -> tuple[GaussianMechanism | None, list[GaussianMechanism]]:
        """Mechanisms of the first counts, None if there are none, and of those of refined cells.

        All of them together are one Gaussian release of `noise_multiplier`.
        """
        columns = sum(self._open) + self.n_words
        first = _LOCATE if columns else 0.0
        total = first + (sum(_REFINE) if self.n_numbers else 0.0)

        def mechanism(share: float, width: int) -> GaussianMechanism:
            return GaussianMechanism(
                noise_multiplier * math.sqrt(total / share), column_sensitivity(width, self.adjacency)
            )

        locate = mechanism(first, columns) if columns else None
        return locate, [mechanism(share, self.n_numbers) for share in _REFINE] if self.n_numbers else []

    def event_at(self, noise_multiplier: float) -> DpEvent:
        """What `release` costs: as much as one Gaussian release of this noise, and the threshold's delta."""
        locate, refine = self._rounds(noise_multiplier)
        events: list[DpEvent] = [each.event for each in (locate, *refine) if each is not None]
        if self.n_words:
            events.append(EpsilonDeltaDpEvent(0.0, self.threshold_delta))
        return compose(events)

    def threshold_at(self, noise_multiplier: float) -> float:
        """The noisy count above which a category is named."""
        locate, _ = self._rounds(noise_multiplier)
        if locate is None or not self.n_words:
            raise ValueError("n_words=0: no categories are selected, so there is no threshold.")
        return stability_threshold(locate.standard_deviation, self.threshold_delta, self.n_words)

    def least_rows_at(self, noise_multiplier: float) -> float:
        """Rows below which a column has less than four bins, or categories, that stand out of the noise."""
        _, refine = self._rounds(noise_multiplier)
        deviation = refine[-1].standard_deviation if refine else 0.0
        threshold = self.threshold_at(noise_multiplier) if self.n_words else 0.0
        return 4.0 * max(cell_tree.LEAST_BIN * deviation, threshold)

    # --- the release ---

    def release(
        self,
        numbers: Sequence[np.ndarray],
        words: Sequence[Words],
        noise_multiplier: float,
        n_public: int,
        stream: SecretStream,
        weights: Any = 1.0,
        units: Units | None = None,
    ) -> Bought:
        """Count, add noise, and find edges, bounds and categories.

        Parameters
        ----------
        numbers : sequence of ndarray of shape (n,)
            Private, float64; NaN is a gap, infinity lies beyond all bounds.
        words : sequence of (ndarray of shape (n,), sequence of str)
            Private: codes, -1 for a gap, and the distinct words that they number.
        noise_multiplier : float
            As in `event_at`, which the caller has charged.
        n_public : int
            Public number of rows, from which the number of cells follows.
        stream : SecretStream
            Of this release alone.
        weights : ndarray of shape (n,) or 1.0
            Private, of the rows: `exactly_summable` numbers in [0, 1].
        units : Units or None
            Private, of the rows.

        Returns
        -------
        Bought
        """
        if len(words) and np.ndim(weights):
            raise ValueError("Categories do not support weights. Use weights=1.0.")
        if len(numbers) != self.n_numbers or len(words) != self.n_words:
            raise ValueError("The number of columns must match n_numbers and n_words.")
        columns = CountedColumns.of(numbers, weights, units, self._all_bounds)
        # First round: where the mass of columns without public bounds lies, and the categories.
        locate, refine = self._rounds(noise_multiplier)
        found, categories, held_words = self._locate(columns, words, locate, stream.spawn("locate"))
        cells = [found.pop(0) if pair is None else cell_tree.Cells.between(*pair) for pair in self._all_bounds]
        if not refine:
            return Bought([], [], categories, [], held_words, [])
        # Later rounds: cells that are finer where there is more mass.
        deviation = refine[-1].standard_deviation
        size = int(np.clip(n_public / (4.0 * deviation), 16, 256))  # more cells would hold noise
        for number, mechanism in enumerate(refine):
            cells = _refine(columns, cells, size, mechanism, stream.spawn("refine", number))
        # All else is post-processing of the cells.
        edges = [
            np.empty(0) if each is None else cell_tree.equal_mass_edges(each, self.n_bins, deviation) for each in cells
        ]
        spans = [NOWHERE if each is None else cell_tree.bounds_of_mass(each) for each in cells]
        bounds = [pair or span for pair, span in zip(self._all_bounds, spans, strict=True)]
        medians = [
            min(max(0.0 if each is None else cell_tree.median_cell(each), low), high)
            for each, (low, high) in zip(cells, bounds, strict=True)
        ]
        held = [_held_numbers(*each) for each in zip(cells, bounds, strict=True)]
        return Bought(edges, bounds, categories, medians, [*held, *held_words], spans)

    @property
    def _all_bounds(self) -> list[Bounds]:
        return list(self.bounds) or [None] * self.n_numbers

    def _locate(
        self, columns: CountedColumns, words: Sequence[Words], mechanism: GaussianMechanism | None, stream: SecretStream
    ) -> tuple[list[cell_tree.Cells | None], list[list[str]], list[Held]]:
        """The occupied octaves of each column whose bounds are bought, the categories, and what these hold."""
        if mechanism is None:
            return [], [], []
        octaves = columns.counts([cell_tree.OCTAVES if is_open else None for is_open in self._open])
        octaves = [each for each in octaves if len(each)]
        # Count the words of one row of each unit.
        keys, counts = [], []
        for number, (codes, names) in enumerate(words):
            kept = keep_one_row(codes, columns.units, stream.spawn("kept rows", number))
            found, exact = observed_counts(kept, names)
            keys.append(found)
            counts.append(exact)
        if stream.track is not None:  # of an audit; the number of strings is private
            n_cells = sum(map(len, octaves))
            stream.track.names = (*range(n_cells), *((i, key) for i, found in enumerate(keys) for key in found))
        noisy = released(mechanism, [*octaves, *counts], stream)
        deviation = mechanism.standard_deviation
        cells = [cell_tree.occupied_octaves(each, deviation) for each in noisy[: len(octaves)]]
        threshold = stability_threshold(deviation, self.threshold_delta, self.n_words) if self.n_words else 0.0
        chosen, held = [], []
        for names, each in zip(keys, noisy[len(octaves) :], strict=True):
            named = named_categories(names, each, threshold, self.max_categories)
            chosen.append(named)
            known = frozenset(named)  # no other count is looked at
            total = sum(count for key, count in zip(names, each.tolist(), strict=True) if key in known)
            held.append(Held(float(total), deviation * math.sqrt(len(known))))
        return cells, chosen, held


def _refine(
    columns: CountedColumns, cells: list[Any], size: int, mechanism: GaussianMechanism, stream: SecretStream
) -> list[Any]:
    """All cells split by their mass, and counted again in one release."""
    breaks = [None if each is None else each.split(size) for each in cells]
    noisy = released(mechanism, columns.counts(breaks), stream)
    return [
        None if each is None or at is None else each.refined(at, count, mechanism.standard_deviation**2)
        for each, at, count in zip(cells, breaks, noisy, strict=True)
    ]


def _held_numbers(cells: cell_tree.Cells | None, bounds: tuple[float, float]) -> Held:
    """What all cells hold together; the last round alone has a sum that is as noisy as this, or noisier."""
    if cells is None:
        return Held(0.0, 0.0)
    (low, high), mass = bounds, cells.estimate()
    out = np.append(cells.breaks, np.inf) <= low
    out |= np.append(-np.inf, cells.breaks) >= high
    beyond = max(float(mass[out].sum()), 0.0) + 2.0 * math.sqrt(float(cells.variances[out].sum()))
    return Held(float(mass.sum()), math.sqrt(float(cells.variances.sum())), beyond)


def event_with(purchases: Iterable[Any], event_at: Callable[[float], DpEvent], noise_multiplier: float) -> DpEvent:
    """What purchases cost together with a fit's own releases, where these have this noise multiplier."""
    return compose([*(each.event_at(noise_multiplier) for each in purchases), event_at(noise_multiplier)])


def released(
    mechanism: GaussianMechanism | DiscreteGaussianMechanism, counts: list[np.ndarray], stream: SecretStream
) -> list[np.ndarray]:
    """Counts of several columns with noise, as one vector."""
    if not counts:
        return []
    exact = np.concatenate(counts)
    noisy = mechanism.release(exact.astype(np.int64) if mechanism.is_whole else exact, stream).astype(np.float64)
    return list(np.split(noisy, np.cumsum([len(each) for each in counts])[:-1]))


# --- which categories may be named ---


def stability_threshold(deviation: float, delta: float, n_columns: int) -> float:
    """Count above which a category is named.

    A row may be the only one with its category in every column. Each of those counts is 1, and its noisy value exceeds
    T with probability p = P(1 + N(0, deviation^2) > T). The noise is independent, so that none does has probability
    (1 - p)^n_columns, which is 1 - delta for the p chosen here: the row's categories stay hidden but with probability
    `delta` in all columns together. T is larger by half a step of the grid to which noisy counts are rounded, at most
    2**-27 standard deviations.

    Parameters
    ----------
    deviation : float
        Standard deviation of the noise.
    delta : float
        In (0, 1).
    n_columns : int
        Columns of categories.

    Returns
    -------
    float
    """
    each = -math.expm1(math.log1p(-delta) / n_columns)
    return (1.0 + deviation * (float(norm.isf(each)) + 2.0**-27)) * (1.0 + 1e-12)  # the quantile is rounded


def keep_one_row(codes: np.ndarray, units: Units | None, stream: SecretStream) -> np.ndarray:
    """Codes with a gap, -1, in all rows of a unit but one, which is drawn evenly among those without a gap.

    Every draw is of one row. Without units all rows are kept.
    """
    if units is None:
        return codes
    held = np.flatnonzero(codes >= 0)
    of = units.codes[held]
    order = np.lexsort((stream.words(len(held)), of))
    first = held[order[np.flatnonzero(np.diff(of[order], prepend=-1))]]
    kept = np.full_like(codes, -1)
    kept[first] = codes[first]
    return kept


def observed_counts(codes: np.ndarray, keys: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """The categories that occur, sorted, and their exact counts. Codes below 0 are gaps and are left out.

    A key that no row has is not counted, wherever it came from: a list of keys may itself be private.
    """
    counts = np.bincount(codes[codes >= 0], minlength=len(keys))
    found = sorted((keys[i], i) for i in np.flatnonzero(counts).tolist())
    return [key for key, _ in found], counts[[i for _, i in found]].astype(np.float64)


def named_categories(keys: Sequence[str], noisy: np.ndarray, threshold: float, most: int) -> list[str]:
    """The keys above the threshold, the `most` frequent of them by noisy count, in alphabetical order."""
    above = np.flatnonzero(noisy > threshold)
    frequent = above[np.argsort(-noisy[above], kind="stable")[:most]]
    return sorted(keys[i] for i in frequent.tolist())
