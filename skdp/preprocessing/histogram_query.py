"""Noisy histograms of several columns, released jointly, for bin edges, bounds, medians and categories.

`CountedColumns` counts numbers in disjoint cells, with the contribution of a unit clipped to that of one row.
`HistogramQuery` plans and makes the releases. The rest implements partition selection.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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
    """Numbers of a column without missing values, and the indices of their rows."""

    values: np.ndarray
    are_present: np.ndarray


class CountedColumns(NamedTuple):
    """Numeric columns, each of whose rows is counted in one cell by its weight.

    Attributes
    ----------
    columns : list of CountedColumn
    weights : ndarray of shape (n_rows,) or 1.0
        Private weights of the rows: `exactly_summable` numbers in [0, 1].
    units : Units or None
        Private units of the rows.

    Notes
    -----
    **Guarantees.** The counts of m columns are nonnegative, and the contribution of one row or unit has norm at most
    sqrt(m). A unit of one row contributes the same as the row.

    Proof. A row adds its weight to one count of each column, or nothing for a missing value. The sum over a unit is
    clipped to sqrt(m). Its squared norm is a sum of squares of exact numbers, at most m for each row, whose additional
    relative error is below m u, u = 2**-53; it is raised by twice that. Products of weights and factors are rounded
    down to multiples of 2**-24. This never increases a count and makes all sums exact, so the contribution of other
    rows does not depend on the unit.
    """

    columns: list[CountedColumn]
    weights: Any = 1.0
    units: Units | None = None

    @classmethod
    def of(
        cls, numbers: Sequence[np.ndarray], weights: Any = 1.0, units: Units | None = None, bounds: Sequence[Any] = ()
    ) -> Self:
        """Create from columns with NaN for missing values, clipped to their bounds where these are not None."""
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
"""Fractions of mu squared of the round that locates the mass and selects categories, and of the rounds that refine
cells.

Edges mainly come from the last round. Without a first round, the others have all of it.
"""

THRESHOLD_SHARE = 0.01
"""Default part of delta for partition selection.

The threshold grows by a twelfth if the part falls from a tenth to a hundredth. An accountant reserves at least a tenth
of its delta for such failure probabilities: enough for at least nine such fits.
"""

BINS_SHARE = 0.05
"""Fraction of mu squared of a pipeline for bins within public bounds, if nothing else is estimated privately."""

NOWHERE = (-1.0, 1.0)
"""Bounds of a column in which no count exceeds the noise."""


class Held(NamedTuple):
    """Noisy number of cells of a column with a readable number or a released category.

    Attributes
    ----------
    cells : float
        Noisy number: a sum of released counts, 0.0 if no count exceeds the noise.
    deviation : float
        Standard deviation of its noise.
    beyond : float
        Upper limit of the number of rows beyond the bounds: their noisy count plus two standard deviations.
    """

    cells: float
    deviation: float
    beyond: float = 0.0


class HistogramEstimates(NamedTuple):
    """Private estimates from a `HistogramQuery`, with the privacy cost of `HistogramQuery.event_at`.

    Attributes
    ----------
    edges : list of ndarray
        Inner bin edges of each numeric column, ascending: ``searchsorted(edges, x, side="right")`` is the bin of x.
        Empty for a single bin.
    bounds : list of (float, float)
        Bounds that contain nearly all of each numeric column; low < high. Public bounds are returned unchanged.
    categories : list of list of str
        Released categories of each categorical column, sorted.
    medians : list of float
        For each numeric column, the lower end of the cell that contains the median, within the bounds.
    held : list of Held
        For each numeric, then for each categorical column.
    spans : list of (float, float)
        Interval that contains nearly all of each numeric column, whose bounds can be public.
    """

    edges: list[np.ndarray]
    bounds: list[tuple[float, float]]
    categories: list[list[str]]
    medians: list[float]
    held: list[Held]
    spans: list[tuple[float, float]]


@dataclass(frozen=True)
class HistogramQuery:
    """Joint release of noisy histograms of several columns. All of its fields are public.

    Parameters
    ----------
    n_numbers : int
        Number of numeric columns whose bin edges (and bounds) are estimated.
    n_words : int
        Number of categorical columns whose categories are selected.
    n_bins : int
        Maximum number of bins of a column.
    max_categories : int
        Maximum number of categories of a column.
    adjacency : {"zero_out", "add_remove", "replace_one"}
    threshold_delta : float
        Part of delta, in (0, 1), reserved for partition selection: the probability that a category of a single row is
        released; 0.0 without categorical columns.
    bounds : tuple of ((float, float) or None), default=()
        Public bounds of numeric columns, None where they are estimated; empty if all are.

    Notes
    -----
    **Releases.** A first round counts the numbers of each numeric column without public bounds between signed powers of
    two, and the categories of each categorical column. Two further rounds count numbers in cells that earlier rounds
    have chosen, finer where there is more mass. Each round is one vector with independent Gaussian noise. All else is
    post-processing, except for the threshold of categories.

    **Sensitivity.** The cells of a column are disjoint, so a row adds at most 1 to one count of each of the m columns
    of a round, and nothing for a missing value: a vector of norm at most sqrt(m). This is the sensitivity under
    ``zero_out`` and ``add_remove``. Under ``replace_one``, each column changes by at most -1 in one count and 1 in
    another, with a norm of at most sqrt(2 m) over the columns. The sensitivity, half of this, is sqrt(m / 2).

    A row of weight w in [0, 1] adds w instead, and a row of weight 0 nothing. The norm of the contribution of a row,
    and of the difference of two rows, is convex in each weight, so it is largest for weights of 0 or 1: at most
    sqrt(m), and at most sqrt(2 m). Weights are multiples of 2**-24, whose sums are exact. Categories have no weights.

    **Units.** The counts of a unit of several rows are nonnegative and have the same norm: numbers are clipped to the
    contribution of one row (`skdp.preprocessing.histogram_query.CountedColumns`), and for categories, one row is kept
    in each column. The contribution is at most sqrt(m), and the inner product of two units is not negative, so their
    difference is at most sqrt(2 m).

    The kept row is drawn uniformly among the rows of the unit without a missing value in the column, independently of
    all other units. For each outcome of the draws of other units, removing or replacing a unit changes the kept
    categories as one row does, which is covered below. A privacy profile is convex in a pair of distributions, so the
    mixture over all outcomes is covered too. A category of one unit alone is therefore counted at most once per column,
    and there is at most one such category. Splitting the count among several categories would not work: k counts of
    1/k, each below the threshold, together have a larger probability to exceed it than one count of 1.

    **Categories.** Only observed categories are counted, with noise; those with a noisy count above T are released. Let
    D and D' be neighbors, and call a category private if it occurs in one of them only: then only the differing row has
    it, at most once in each column. By the choice of T (`stability_threshold`), the probability that D releases a
    private category is some a <= t = `threshold_delta`, and likewise for D'. Otherwise, the output is a function f of
    the noisy counts of the other categories and of the numbers, with Gaussian releases G of D and G' of D' that differ
    by at most the sensitivity above. The noise of private categories is independent, so the output of D has the
    distribution (1 - a) f(G) + a (something). As 1 - a >= 1 - t, it is also (1 - t) f(G) + t B for some distribution B;
    likewise, the output of D' is (1 - t) f(G') + t B'. So for every e^eps,

        P(D in S) - e^eps P(D' in S) <= t + (1 - t) (P(f(G) in S) - e^eps P(f(G') in S)),

    in both directions, which is the privacy profile of the Gaussian releases composed with an event that fails with
    probability t: ``EpsilonDeltaDpEvent(0, t)``. Later rounds depend on the rows and on the output of earlier ones
    only, and dominating pairs compose adaptively (Zhu, Dong & Wang 2022, theorem 10).

    Categories are sorted before and after counting, so their order in the table has no influence. The counts in `Held`
    are sums of released noisy counts, and so a part of f.
    """

    n_numbers: int
    n_words: int
    n_bins: int
    max_categories: int
    adjacency: str
    threshold_delta: float
    bounds: tuple[Bounds, ...] = ()

    # --- privacy event and noise ---

    @property
    def _open(self) -> list[bool]:
        """Whether the bounds of each numeric column are estimated."""
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
        """Event of `release`: one Gaussian release with this noise, and the delta of the threshold."""
        locate, refine = self._rounds(noise_multiplier)
        events: list[DpEvent] = [each.event for each in (locate, *refine) if each is not None]
        if self.n_words:
            events.append(EpsilonDeltaDpEvent(0.0, self.threshold_delta))
        return compose(events)

    def threshold_at(self, noise_multiplier: float) -> float:
        """Noisy count above which a category is released."""
        locate, _ = self._rounds(noise_multiplier)
        if locate is None or not self.n_words:
            raise ValueError("n_words=0: no categories are selected, so there is no threshold.")
        return stability_threshold(locate.standard_deviation, self.threshold_delta, self.n_words)

    def least_rows_at(self, noise_multiplier: float) -> float:
        """Number of rows below which fewer than four bins or categories of a column exceed the noise."""
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
    ) -> HistogramEstimates:
        """Count, add noise, and find edges, bounds and categories.

        Parameters
        ----------
        numbers : sequence of ndarray of shape (n,)
            Private numbers, float64; NaN is missing, infinity lies beyond all bounds.
        words : sequence of (ndarray of shape (n,), sequence of str)
            Private categories: codes, -1 for missing values, and the distinct strings of the codes.
        noise_multiplier : float
            Noise multiplier as in `event_at`, which the caller has charged.
        n_public : int
            Public number of rows, which determines the number of cells.
        stream : SecretStream
            Random stream of this release.
        weights : ndarray of shape (n,) or 1.0
            Private weights of the rows: `exactly_summable` numbers in [0, 1].
        units : Units or None
            Private units of the rows.

        Returns
        -------
        NamedTuple
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
            return HistogramEstimates([], [], categories, [], held_words, [])
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
        return HistogramEstimates(edges, bounds, categories, medians, [*held, *held_words], spans)

    @property
    def _all_bounds(self) -> list[Bounds]:
        return list(self.bounds) or [None] * self.n_numbers

    def _locate(
        self, columns: CountedColumns, words: Sequence[Words], mechanism: GaussianMechanism | None, stream: SecretStream
    ) -> tuple[list[cell_tree.Cells | None], list[list[str]], list[Held]]:
        """Occupied octaves of each column without public bounds, the categories, and their counts."""
        if mechanism is None:
            return [], [], []
        octaves = columns.counts([cell_tree.OCTAVES if is_open else None for is_open in self._open])
        octaves = [each for each in octaves if len(each)]
        # Count the categories of one row of each unit.
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


def released(
    mechanism: GaussianMechanism | DiscreteGaussianMechanism, counts: list[np.ndarray], stream: SecretStream
) -> list[np.ndarray]:
    """Noisy counts of several columns, as one vector."""
    if not counts:
        return []
    exact = np.concatenate(counts)
    noisy = mechanism.release(exact.astype(np.int64) if mechanism.is_whole else exact, stream).astype(np.float64)
    return list(np.split(noisy, np.cumsum([len(each) for each in counts])[:-1]))


# --- which categories may be named ---


def stability_threshold(deviation: float, delta: float, n_columns: int) -> float:
    """Return the count above which a category is released.

    A row can be the only one with its category in every column. Each of these counts is 1, and its noisy value exceeds
    T with probability p = P(1 + N(0, deviation^2) > T). The noise is independent, so none exceeds T with probability
    (1 - p)^n_columns, which is 1 - delta for the chosen p: except with probability `delta`, the categories of the row
    stay hidden in all columns. T is increased by half a step of the grid to which noisy counts are rounded, at most
    2**-27 standard deviations.

    Parameters
    ----------
    deviation : float
        Standard deviation of the noise.
    delta : float
        In (0, 1).
    n_columns : int
        Number of categorical columns.

    Returns
    -------
    float
    """
    each = -math.expm1(math.log1p(-delta) / n_columns)
    return (1.0 + deviation * (float(norm.isf(each)) + 2.0**-27)) * (1.0 + 1e-12)  # the quantile is rounded


def keep_one_row(codes: np.ndarray, units: Units | None, stream: SecretStream) -> np.ndarray:
    """Return codes with -1 (missing) in all rows of a unit except one, drawn uniformly among those with a value.

    Without units, all rows are kept.
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
    """Return the observed categories, sorted, and their exact counts; negative codes are ignored.

    Keys without a row are not counted, because a list of keys can itself be private.
    """
    counts = np.bincount(codes[codes >= 0], minlength=len(keys))
    found = sorted((keys[i], i) for i in np.flatnonzero(counts).tolist())
    return [key for key, _ in found], counts[[i for _, i in found]].astype(np.float64)


def named_categories(keys: Sequence[str], noisy: np.ndarray, threshold: float, most: int) -> list[str]:
    """Return the `most` frequent keys above the threshold by noisy count, in alphabetical order."""
    above = np.flatnonzero(noisy > threshold)
    frequent = above[np.argsort(-noisy[above], kind="stable")[:most]]
    return sorted(keys[i] for i in frequent.tolist())
