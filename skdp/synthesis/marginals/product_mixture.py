"""A mixture of products of categorical distributions, fitted to tables of probabilities, and rows drawn from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from skdp._dpsgd.loop import adam, cosine_decay
from skdp.synthesis.marginals.column_levels import Exclusion
from skdp.synthesis.marginals.contingency_tables import ColumnSet
from skdp.synthesis.marginals.denoising import TargetTables

SPREAD = 0.5
"""Standard deviation of the logits of components about those of the one-way tables, at the start."""
MOST_TOGETHER = 200
"""Components that are fitted together at most."""
TRIPLES = 2.0
"""Weight of the errors of triples beside those of pairs."""

_DENSE = 16
"""Largest size of the matrix of all pairs, in units of the cells that are measured, with which one product is made."""
_CELLS_OF_A_PAIR = 1500
"""Cells of one large matrix product that take about as long as the products of one pair."""
_LEAST = 1e-4
_ROWS, _FEW_ROWS = 1 << 16, 1 << 13


class Mixture(NamedTuple):
    """Components in each of which the columns are independent.

    Attributes
    ----------
    levels : tuple of int
    probabilities : ndarray of shape (n_components, sum of levels), float32
        Probabilities of the levels of all columns, one column after the other.
    shares : ndarray of shape (n_components,) or None
        Shares of the components; None if all are equal, as they are where a mixture is fitted.
    """

    levels: tuple[int, ...]
    probabilities: np.ndarray
    shares: np.ndarray | None = None

    @property
    def starts(self) -> np.ndarray:
        """Position of the first level of each column, and the end."""
        return np.concatenate([[0], np.cumsum(self.levels)])

    def column(self, j: int) -> np.ndarray:
        """Return the probabilities of the levels of a column in each component, of shape (n_components, A_j)."""
        start, end = self.starts[j : j + 2]
        part = self.probabilities[:, start:end].astype(np.float64)
        return part / part.sum(axis=1, keepdims=True)

    def pair(self, i: int, j: int) -> np.ndarray:
        """Return the probabilities of all combinations of levels of two columns."""
        shares = np.full(len(self.probabilities), 1.0 / len(self.probabilities)) if self.shares is None else self.shares
        return (shares[:, None] * self.column(i)).T @ self.column(j)

    def given(self, weights: Mapping[int, np.ndarray]) -> tuple[Mixture, np.ndarray]:
        """Return the mixture of rows that meet conditions, and how likely the rows of each component do.

        Parameters
        ----------
        weights : mapping of int to ndarray of shape (A_j,)
            For some of the columns, the probability of each level to meet the condition.

        Notes
        -----
        Exact, by Bayes' rule: a component's share is multiplied by the probability that its rows meet all conditions,
        which is a product over its independent columns, and so are the levels within it.
        """
        starts, met = self.starts, np.ones(len(self.probabilities))
        probabilities = self.probabilities.astype(np.float64)
        for j, weight in weights.items():
            part = slice(starts[j], starts[j + 1])
            chosen = self.column(j) * weight
            total = chosen.sum(axis=1, keepdims=True)
            met *= total[:, 0]
            probabilities[:, part] = np.where(
                total > 0, chosen / np.where(total > 0, total, 1.0), weight / weight.sum()
            )
        shares = met if self.shares is None else met * self.shares
        found = shares / (shares.sum() or 1.0)
        return Mixture(self.levels, probabilities.astype(np.float32), found), met

    def draw(
        self,
        n: int,
        rng: np.random.Generator,
        exclusions: Sequence[Exclusion] = (),
        last: np.ndarray | None = None,
        balanced: bool = False,
    ) -> np.ndarray:
        """Return n rows of levels, of shape (n, d).

        `last` are levels of the last column that are given. Rows are drawn independently, or `balanced`: as many of
        each component, and of each level within it, as the model says, rounded at random.
        """
        made = np.empty((n, len(self.levels)), np.int32)
        for start in range(0, n, _ROWS):
            part = slice(start, min(start + _ROWS, n))
            given = None if last is None else last[part]
            made[part] = self._draw_block(part.stop - start, rng, exclusions, given, balanced)
        return made

    def filled(self, rows: np.ndarray, known: Sequence[int], rng: np.random.Generator) -> np.ndarray:
        """Return rows of levels, of shape (n, d), with all columns but the known ones drawn anew, given these.

        Exact, by Bayes' rule: a component is as likely for a row as its known levels are there.
        """
        made, given = rows.copy(), set(known)
        likely = {j: np.log(np.maximum(self.column(j), 1e-300)) for j in given}
        for start in range(0, len(rows), _FEW_ROWS):
            part = made[start : start + _FEW_ROWS]
            logits = sum((likely[j][:, part[:, j]].T for j in sorted(given)), start=np.zeros((len(part), 1)))
            shares = np.exp(logits - logits.max(axis=1, keepdims=True))
            shares /= shares.sum(axis=1, keepdims=True)
            component = _choose(shares, np.arange(len(part)), rng.random(len(part)))
            for j in range(len(self.levels)):
                if j not in given:
                    part[:, j] = _choose(self.column(j), component, rng.random(len(part)))
        return made

    def _draw_block(
        self, n: int, rng: np.random.Generator, exclusions: Sequence[Exclusion], last: np.ndarray | None, balanced: bool
    ) -> np.ndarray:
        # Rows that cannot occur are drawn again, many times.
        rows = self._draw_freely(n, rng, last, balanced)
        wrong = _excluded(rows, exclusions)
        for _ in range(200):
            if not wrong.any():
                return rows
            places = np.flatnonzero(wrong)
            rows[places] = self._draw_freely(len(places), rng, None if last is None else last[places])
            wrong[places] = _excluded(rows[places], exclusions)
        if wrong.any():  # next to impossible by the model too: rows that are allowed take their place
            spare = self._draw_freely(_ROWS, rng, None if last is None else np.resize(last, _ROWS))
            spare = np.concatenate([rows[~wrong], spare[~_excluded(spare, exclusions)]])
            if not len(spare):
                raise RuntimeError(
                    "No row that the schema permits could be drawn, because its impossible combinations have nearly "
                    "all of the probability. Remove some of `impossible`."
                )
            rows[wrong] = spare[rng.integers(len(spare), size=int(wrong.sum()))]
        return rows

    def _draw_freely(
        self, n: int, rng: np.random.Generator, last: np.ndarray | None, balanced: bool = False
    ) -> np.ndarray:
        d, k = len(self.levels), len(self.probabilities)
        rows = np.empty((n, d), np.int32)
        places = _even_places if balanced else _free_places
        shares = np.full(k, 1.0 / k) if self.shares is None else self.shares
        if last is None:
            component = draw_levels(shares, n, rng, balanced)
        else:
            rows[:, d - 1] = last
            by_label = self.column(d - 1).T * shares  # a component is as likely as it is for the given level
            by_label /= np.maximum(by_label.sum(axis=1, keepdims=True), 1e-300)
            component = _choose(by_label, last, places(last, rng))
        strata = component if last is None else component + k * last
        for j in range(d if last is None else d - 1):
            rows[:, j] = _choose(self.column(j), component, places(strata, rng))
        return rows


def _excluded(rows: np.ndarray, exclusions: Sequence[Exclusion]) -> np.ndarray:
    wrong = np.zeros(len(rows), bool)
    for each in exclusions:
        wrong |= each.matches(rows)
    return wrong


def draw_levels(shares: np.ndarray, n: int, rng: np.random.Generator, balanced: bool) -> np.ndarray:
    """Return n levels, drawn by their shares, which need not sum to one."""
    which = np.zeros(n, np.int32)
    return _choose((shares / shares.sum())[None, :], which, (_even_places if balanced else _free_places)(which, rng))


def _free_places(strata: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return independent numbers between 0 and 1."""
    return rng.random(len(strata))


def _even_places(strata: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return numbers between 0 and 1, each uniform, and those of the m entries of a stratum 1 / m apart.

    Which entry has which is drawn at random.
    """
    order = np.argsort(strata + rng.random(len(strata)))
    _, first, size = np.unique(strata[order], return_index=True, return_counts=True)
    rank = np.arange(len(strata)) - np.repeat(first, size)
    places = np.empty(len(strata))
    places[order] = (rank + np.repeat(rng.random(len(size)), size)) / np.repeat(size, size)
    return places


def _choose(shares: np.ndarray, which: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return a level for each entry of `which`, by its place from 0 to 1 in that row of `shares`, of shape (k, A)."""
    k, size = shares.shape
    ends = np.minimum(np.cumsum(shares, axis=1), 1.0)
    ends[:, -1] = 1.0
    # One ascending list of the ends of all rows: row r lies between r and r + 1.
    flat = (ends + np.arange(k)[:, None]).ravel()
    found = np.searchsorted(flat, which + places, side="right") - which * size
    return np.clip(found, 0, size - 1).astype(np.int32)


def fit_mixture(
    levels: Sequence[int], targets: TargetTables, n_components: int, n_iter: int, rng: np.random.Generator
) -> Mixture:
    """Fit the probabilities of all components to tables, by Adam on the sum of squared errors.

    Of more than `MOST_TOGETHER` components, parts of equal size are fitted to all tables each by itself, and put
    together: what tables do not tell is then a mean of several guesses. If all pairs of columns are there, or many, one
    matrix product gives the errors of all; else a product a pair.

    Parameters
    ----------
    levels : sequence of int
    targets : TargetTables
        Tables of probabilities. Nothing of the rows but these goes into the fit.
    n_components, n_iter : int
    rng : numpy.random.Generator
        For the start.
    """
    starts = np.concatenate([[0], np.cumsum(levels)])
    column = np.repeat(np.arange(len(levels)), levels)
    logits = np.concatenate([np.log(np.maximum(one, _LEAST)) for one in targets.ones])
    losses = _losses(levels, targets)
    n_parts, parts = -(-n_components // MOST_TOGETHER), []
    for k in range(n_parts):
        size = (n_components + k) // n_parts
        theta = (logits + SPREAD * rng.standard_normal((size, len(logits)))).astype(np.float32)
        parts.append(_descended(theta, losses, starts, column, n_iter))
    return Mixture(tuple(levels), np.concatenate(parts))


def _descended(theta: np.ndarray, losses: list[Any], starts: np.ndarray, column: np.ndarray, n_iter: int) -> np.ndarray:
    """Return the probabilities of components, after as many steps from these logits."""
    # The gradient by the logits, through the softmax of each column.
    optimizer = adam(cosine_decay(0.1, 0.0, n_iter), 0.9, 0.99, 1e-10)
    flat = theta.ravel()
    state = optimizer.init(flat)
    for _ in range(n_iter):
        probabilities = _softmax(flat.reshape(theta.shape), starts, column)
        gradient = np.zeros_like(theta)
        for loss in losses:
            loss.add_gradient(probabilities, gradient)
        gradient *= probabilities
        gradient -= probabilities * np.add.reduceat(gradient, starts[:-1], axis=1)[:, column]
        flat, state = optimizer.update(gradient.ravel(), state, flat)
    return _softmax(flat.reshape(theta.shape), starts, column)


def _softmax(theta: np.ndarray, starts: np.ndarray, column: np.ndarray) -> np.ndarray:
    raised: np.ndarray = np.exp(np.clip(theta, np.float32(-30), np.float32(30)))
    raised /= np.add.reduceat(raised, starts[:-1], axis=1)[:, column]
    return raised


def _losses(levels: Sequence[int], targets: TargetTables) -> list[Any]:
    d = sum(size > 1 for size in levels)
    n_cells = sum(table.size for table in targets.pairs.values())
    dense = sum(levels) ** 2 <= max(_DENSE * n_cells, _CELLS_OF_A_PAIR * len(targets.pairs))
    losses: list[Any] = [_OneProduct(levels, targets.pairs) if dense else _ProductPerPair(levels, targets.pairs)]
    if len(targets.pairs) < d * (d - 1) // 2 or not targets.pairs:
        losses.append(_Ones(targets.ones))
    if targets.triples:
        losses.append(_Triples(levels, targets.triples))
    return losses


class _Ones:
    """Errors of the one-way tables, for columns that are in no pair."""

    def __init__(self, ones: Sequence[np.ndarray]) -> None:
        self._wanted = np.concatenate(ones).astype(np.float32)

    def add_gradient(self, probabilities: np.ndarray, gradient: np.ndarray) -> None:
        gradient += probabilities.mean(axis=0) - self._wanted


class _OneProduct:
    """Errors of pairs of columns, as one product of the probabilities with themselves."""

    def __init__(self, levels: Sequence[int], pairs: Mapping[ColumnSet, np.ndarray]) -> None:
        self._wanted, self._there = _as_matrix(levels, pairs)

    def add_gradient(self, probabilities: np.ndarray, gradient: np.ndarray) -> None:
        errors = probabilities.T @ probabilities
        errors *= np.float32(1.0 / len(probabilities))
        errors -= self._wanted
        errors *= self._there
        gradient += probabilities @ errors


class _ProductPerPair:
    """Errors of few of the pairs, in memory that grows with their tables alone."""

    def __init__(self, levels: Sequence[int], pairs: Mapping[ColumnSet, np.ndarray]) -> None:
        starts = np.concatenate([[0], np.cumsum(levels)])
        self._pairs = [
            (slice(starts[i], starts[i + 1]), slice(starts[j], starts[j + 1]), table.astype(np.float32))
            for (i, j), table in pairs.items()
        ]

    def add_gradient(self, probabilities: np.ndarray, gradient: np.ndarray) -> None:
        scale = np.float32(1.0 / len(probabilities))
        for first, second, wanted in self._pairs:
            one, other = probabilities[:, first], probabilities[:, second]
            errors = one.T @ other
            errors *= scale
            errors -= wanted
            gradient[:, first] += other @ errors.T
            gradient[:, second] += one @ errors


class _Triples:
    """Errors of all pairs of columns within each class, the label being the last column."""

    def __init__(self, levels: Sequence[int], triples: Mapping[ColumnSet, np.ndarray]) -> None:
        *others, n_classes = levels
        self._width = sum(others)
        parts = [
            _as_matrix(others, {(i, j): table[:, :, c] for (i, j, _), table in triples.items()})
            for c in range(n_classes)
        ]
        self._wanted = [wanted for wanted, _ in parts]
        self._there = parts[0][1] * np.float32(TRIPLES)

    def add_gradient(self, probabilities: np.ndarray, gradient: np.ndarray) -> None:
        rows, scale = probabilities[:, : self._width], np.float32(1.0 / len(probabilities))
        for c, wanted in enumerate(self._wanted, start=self._width):
            label = probabilities[:, c : c + 1]
            errors = (rows * label).T @ rows
            errors *= scale
            errors -= wanted
            errors *= self._there
            slope = rows @ errors
            gradient[:, : self._width] += label * slope
            gradient[:, c] += 0.5 * np.einsum("ij,ij->i", slope, rows)


def _as_matrix(levels: Sequence[int], pairs: Mapping[ColumnSet, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return tables of pairs as blocks of a symmetric matrix, and a matrix of ones where there is a table."""
    starts = np.concatenate([[0], np.cumsum(levels)])
    wanted = np.zeros((starts[-1], starts[-1]), np.float32)
    there = np.zeros_like(wanted)
    for (i, j), table in pairs.items():
        first, second = slice(starts[i], starts[i + 1]), slice(starts[j], starts[j + 1])
        wanted[first, second], wanted[second, first] = table, table.T
        there[first, second] = there[second, first] = 1.0
    return wanted, there
