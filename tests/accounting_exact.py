"""Exact delta of drawn compositions, by means that share no code with the accountant.

A composition is a list of parts (kind, value, count): ("gaussian", (q, sigma), n), ("laplace", scale, n) and
("response", (epsilon, delta), n). `binomial_delta` is a sum over the outcomes of all randomized responses, with the
closed form of the Gaussian in each: exact. `lattice_delta` lays each loss, taken on a million equal steps of the noise,
on a fine lattice and convolves it there.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, log_ndtr, ndtr

from skdp.accounting import (
    DpEvent,
    EpsilonDeltaDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
    compose,
)

Part = tuple[str, object, int]


class Drawn(NamedTuple):
    """A composition, the delta to cost it at, and whether neighbors replace a record."""

    parts: tuple[Part, ...]
    delta: float
    replace_one: bool

    @property
    def adjacency(self) -> str:
        return "replace_one" if self.replace_one else "add_remove"


def drawn(number: int, seed: int) -> list[Drawn]:
    """Compositions of one to three kinds, delta from 1e-15 to 1e-1."""
    rng = np.random.default_rng(seed)
    return [_draw(rng) for _ in range(number)]


def _draw(rng: np.random.Generator) -> Drawn:
    delta = float(10 ** rng.uniform(-15, -1))
    parts = tuple(_draw_part(rng, delta) for _ in range(rng.choice([1, 1, 1, 2, 2, 3])))
    return Drawn(parts, delta, bool(rng.random() < 0.3))


def _draw_part(rng: np.random.Generator, delta: float) -> Part:
    kind = rng.choice(["gaussian", "sampled", "sampled", "laplace", "response", "promise"])
    if kind == "gaussian":
        return "gaussian", (1.0, float(10 ** rng.uniform(-0.3, 2))), int(10 ** rng.uniform(0, 2))
    if kind == "sampled":
        q, sigma = float(10 ** rng.uniform(-6, 0)), float(10 ** rng.uniform(-0.5, 1))
        return "gaussian", (q, sigma), int(10 ** rng.uniform(0, 4))
    epsilon = float(10 ** rng.uniform(-3, 0.5))
    if kind == "laplace":
        return "laplace", 1.0 / epsilon, int(10 ** rng.uniform(0, 2))
    count = int(10 ** rng.uniform(0, 2.3))
    share = float(10 ** rng.uniform(-4, -0.5)) if kind == "promise" else 0.0
    return "response", (epsilon, share * delta / count), count


def event_of(parts: tuple[Part, ...]) -> DpEvent:
    """The event of a composition."""

    def one(kind: str, value: object) -> DpEvent:
        if kind == "laplace":
            return LaplaceDpEvent(value)
        if kind == "response":
            return EpsilonDeltaDpEvent(*value)
        q, sigma = value
        return PoissonSampledDpEvent(q, GaussianDpEvent(sigma)) if q < 1.0 else GaussianDpEvent(sigma)

    return compose([SelfComposedDpEvent(one(kind, value), count) for kind, value, count in parts])


# --- closed forms ----------------------------------------------------------------------------------------


def _gaussian_delta(epsilon: np.ndarray, mu: float) -> np.ndarray:
    """delta of the Gaussian at any real epsilon."""
    if mu == 0.0:
        return np.maximum(-np.expm1(np.minimum(epsilon, 0.0)), 0.0)
    return ndtr(-epsilon / mu + mu / 2) - np.exp(epsilon + log_ndtr(-epsilon / mu - mu / 2))


def binomial_delta(parts: tuple[Part, ...], epsilon: float, replace_one: bool = False) -> float:
    """delta of randomized responses and unsampled Gaussians; exact but for rounding of some 1e-13 in proportion."""
    loss, mass, log_kept, squares = np.zeros(1), np.ones(1), 0.0, 0.0
    for kind, value, n in parts:
        if kind == "gaussian":
            assert value[0] == 1.0
            squares += n / value[1] ** 2 * (4.0 if replace_one else 1.0)
            continue
        assert kind == "response"
        size, revealed = value
        log_kept += n * math.log1p(-revealed)
        k = np.arange(n + 1.0)
        logs = gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0) - k * math.log1p(math.exp(-size))
        logs -= (n - k) * math.log1p(math.exp(size))
        loss = np.add.outer(loss, (2.0 * k - n) * size).ravel()
        mass = np.multiply.outer(mass, np.exp(logs)).ravel()
    at = epsilon - loss
    each = -np.expm1(np.minimum(at, 0.0)) if squares == 0.0 else _gaussian_delta(at, math.sqrt(squares))
    return -math.expm1(log_kept) + math.exp(log_kept) * math.fsum(mass * each)


# --- a lattice -------------------------------------------------------------------------------------------


Cut = tuple[np.ndarray, np.ndarray, int, float]  # losses, their probabilities, how often, and the anchor


class _Losses(NamedTuple):
    """One release: losses, their probabilities under P and Q, and the probability of infinite loss."""

    loss: np.ndarray
    mass: np.ndarray
    other: np.ndarray
    infinite: float
    count: int
    anchor: float = 0.0  # where the lattice has a point: bounded losses have a mass of their own at the top


_NODES = 1 << 18
_COARSEST, _FINEST = 1 << 15, 1 << 23  # points of a lattice


def _gaussian_losses(q: float, sigma: float, direction: str, count: int) -> _Losses:
    m = 1.0 / sigma
    z = np.linspace(-15.0 - m, 15.0 + m, _NODES)
    density = np.exp(-0.5 * z * z) * (z[1] - z[0]) / math.sqrt(2.0 * math.pi)

    def ratio(shift: float) -> np.ndarray:
        """Log of (1 - q) + q N(shift, 1) / N(0, 1), to full accuracy near 0."""
        y = shift * z - 0.5 * shift * shift
        if q == 1.0 or shift == 0.0:
            return y
        far = np.logaddexp(math.log1p(-q), y + math.log(q))
        return np.where(y < 30.0, np.log1p(q * np.expm1(np.minimum(y, 30.0))), far)

    up, down = {"remove": (m, 0.0), "add": (0.0, -m), "replace": (m, -m)}[direction]
    mass, other = density * np.exp(np.minimum(ratio(up), 700.0)), density * np.exp(np.minimum(ratio(down), 700.0))
    return _Losses(ratio(up) - ratio(down), mass, other, 0.0, count)


def _laplace_losses(size: float, count: int) -> _Losses:
    edges = np.linspace(-size, size, _NODES + 1)
    middle, width = 0.5 * (edges[1:] + edges[:-1]), edges[1] - edges[0]
    loss = np.concatenate([[-size], middle, [size]])
    mass = np.concatenate([[0.5 * math.exp(-size)], 0.25 * width * np.exp(0.5 * (middle - size)), [0.5]])
    return _Losses(loss, mass, mass * np.exp(-loss), 0.0, count, size)


def _response_losses(size: float, revealed: float, count: int) -> _Losses:
    top = (1.0 - revealed) / (1.0 + math.exp(-size))
    mass = np.array([top * math.exp(-size), top])
    return _Losses(np.array([-size, size]), mass, mass[::-1].copy(), revealed, count, size)


def losses_of(parts: tuple[Part, ...], direction: str) -> list[_Losses]:
    """Each part's loss in one direction of neighbors: "remove", "add" or "replace"."""
    twice, found = 2.0 if direction == "replace" else 1.0, []
    for kind, value, n in parts:
        if kind == "gaussian":
            found.append(_gaussian_losses(*value, direction, n))
        elif kind == "laplace":
            found.append(_laplace_losses(twice / value, n))
        else:
            found.append(_response_losses(*value, n))
    return found


def _log_moment(loss: np.ndarray, mass: np.ndarray, theta: float) -> float:
    with np.errstate(divide="ignore"):
        logs = np.log(mass) + theta * loss
    top = logs.max()
    return float(top + math.log(np.exp(logs - top).sum()))


class Lattice:
    """The composed loss near one epsilon: what lies so far above that it counts in full is taken as infinite."""

    def __init__(self, found: list[_Losses], epsilon: float, delta: float, size: int) -> None:
        self.infinite, cut = 0.0, []
        for one in found:
            order = np.argsort(one.loss)
            loss, mass, other = one.loss[order], one.mass[order], one.other[order]
            above = np.cumsum(other[::-1])[::-1] * one.count * math.exp(min(epsilon, 700.0))
            keep = above > 1e-9 * delta
            lost = one.infinite + float(mass[~keep].sum())
            self.infinite += one.count * math.log1p(-min(lost, 1.0 - 1e-16))
            cut.append((loss[keep], mass[keep], one.count, one.anchor))
        self.infinite = -math.expm1(self.infinite)
        coarse = [self._coarsen(loss, mass, count) for loss, mass, count, _ in cut]

        def moment(theta: float) -> float:
            return sum(count * _log_moment(loss, mass, theta) for loss, mass, count in coarse)

        orders = np.geomspace(1e-3, 1e5, 161)
        bound = [moment(o) - o * epsilon + o * math.log(o) - (1 + o) * math.log1p(o) for o in orders]
        self.theta = float(orders[int(np.argmin(bound))])
        base = moment(self.theta)
        reach = [(moment(self.theta + t) - base + 32.0) / t for t in orders]
        top = max(min(reach), epsilon)
        bottom = max(-(moment(self.theta - t) - base + 32.0) / t for t in orders)
        bottom = min(bottom, epsilon)
        self.width = (top - bottom) / (size - 16)
        self._compose(cut, epsilon, top, size)

    @staticmethod
    def _coarsen(loss: np.ndarray, mass: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray, int]:
        if loss.size < 4000:
            return loss, mass, count
        groups = np.arange(0, loss.size, loss.size // 2000)
        total = np.maximum(np.add.reduceat(mass, groups), 1e-300)
        return np.add.reduceat(mass * loss, groups) / total, total, count

    def _compose(self, cut: list[Cut], epsilon: float, top: float, size: int) -> None:
        h, theta = self.width, self.theta
        power, log_scale = np.ones(size // 2 + 1, dtype=complex), 0.0
        base = sum(count * anchor for _, _, count, anchor in cut)
        for loss, mass, count, anchor in cut:
            # what lies so low that after tilting it does not matter is raised
            loss = np.maximum(loss, (_log_moment(loss, mass, theta) - 32.0 - math.log(count)) / theta) - anchor
            low = np.floor(loss / h)
            share = np.clip(np.expm1(low * h - loss) / math.expm1(-h), 0.0, 1.0)
            first = int(low.min())
            slot = (low - first).astype(np.int64)
            total = np.bincount(slot + 1, mass * share, minlength=int(slot.max()) + 2)
            total += np.bincount(slot, mass * (1.0 - share), minlength=total.size)
            position = first + np.arange(total.size)
            with np.errstate(divide="ignore"):
                logs = np.log(total) + theta * h * position
            k = logs.max() + math.log(np.exp(logs - logs.max()).sum())
            log_scale += count * (k + theta * anchor)
            spectrum = np.fft.rfft(np.bincount(position % size, np.exp(logs - k), minlength=size))
            alive = np.abs(spectrum) > 1e-300
            power[alive] *= np.exp(count * np.log(spectrum[alive]))
            power[~alive] = 0.0
        tilted = np.fft.irfft(power, size)
        last = math.ceil((top - base) / h)
        position = np.arange(last - size + 1, last + 1)
        over = base + h * position - epsilon
        above = over > 0.0
        each = tilted[position[above] % size] * np.exp(-theta * over[above]) * -np.expm1(-over[above])
        self.delta = self.infinite + float(each.sum()) * math.exp(min(log_scale - theta * epsilon, 700.0))


def lattice_delta(parts: tuple[Part, ...], epsilon: float, delta: float, replace_one: bool) -> float:
    """delta at `epsilon`, of the costlier direction, to within some 1e-4 of it where it is near `delta`.

    The lattice's figure is above the truth by a term of second order in its width: lattices four times as fine follow
    until two of them agree, and that term is taken off.
    """
    worst = 0.0
    for direction in ("replace",) if replace_one else ("remove", "add"):
        found, points = losses_of(parts, direction), _COARSEST
        if len(found) == 1 and found[0].count == 1:  # nothing to convolve: a sum over the steps of the noise
            (only,) = found
            over = np.maximum(only.mass - math.exp(min(epsilon, 700.0)) * only.other, 0.0)
            worst = max(worst, only.infinite + float(over.sum()))
            continue
        last = Lattice(found, epsilon, delta, points).delta
        while points < _FINEST:
            points *= 4
            finer = Lattice(found, epsilon, delta, points).delta
            change = last - finer
            last = finer
            if abs(change) <= 2e-3 * finer:
                break
        worst = max(worst, last - change / 15.0)
    return worst
