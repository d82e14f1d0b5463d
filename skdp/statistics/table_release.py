"""What is released of a table that is described: counts of cells, then second moments and tables of pairs."""

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
"""Kinds of noise: ideal normal noise, rounded to a public grid; of counts, discrete Gaussian noise."""

_COUNTS, _MOMENTS, _PAIRS = 0.65, 0.25, 0.1
"""Shares of mu^2 of the counts, the moments, and the tables and sums of pairs, where there are all of them."""

_LOOK = 0.1
"""Part of the share of counts for a first release, where columns may be skewed: it says where cells are narrower."""

_BINS, _LEVELS = 8, 24
"""Cells of a number in a table that was asked for, and listed levels of a category in what nobody asked for."""

_ROWS = 1 << 15


class Shares(NamedTuple):
    """Parts of mu^2 that counts, moments and pairs of columns get, which add up to one."""

    counts: float
    moments: float
    pairs: float

    @classmethod
    def by_rule(cls, n_numbers: int, n_pairs: int) -> Shares:
        """Shares of what there is."""
        return cls.of(_COUNTS, _MOMENTS * (n_numbers > 0), _PAIRS * (n_pairs > 0))

    @classmethod
    def of(cls, *parts: float) -> Shares:
        """Shares in these proportions."""
        return cls(*(part / sum(parts) for part in parts))


class DescribedRows(NamedTuple):
    """Columns that were read, the number of the subgroup of each row, and weights or None for none. Private."""

    values: list[np.ndarray]
    groups: np.ndarray
    weights: np.ndarray | None


class Questions(NamedTuple):
    """What is asked of a table; all of it is public.

    Attributes
    ----------
    cells : list of ColumnCells
        Of each column.
    groups : list of str
        Names of the subgroups; one for none.
    correlation : bool
    crosstabs : list of (str, str)
        Pairs whose table is wanted with all levels.
    n : float or None
        Number of rows or units, None where it is private.
    labels : list
        Names of the columns as the frame has them, which may be numbers.
    """

    cells: list[ColumnCells]
    groups: list[str]
    correlation: bool
    crosstabs: list[ColumnPair]
    n: float | None
    labels: list[Any]

    @property
    def numbers(self) -> list[ColumnCells]:
        """Columns on a line."""
        return [each for each in self.cells if each.is_line]

    @property
    def tables(self) -> list[ColumnPair]:
        """Pairs of columns whose counts are measured: those asked for, and for correlations those of categories."""
        words = [each.name for each in self.cells if not each.is_line]
        asked = {frozenset(pair) for pair in self.crosstabs}
        others = itertools.combinations(words, 2) if self.correlation else ()
        return [*self.crosstabs, *(pair for pair in others if frozenset(pair) not in asked)]

    @property
    def sums(self) -> list[ColumnPair]:
        """Numbers and categories of which, for correlations, the numbers are added up by category."""
        words = [each.name for each in self.cells if not each.is_line]
        return list(itertools.product((each.name for each in self.numbers), words)) if self.correlation else []


class NoisyTable(NamedTuple):
    """Noisy counts of a pair of columns, whose last row and column are gaps; each has noise of this deviation."""

    first: Merged
    second: Merged
    counts: np.ndarray
    deviation: float


class NoisySums(NamedTuple):
    """Noisy sums of a number, scaled to [-1, 1], over the rows with each level of a category; the last has the gaps."""

    levels: Merged
    sums: np.ndarray
    deviation: float


class MomentsOfNumbers(NamedTuple):
    """Noisy sums of (1, z) (1, z)', of shape (d + 1, d + 1).

    With the scale c of the noise and the weight w of the constant, entries have independent noise: c on the diagonal,
    c / sqrt(2) off it, c / (w sqrt(2)) in the first row but for its first entry, of c / w^2.

    `of_gaps` has what a gap counted as in each column of z.
    """

    sums: np.ndarray
    scale: float
    weight: float
    of_gaps: np.ndarray


@dataclass(frozen=True)
class Tally:
    """All that is known of the rows of a table, or of a subgroup: noisy sums, and the sizes of their noise.

    Attributes
    ----------
    n, n_deviation : float
        Number of rows or units, and the standard deviation of its noise, 0.0 where it is public.
    counts : list of ndarray
        Of each column: noisy counts of the cells, the last of which is that of the gaps. They add up to n.
    deviation : float
        Of the noise of a count, before they were made to add up.
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
    """How a table is measured; all of it is public.

    Parameters
    ----------
    noise_multiplier : float
        Of one Gaussian release with the whole budget.
    adjacency : {"zero_out", "add_remove", "replace_one"}
    shares : Shares or None
        None for the rule.
    noise : {"rounded", "discrete"}
        Of counts alone, discrete Gaussian noise.
    weight_limit : float
        Of what the rows of a group weigh together; that of a row is at most 1.

    Notes
    -----
    **Guarantees.** `measure` costs as much as one Gaussian release of this noise multiplier. What it returns is a
    function of its releases and of what is public.

    Proof. There are four Gaussian releases at most. Their noise multipliers are that of the whole, divided by the
    roots of shares that add up to one and depend on the public columns alone. What a later one counts depends on the
    output of those before, and its sensitivity is the same for whatever that may be. So they compose to one release,
    as their mu^2 add up (Dong, Roth & Su 2022, corollary 2).

    *Skewed columns.* Counts are released twice, where a column has public bounds and cells of equal width. If most of
    it lies in a small part by the first counts, its cells are narrower there in the second; the cells of a column are
    disjoint whatever their ends are. Else both are averaged by their precision, to the noise of one release.

    *Discrete noise.* A row adds 1 to one count of each column and of each table, which is what
    `skdp.mechanisms.DiscreteGaussianMechanism` prices: `event_of_counts` is the composition of both releases. There are
    no moments, no sums, no weights and no units then.

    *Counts.* A row adds its weight to one cell of each of d columns, which are disjoint, also those of the subgroups:
    as `skdp.mechanisms.bounded_sum.column_sensitivity` has it. The column that names the subgroups is one of
    the d.

    *Moments.* A row adds u u' to the matrix of its subgroup, where u = (w, z) / sqrt(w^2 + d) with z in [-1, 1]^d, so
    that it lies in the unit ball; `skdp.mechanisms.second_moments.sensitivity` is the bound for one matrix. Two rows of
    different subgroups add to different matrices: vectors of norm 1 at right angles, sqrt(2) apart, as far as two rows
    of one subgroup may be.

    *Pairs.* See `pairs_sensitivity`.

    *Weights and groups.* Weights are numbers in [0, 1]; those of a group add up to `weight_limit` at most
    (`skdp.mechanisms.bounded_sum.clip_groups`). What a group adds then lies in `weight_limit` times the convex hull of
    zero and what rows can add, so all bounds hold for groups, multiplied by `weight_limit`. Counts of multiples of
    2**-24 are exact; sums of numbers are rounded in float64, for which the noise has room
    (`skdp.mechanisms.GaussianMechanism`).
    """

    noise_multiplier: float
    adjacency: str
    shares: Shares | None = None
    noise: str = ROUNDED
    weight_limit: float = 1.0

    def event_of_counts(self, n_columns: int, n_tables: int) -> DpEvent:
        """What discrete noise costs, on the counts of so many columns and of so many tables of pairs."""
        return compose([self._discrete(*each).event for each in self._parts(n_columns, n_tables)])

    def check_counts(self, n_columns: int, n_tables: int) -> None:
        """Refuse a noise multiplier whose deviations are beyond those of discrete noise."""
        for share, n in self._parts(n_columns, n_tables):
            DiscreteGaussianMechanism(self.noise_multiplier * math.sqrt(n / share), n)

    def _parts(self, n_columns: int, n_tables: int) -> list[tuple[float, int]]:
        """The share of each release of counts, and how many of them a row changes."""
        shares = self.shares or Shares.by_rule(0, n_tables)
        return [(shares.counts, n_columns), (shares.pairs, n_tables)][: 1 + (n_tables > 0 and shares.pairs > 0.0)]

    def _discrete(self, share: float, n_counts: int) -> DiscreteGaussianMechanism:
        return DiscreteGaussianMechanism.near(self.noise_multiplier / math.sqrt(share), n_counts)

    def measure(self, rows: DescribedRows, asked: Questions, stream: SecretStream) -> tuple[Questions, list[Tally]]:
        """Release, and return the questions, with the cells of skewed columns, and what is known of each subgroup.

        Parameters
        ----------
        rows : DescribedRows
        asked : Questions
        stream : SecretStream
            Of these releases alone.
        """
        shares = self.shares or Shares.by_rule(len(asked.numbers), len(asked.tables) + len(asked.sums))
        codes = [cells.codes(values) for cells, values in zip(asked.cells, rows.values, strict=True)]
        asked, codes, tallies = self._all_counts(rows, codes, asked, shares.counts, stream)
        whole = add_up(tallies, asked.n)
        if asked.numbers and shares.moments:
            found = self._moments(rows, asked, whole, shares.moments, stream.spawn("moments"))
            tallies = [replace(each, moments=moments) for each, moments in zip(tallies, found, strict=True)]
        if (asked.tables or asked.sums) and shares.pairs:
            pairs = self._pairs(rows, codes, asked, whole, shares.pairs, stream.spawn("pairs"))
            tallies = [replace(each, tables=a, sums=b) for each, (a, b) in zip(tallies, pairs, strict=True)]
        return asked, tallies

    def _mechanism(
        self, share: float, bound: float, n_counts: int = 0
    ) -> GaussianMechanism | DiscreteGaussianMechanism:
        if self.noise == DISCRETE:
            return self._discrete(share, n_counts)
        return GaussianMechanism(self.noise_multiplier / math.sqrt(share), self.weight_limit * bound)

    def _all_counts(
        self, rows: DescribedRows, codes: list[np.ndarray], asked: Questions, share: float, stream: SecretStream
    ) -> tuple[Questions, list[np.ndarray], list[Tally]]:
        """Release the counts, and return them with the cells of skewed columns and the cell of each row."""
        if self.noise == DISCRETE or not any(cells.may_be_skewed for cells in asked.cells):
            return asked, codes, self._counts(rows, codes, asked, share, stream.spawn("counts"))
        first = self._counts(rows, codes, asked, _LOOK * share, stream.spawn("first counts"))
        whole = add_up(first, asked.n)
        cells = [each.refined(count, whole.deviation) for each, count in zip(asked.cells, whole.counts, strict=True)]
        changed = [j for j, (before, now) in enumerate(zip(asked.cells, cells, strict=True)) if now is not before]
        for j in changed:
            codes[j] = cells[j].codes(rows.values[j])
        asked = asked._replace(cells=cells)
        second = self._counts(rows, codes, asked, (1.0 - _LOOK) * share, stream.spawn("counts"))
        return asked, codes, second if changed else list(map(_averaged, first, second))

    def _counts(
        self, rows: DescribedRows, codes: list[np.ndarray], asked: Questions, share: float, stream: SecretStream
    ) -> list[Tally]:
        n_groups = len(asked.groups)
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
        # A gap counts as the noisy mean of its column; as 0.0, the middle of the bounds, where there is none.
        of_gaps = np.zeros(d)
        for k, (j, cells) in enumerate(columns):
            (middle, half), present = cells.scale, whole.shares(j)[:-1]
            if present.sum():
                of_gaps[k] = np.clip((present @ cells.middles / present.sum() - middle) / half, -1.0, 1.0)
        # Add up u u' in each subgroup, block by block.
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
        self,
        rows: DescribedRows,
        codes: list[np.ndarray],
        asked: Questions,
        whole: Tally,
        share: float,
        stream: SecretStream,
    ) -> list[tuple[dict[ColumnPair, NoisyTable], dict[ColumnPair, NoisySums]]]:
        bound = pairs_sensitivity(len(asked.tables), len(asked.sums), self.adjacency)
        mechanism = self._mechanism(share, bound, len(asked.tables))
        deviation = mechanism.standard_deviation
        tables, place = _levels_of_tables(asked, whole, deviation), {each.name: j for j, each in enumerate(asked.cells)}
        # Numbers are added up in the levels of categories that are frequent by the counts that were released.
        least, sums = least_counts(whole.n, deviation)[1], {}
        for number, words in asked.sums:
            counts = whole.n * whole.shares(place[words])[:-1]
            sums[number, words] = Merged.frequent(asked.cells[place[words]], counts, least, _LEVELS)
        exact = []
        for (first, second), (a, b) in tables.items():
            cells = [a.places[codes[place[first]]], b.places[codes[place[second]]]]
            exact.append(_add_up(rows, asked, cells, [a.size, b.size], rows.weights))
        for (number, words), levels in sums.items():
            values = asked.cells[place[number]].scaled(rows.values[place[number]], 0.0)
            weighted = values if rows.weights is None else values * rows.weights
            exact.append(_add_up(rows, asked, [levels.places[codes[place[words]]]], [levels.size], weighted))
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
    """Return counts of the same cells by both releases, as precise as by one of both shares."""
    counts = [_LOOK * a + (1.0 - _LOOK) * b for a, b in zip(first.counts, second.counts, strict=True)]
    n, root = _LOOK * first.n + (1.0 - _LOOK) * second.n, math.sqrt(_LOOK)
    return replace(second, n=n, n_deviation=root * first.n_deviation, counts=counts, deviation=root * first.deviation)


def _add_up(
    rows: DescribedRows, asked: Questions, codes: list[np.ndarray], sizes: list[int], values: np.ndarray | None
) -> np.ndarray:
    """Return how many rows, or which sum of values, each subgroup has in each combination of cells."""
    return add_up_cells([rows.groups, *codes], [len(asked.groups), *sizes], values)


def _levels_of_tables(asked: Questions, whole: Tally, deviation: float) -> dict[ColumnPair, tuple[Merged, Merged]]:
    """Return the levels of both columns of each table, by the counts that were released: all that were asked for."""
    listed, frequent, least = {}, {}, least_counts(whole.n, deviation)[0]
    for j, cells in enumerate(asked.cells):
        counts = whole.n * whole.shares(j)[:-1]
        as_they_are = Merged(np.arange(cells.size), cells.labels)
        listed[cells.name] = Merged.bins(cells, counts, _BINS) if cells.is_line else as_they_are
        frequent[cells.name] = Merged.frequent(cells, counts, least, _LEVELS)
    chosen = [listed if pair in asked.crosstabs else frequent for pair in asked.tables]
    return {pair: (of[pair[0]], of[pair[1]]) for pair, of in zip(asked.tables, chosen, strict=True)}


def pairs_sensitivity(n_tables: int, n_sums: int, adjacency: str) -> float:
    """Largest norm of what a row adds to tables of counts and to sums of numbers by category.

    It adds 1, or a number in [-1, 1], to one cell of each, or less with a weight: of norm sqrt(n_tables + n_sums) at
    most. Under ``replace_one`` a table changes by sqrt(2) at most, and the sums of a number by 2, where 1 becomes -1 in
    one cell; the sensitivity is half of the root of 2 n_tables + 4 n_sums.
    """
    return math.sqrt(n_tables / 2.0 + n_sums if adjacency == "replace_one" else n_tables + n_sums)


def least_counts(n: float, deviation: float) -> tuple[float, float]:
    """Return the least counts of a level in a table, and in sums of numbers, that is not merged with others.

    A cell of a table then holds as much as a quarter of its noise, if the columns have nothing to do with each other;
    a level in which numbers are added up, four times the noise.
    """
    return math.sqrt(n * deviation) / 2.0, 4.0 * deviation


def _adding_up(counts: np.ndarray, total: float) -> np.ndarray:
    return counts + (total - counts.sum()) / len(counts)


def _totals(counts: Sequence[np.ndarray], deviation: float, n: float | None) -> tuple[np.ndarray, float]:
    """Return the number of rows of each subgroup and the deviation of its noise: by all columns, which all count them.

    The total of a column of k cells has k times the variance of a cell, so it weighs 1 / k.
    """
    weights = np.array([1.0 / each.shape[1] for each in counts])
    found = np.array([each.sum(axis=1) for each in counts]).T @ weights / weights.sum()
    variance = deviation**2 / float(weights.sum())
    if n is not None:
        found += (n - found.sum()) / len(found)
        variance *= 1.0 - 1.0 / len(found)
    return np.maximum(found, 1.0), math.sqrt(variance)


def add_up(tallies: Sequence[Tally], n: float | None) -> Tally:
    """Return what is known of all subgroups together."""
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
