"""Releases of a table description: counts of cells, then second moments and two-way marginals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from skdp.accounting import DpEvent, compose
from skdp.mechanisms.bounded_sum import column_sensitivity, onto_simplex
from skdp.mechanisms.discrete_noise import DiscreteGaussianMechanism
from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.mechanisms.second_moments import MomentSum, UnitBall, sensitivity
from skdp.mechanisms.streams import SecretStream
from skdp.preprocessing.histogram_query import released
from skdp.statistics.cells import ColumnCells, Merged, add_up_cells

ColumnPair = tuple[str, str]

ROUNDED, DISCRETE = KINDS_OF_NOISE = "rounded", "discrete"
"""Types of noise: Gaussian noise, rounded to a public grid; for counts, discrete Gaussian noise."""

_COUNTS, _MOMENTS, _PAIRS = 0.65, 0.25, 0.1
"""Fractions of mu^2 for the counts, the moments, and the two-way marginals and sums, if all of them are released."""

_LOOK = 0.1
"""Fraction of the counts' budget for a first release, if columns can be skewed; it determines the narrow cells."""

_BINS, _LEVELS = 8, 24
"""Cells of a number in a cross-tabulation, and listed categories of a column in other two-way marginals."""

_ROWS = 1 << 15


class Shares(NamedTuple):
    """Fractions of mu^2 for counts, moments and pairs of columns, which sum to one."""

    counts: float
    moments: float
    pairs: float

    @classmethod
    def by_rule(cls, n_numbers: int, n_pairs: int) -> Shares:
        """Default fractions for the releases of this description."""
        return cls.of(_COUNTS, _MOMENTS * (n_numbers > 0), _PAIRS * (n_pairs > 0))

    @classmethod
    def of(cls, *parts: float) -> Shares:
        """Fractions in these proportions."""
        return cls(*(part / sum(parts) for part in parts))


class DescribedRows(NamedTuple):
    """Columns that were read, the index of the subgroup of each row, weights or None, and its cells. Private."""

    values: list[np.ndarray]
    groups: np.ndarray
    weights: np.ndarray | None
    codes: Sequence[np.ndarray] = ()


class Questions(NamedTuple):
    """The measured columns and pairs; all of it is public.

    Attributes
    ----------
    cells : list of ColumnCells
        Of each column.
    groups : list of str
        Names of the subgroups; one if there are none.
    correlation : bool
    crosstabs : list of (str, str)
        Pairs with a cross-tabulation of all categories.
    n : float or None
        Number of rows or groups; None if it is private.
    labels : list
        Names of the columns in the frame, which can be numbers.
    """

    cells: list[ColumnCells]
    groups: list[str]
    correlation: bool
    crosstabs: list[ColumnPair]
    n: float | None
    labels: list[Any]

    @property
    def numbers(self) -> list[ColumnCells]:
        """Numeric and date columns."""
        return [each for each in self.cells if each.is_line]

    @property
    def tables(self) -> list[ColumnPair]:
        """Pairs of columns with counts: cross-tabulations, and for correlations pairs of categorical columns."""
        words = [each.name for each in self.cells if not each.is_line]
        asked = {frozenset(pair) for pair in self.crosstabs}
        others = itertools.combinations(words, 2) if self.correlation else ()
        return [*self.crosstabs, *(pair for pair in others if frozenset(pair) not in asked)]

    @property
    def sums(self) -> list[ColumnPair]:
        """Pairs of a numeric and a categorical column with sums of the number by category, for correlations."""
        words = [each.name for each in self.cells if not each.is_line]
        return list(itertools.product((each.name for each in self.numbers), words)) if self.correlation else []


class NoisyTable(NamedTuple):
    """Noisy counts of a pair of columns; the last row and column are missing values."""

    first: Merged
    second: Merged
    counts: np.ndarray
    deviation: float


class NoisySums(NamedTuple):
    """Noisy sums of a number, scaled to [-1, 1], over the rows of each category; the last is for missing values."""

    levels: Merged
    sums: np.ndarray
    deviation: float


class MomentsOfNumbers(NamedTuple):
    """Noisy sums of (1, z) (1, z)', of shape (d + 1, d + 1).

    With the scale c of the noise and the weight w of the constant, entries have independent noise: c on the diagonal,
    c / sqrt(2) off it, c / (w sqrt(2)) in the first row except for its first entry, of c / w^2.

    `of_gaps` has the value that replaced missing values in each column of z.
    """

    sums: np.ndarray
    scale: float
    weight: float
    of_gaps: np.ndarray


@dataclass(frozen=True)
class Tally:
    """Noisy sums of a table, or of a subgroup, and the sizes of their noise.

    Attributes
    ----------
    n, n_deviation : float
        Number of rows or groups, and the standard deviation of its noise, 0.0 if it is public.
    counts : list of ndarray
        Noisy counts of the cells of each column, with that of missing values last. They sum to n.
    deviation : float
        Standard deviation of the noise of a count, before the counts were adjusted to sum to n.
    moments : MomentsOfNumbers or None
    tables : dict of (str, str) to NoisyTable
    sums : dict of (str, str) to NoisySums
        Of a number and a category, in this order.
    """

    n: float
    n_deviation: float
    counts: list[np.ndarray]
    deviation: float
    moments: MomentsOfNumbers | None
    tables: Mapping[ColumnPair, NoisyTable]
    sums: Mapping[ColumnPair, NoisySums]

    def shares(self, j: int) -> np.ndarray:
        """Probabilities of the cells of column j, by projection onto the simplex."""
        return onto_simplex(self.counts[j] / self.n)


@dataclass(frozen=True)
class TableRelease:
    """The release of a table description; all parameters are public.

    Parameters
    ----------
    noise_multiplier : float
        Of one Gaussian release with the whole budget.
    adjacency : {"zero_out", "add_remove", "replace_one"}
    shares : Shares or None
        None for the default.
    noise : {"rounded", "discrete"}
        "discrete" is for counts alone.
    weight_limit : float
        Largest sum of the weights of a group; the weight of a row is at most 1.

    Notes
    -----
    **Guarantees.** `measure` has the privacy cost of one Gaussian release of this noise multiplier. Its result is a
    function of its releases and of public values.

    Proof. There are at most four Gaussian releases. Their noise multipliers are that of the whole, divided by the roots
    of fractions that sum to one and depend on the public columns alone. The cells of a later release depend on the
    output of those before, and its sensitivity is the same for any of them. So they compose to one release, because
    their mu^2 add up (Dong, Roth & Su 2022, corollary 2).

    *Skewed columns.* Counts are released twice if a column has public bounds and cells of equal width. If most rows lie
    in a small part by the first counts, the cells are narrower there in the second; the cells of a column are disjoint
    for any ends. Otherwise both are averaged by their precision, to the noise of one release.

    *Discrete noise.* A row adds 1 to one count of each column and of each table, which
    `skdp.mechanisms.DiscreteGaussianMechanism` accounts for: `event_of_counts` is the composition of both releases.
    There are then no moments, sums, weights or groups.

    *Counts.* A row adds its weight to one cell of each of d columns, which are disjoint, also those of the subgroups,
    as in `skdp.mechanisms.bounded_sum.column_sensitivity`. The column of the subgroups is one of the d.

    *Moments.* A row adds u u' to the matrix of its subgroup, where u = (w, z) / sqrt(w^2 + d) with z in [-1, 1]^d, so
    that it lies in the unit ball; `skdp.mechanisms.second_moments.sensitivity` is the bound for one matrix. Two rows of
    different subgroups contribute to different matrices: orthogonal vectors of norm 1 have distance sqrt(2), the
    largest distance for two rows of one subgroup.

    *Pairs.* See `pairs_sensitivity`.

    *Weights and groups.* Weights are numbers in [0, 1]; those of a group sum to at most `weight_limit`
    (`skdp.mechanisms.bounded_sum.clip_groups`). The contribution of a group then lies in `weight_limit` times the
    convex hull of zero and the possible contributions of rows, so all bounds hold for groups, multiplied by
    `weight_limit`. Counts of multiples of 2**-24 are exact; sums of numbers are rounded in float64, which the noise
    covers (`skdp.mechanisms.GaussianMechanism`).
    """

    noise_multiplier: float
    adjacency: str
    shares: Shares | None = None
    noise: str = ROUNDED
    weight_limit: float = 1.0

    def event_of_counts(self, n_columns: int, n_tables: int) -> DpEvent:
        """Event of discrete noise on the counts of this number of columns and of two-way marginals."""
        return compose([self._discrete(*each).event for each in self._parts(n_columns, n_tables)])

    def check_counts(self, n_columns: int, n_tables: int) -> None:
        """Reject a noise multiplier outside of the range of discrete noise."""
        for share, n in self._parts(n_columns, n_tables):
            DiscreteGaussianMechanism(self.noise_multiplier * math.sqrt(n / share), n)

    def _parts(self, n_columns: int, n_tables: int) -> list[tuple[float, int]]:
        """The fraction of each release of counts, and how many of them a row changes."""
        shares = self.shares or Shares.by_rule(0, n_tables)
        return [(shares.counts, n_columns), (shares.pairs, n_tables)][: 1 + (n_tables > 0 and shares.pairs > 0.0)]

    def _discrete(self, share: float, n_counts: int) -> DiscreteGaussianMechanism:
        return DiscreteGaussianMechanism.near(self.noise_multiplier / math.sqrt(share), n_counts)

    def measure(self, rows: DescribedRows, asked: Questions, stream: SecretStream) -> tuple[Questions, list[Tally]]:
        """Release the sums; return the measured cells, with those of skewed columns, and the tally of each subgroup.

        Parameters
        ----------
        rows : DescribedRows
        asked : Questions
        stream : SecretStream
            Noise of these releases alone.
        """
        shares = self.shares or Shares.by_rule(len(asked.numbers), len(asked.tables) + len(asked.sums))
        rows = rows._replace(codes=[each.codes(values) for each, values in zip(asked.cells, rows.values, strict=True)])
        asked, rows, tallies = self._all_counts(rows, asked, shares.counts, stream)
        whole = add_up(tallies, asked.n)
        if asked.numbers and shares.moments:
            found = self._moments(rows, asked, whole, shares.moments, stream.spawn("moments"))
            tallies = [replace(each, moments=moments) for each, moments in zip(tallies, found, strict=True)]
        if (asked.tables or asked.sums) and shares.pairs:
            pairs = self._pairs(rows, asked, whole, shares.pairs, stream.spawn("pairs"))
            tallies = [replace(each, tables=a, sums=b) for each, (a, b) in zip(tallies, pairs, strict=True)]
        return asked, tallies

    def _mechanism(
        self, share: float, bound: float, n_counts: int = 0
    ) -> GaussianMechanism | DiscreteGaussianMechanism:
        if self.noise == DISCRETE:
            return self._discrete(share, n_counts)
        return GaussianMechanism(self.noise_multiplier / math.sqrt(share), self.weight_limit * bound)

    def _all_counts(
        self, rows: DescribedRows, asked: Questions, share: float, stream: SecretStream
    ) -> tuple[Questions, DescribedRows, list[Tally]]:
        """Release the counts, and return them with the cells of skewed columns and the rows in these."""
        if self.noise == DISCRETE or not any(cells.may_be_skewed for cells in asked.cells):
            return asked, rows, self._counts(rows, asked, share, stream.spawn("counts"))
        first = self._counts(rows, asked, _LOOK * share, stream.spawn("first counts"))
        whole = add_up(first, asked.n)
        cells = [each.refined(count, whole.deviation) for each, count in zip(asked.cells, whole.counts, strict=True)]
        changed = [j for j, (before, now) in enumerate(zip(asked.cells, cells, strict=True)) if now is not before]
        codes = list(rows.codes)
        for j in changed:
            codes[j] = cells[j].codes(rows.values[j])
        asked, rows = asked._replace(cells=cells), rows._replace(codes=codes)
        second = self._counts(rows, asked, (1.0 - _LOOK) * share, stream.spawn("counts"))
        return asked, rows, second if changed else list(map(_averaged, first, second))

    def _counts(self, rows: DescribedRows, asked: Questions, share: float, stream: SecretStream) -> list[Tally]:
        n_groups, codes = len(asked.groups), rows.codes
        several = n_groups > 1
        mechanism = self._mechanism(share, column_sensitivity(len(codes) + several, self.adjacency), len(codes))
        sizes = [cells.size for cells in asked.cells]
        exact = [_add_up(rows, asked, [each], [size], rows.weights) for each, size in zip(codes, sizes, strict=True)]
        if several:
            exact.append(_add_up(rows, asked, [], [], rows.weights)[:, None])
        noisy = released(mechanism, [each.ravel() for each in exact], stream)
        counts = [each.reshape(n_groups, -1) for each in noisy]
        deviation, of_cells = mechanism.standard_deviation, counts[: len(codes)]
        totals, of_total = _totals(counts, deviation, asked.n)
        return [
            Tally(total, of_total, [_adding_up(each[g], total) for each in of_cells], deviation, None, {}, {})
            for g, total in enumerate(totals.tolist())
        ]

    def _moments(
        self, rows: DescribedRows, asked: Questions, whole: Tally, share: float, stream: SecretStream
    ) -> list[MomentsOfNumbers]:
        mechanism = self._mechanism(share, sensitivity(0.0, self.adjacency))
        columns = [(j, cells) for j, cells in enumerate(asked.cells) if cells.is_line]
        d = len(columns)
        weight = math.sqrt(d / 2.0 if asked.correlation else d)
        # A missing value counts as the noisy mean of its column; as 0.0, the center of the bounds, without one.
        of_gaps = np.zeros(d)
        for k, (j, cells) in enumerate(columns):
            (middle, half), present = cells.scale, whole.shares(j)[:-1]
            if present.sum():
                of_gaps[k] = np.clip((present @ cells.middles / present.sum() - middle) / half, -1.0, 1.0)
        # Add up u u' in each subgroup, in chunks.
        sums = [MomentSum(UnitBall(np.zeros(d + 1), 1.0), 0.0, by_position=False) for _ in asked.groups]
        for start in range(0, len(rows.groups), _ROWS):
            part = slice(start, start + _ROWS)
            scaled = [cells.scaled(rows.values[j][part], gap) for (j, cells), gap in zip(columns, of_gaps, strict=True)]
            u = np.column_stack([np.full(len(scaled[0]), weight), *scaled]) / math.sqrt(weight**2 + d)
            if rows.weights is not None:
                u *= np.sqrt(rows.weights[part, None])
            for g, each in enumerate(sums):
                each.add(u[rows.groups[part] == g])
        # Sums of (1, z) (1, z)' from those of u u'.
        noisy = released(mechanism, [each.vector for each in sums], stream)
        factors = np.full(d + 1, math.sqrt(weight**2 + d))
        factors[0] /= weight
        found = []
        for each, vector in zip(sums, noisy, strict=True):
            lower = each.read(vector).gram
            scale = (weight**2 + d) * mechanism.standard_deviation * each.rounding
            gram = (lower + np.tril(lower, -1).T) * np.outer(factors, factors)
            found.append(MomentsOfNumbers(gram, scale, weight, of_gaps))
        return found

    def _pairs(
        self, rows: DescribedRows, asked: Questions, whole: Tally, share: float, stream: SecretStream
    ) -> list[tuple[dict[ColumnPair, NoisyTable], dict[ColumnPair, NoisySums]]]:
        bound = pairs_sensitivity(len(asked.tables), len(asked.sums), self.adjacency)
        mechanism = self._mechanism(share, bound, len(asked.tables))
        deviation = mechanism.standard_deviation
        tables, place = _levels_of_tables(asked, whole, deviation), {each.name: j for j, each in enumerate(asked.cells)}
        # Numbers are added up in the categories that are frequent by the released counts.
        least, sums = least_counts(whole.n, deviation)[1], {}
        for number, words in asked.sums:
            counts = whole.n * whole.shares(place[words])[:-1]
            sums[number, words] = Merged.frequent(asked.cells[place[words]], counts, least, _LEVELS)
        exact = []
        for (first, second), (a, b) in tables.items():
            cells = [a.places[rows.codes[place[first]]], b.places[rows.codes[place[second]]]]
            exact.append(_add_up(rows, asked, cells, [a.size, b.size], rows.weights))
        for (number, words), levels in sums.items():
            values = asked.cells[place[number]].scaled(rows.values[place[number]], 0.0)
            weighted = values if rows.weights is None else values * rows.weights
            exact.append(_add_up(rows, asked, [levels.places[rows.codes[place[words]]]], [levels.size], weighted))
        # Add noise to all of them at once, and give each subgroup its own.
        noisy = released(mechanism, [each.ravel() for each in exact], stream)
        parts = [each.reshape(like.shape) for each, like in zip(noisy, exact, strict=True)]
        of_tables = list(zip(tables.items(), parts[: len(tables)], strict=True))
        of_sums = list(zip(sums.items(), parts[len(tables) :], strict=True))
        return [
            (
                {pair: NoisyTable(*both, each[g], deviation) for (pair, both), each in of_tables},
                {pair: NoisySums(one, each[g], deviation) for (pair, one), each in of_sums},
            )
            for g in range(len(asked.groups))
        ]


def _averaged(first: Tally, second: Tally) -> Tally:
    """Return counts of the same cells from both releases, as precise as from one release with both fractions."""
    counts = [_LOOK * a + (1.0 - _LOOK) * b for a, b in zip(first.counts, second.counts, strict=True)]
    n, root = _LOOK * first.n + (1.0 - _LOOK) * second.n, math.sqrt(_LOOK)
    return replace(second, n=n, n_deviation=root * first.n_deviation, counts=counts, deviation=root * first.deviation)


def _add_up(
    rows: DescribedRows, asked: Questions, codes: list[np.ndarray], sizes: list[int], values: np.ndarray | None
) -> np.ndarray:
    """Return the number of rows, or the sum of values, of each subgroup in each combination of cells."""
    return add_up_cells([rows.groups, *codes], [len(asked.groups), *sizes], values)


def _levels_of_tables(asked: Questions, whole: Tally, deviation: float) -> dict[ColumnPair, tuple[Merged, Merged]]:
    """Return the categories of both columns of each table, by the released counts; cross-tabulations have all."""
    listed, frequent, least = {}, {}, least_counts(whole.n, deviation)[0]
    for j, cells in enumerate(asked.cells):
        counts = whole.n * whole.shares(j)[:-1]
        as_they_are = Merged(np.arange(cells.size), cells.labels)
        listed[cells.name] = Merged.bins(cells, counts, _BINS) if cells.is_line else as_they_are
        frequent[cells.name] = Merged.frequent(cells, counts, least, _LEVELS)
    chosen = [listed if pair in asked.crosstabs else frequent for pair in asked.tables]
    return {pair: (of[pair[0]], of[pair[1]]) for pair, of in zip(asked.tables, chosen, strict=True)}


def pairs_sensitivity(n_tables: int, n_sums: int, adjacency: str) -> float:
    """Largest norm of the contribution of a row to two-way marginals and to sums of numbers by category.

    It adds 1, or a number in [-1, 1], to one cell of each, or less with a weight: of norm at most sqrt(n_tables +
    n_sums). Under ``replace_one`` a table changes by at most sqrt(2), and the sums of a number by 2, if 1 becomes -1 in
    one cell; the sensitivity is half of the root of 2 n_tables + 4 n_sums.
    """
    return math.sqrt(n_tables / 2.0 + n_sums if adjacency == "replace_one" else n_tables + n_sums)


def least_counts(n: float, deviation: float) -> tuple[float, float]:
    """Return the smallest counts of a category in a table, and in sums of numbers, that is not merged with others.

    A cell of a table then holds as much as a quarter of its noise, if the columns are independent; a category of a sum
    of numbers holds four times the noise.
    """
    return math.sqrt(n * deviation) / 2.0, 4.0 * deviation


def _adding_up(counts: np.ndarray, total: float) -> np.ndarray:
    return counts + (total - counts.sum()) / len(counts)


def _totals(counts: Sequence[np.ndarray], deviation: float, n: float | None) -> tuple[np.ndarray, float]:
    """Return the number of rows of each subgroup and the standard deviation of its noise, from all columns.

    The total of a column of k cells has k times the variance of a cell, so its weight is 1 / k.
    """
    weights = np.array([1.0 / each.shape[1] for each in counts])
    found = np.array([each.sum(axis=1) for each in counts]).T @ weights / weights.sum()
    variance = deviation**2 / float(weights.sum())
    if n is not None:
        found += (n - found.sum()) / len(found)
        variance *= 1.0 - 1.0 / len(found)
    return np.maximum(found, 1.0), math.sqrt(variance)


def add_up(tallies: Sequence[Tally], n: float | None) -> Tally:
    """Return the tally of all subgroups together."""
    if len(tallies) == 1:
        return tallies[0]
    root, first = math.sqrt(len(tallies)), tallies[0]
    total = n or sum(each.n for each in tallies)
    counts = [np.sum(each, axis=0) for each in zip(*(tally.counts for tally in tallies), strict=True)]
    counts = [_adding_up(each, total) for each in counts]
    moments = None
    if first.moments is not None:
        added = np.sum([each.moments.sums for each in tallies if each.moments is not None], axis=0)
        moments = first.moments._replace(sums=added, scale=root * first.moments.scale)
    tables, sums = dict(first.tables), dict(first.sums)
    for pair, table in tables.items():
        together = np.sum([each.tables[pair].counts for each in tallies], axis=0)
        tables[pair] = table._replace(counts=together, deviation=root * table.deviation)
    for pair, one in sums.items():
        together = np.sum([each.sums[pair].sums for each in tallies], axis=0)
        sums[pair] = one._replace(sums=together, deviation=root * one.deviation)
    of_total = 0.0 if n is not None else root * first.n_deviation
    return Tally(total, of_total, counts, root * first.deviation, moments, tables, sums)
