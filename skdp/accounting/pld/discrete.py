"""Pairs of weighted losses, with the interface of `pairs.Pair`; the loss itself is the place."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skdp._typing import Doubles

from ..dominating.atoms import LossAtoms
from ..dominating.pairs import Directions, dominating, fixed_gaussian
from ..formulas.quadrature import ERROR, rounding
from ..releases import Releases
from .pairs import Atoms
from .stick import epsilon_of, hockey_stick

__all__ = ["AtomsPair", "atoms_pairs", "paired"]

_SAFE = 1.0 + 1e-12  # covers rounding of sums, and the error of a quadrature


@dataclass(frozen=True, eq=False)
class AtomsPair:
    """A pair of weighted losses, one direction of one release.

    Attributes
    ----------
    pair : LossAtoms
    count : int
        How often the release is made.
    symmetric : bool
        Whether both directions of neighbours have this pair.
    """

    pair: LossAtoms
    count: int
    symmetric: bool
    plain = False
    rate = 1.0

    @property
    def infinite(self) -> float:
        """Mass of P at infinite loss."""
        return self.pair.infinite

    @property
    def variation(self) -> float:
        """Total variation of the pair."""
        return min(self.pair.profile(0.0) * _SAFE, 1.0)

    @cached_property
    def _raised(self) -> tuple[Doubles, Doubles]:
        """Losses and masses, raised by as much as makes up for rounding."""
        atoms = self.atoms(float(self.pair.loss[0]), float(self.pair.loss[-1]))
        return atoms.loss, np.exp(atoms.log_weight)

    def delta_at(self, epsilon: float) -> float:
        """Delta of one release, a sum."""
        return min(1.0, hockey_stick(*self._raised, epsilon) * _SAFE + self.infinite * _SAFE)

    def epsilon_at(self, delta: float) -> float:
        """Epsilon of one release."""
        left = (delta - self.infinite * _SAFE) / _SAFE
        if left <= 0.0:
            return math.inf
        if self.delta_at(0.0) <= delta:
            return 0.0
        epsilon = max(0.0, epsilon_of(*self._raised, left))
        for step in (1e-14, 1e-12, 1e-10):  # no rounding in finding it puts it too low
            if self.delta_at(epsilon) <= delta:
                return epsilon
            epsilon += step * max(epsilon, 1.0)
        return float(self._raised[0][np.searchsorted(self._raised[0], epsilon)])

    @cached_property
    def _log_tails(self) -> tuple[Doubles, Doubles, Doubles]:
        """Log of the mass of P below each loss and above it, and of that of Q above it."""
        log_p, log_q = self.pair.log_weight, self.pair.log_weight - self.pair.loss
        below = np.logaddexp.accumulate(log_p)
        above, other = (np.logaddexp.accumulate(logs[::-1])[::-1] for logs in (log_p, log_q))
        nothing = -math.inf
        return np.append(nothing, below[:-1]), np.append(above[1:], nothing), np.append(other[1:], nothing)

    def span(self, log_low: float, log_lost: float, log_other: float = -math.inf) -> tuple[float, float]:
        """Range of the loss outside which P has e^{log_low} below, and above P has e^{log_lost} or Q e^{log_other}."""
        below, above, other = self._log_tails
        first = int(np.searchsorted(below, log_low, side="right")) - 1
        last = min(
            int(np.searchsorted(-above, -log_lost, side="left")), int(np.searchsorted(-other, -log_other, side="left"))
        )
        first, last = max(first, 0), min(last, above.size - 1)
        return float(self.pair.loss[first]), float(self.pair.loss[max(first, last)])

    def above(self, span: tuple[float, float]) -> tuple[float, float]:
        """Finite mass of P above the span, and that of Q."""
        last = int(np.searchsorted(self.pair.loss, span[1], side="right")) - 1
        _, above, other = self._log_tails
        return math.exp(float(above[last])), math.exp(float(other[last]))

    def raise_span(self, span: tuple[float, float], loss: float) -> tuple[float, float]:
        """`span` without losses below the last that is at most `loss`, to which those are raised."""
        last = int(np.searchsorted(self.pair.loss, loss, side="right")) - 1
        return max(span[0], min(float(self.pair.loss[max(last, 0)]), span[1])), span[1]

    def atoms(self, low: float, high: float) -> Atoms:
        """The losses from `low` to `high`; those below are raised to the first."""
        first = int(np.searchsorted(self.pair.loss, low, side="left"))
        last = int(np.searchsorted(self.pair.loss, high, side="right"))
        first = min(first, last - 1)
        below, above, _ = self._log_tails
        lost = self.pair.infinite + math.exp(float(above[last - 1]))
        weight = self.pair.log_weight[first:last].copy()
        weight[0] = np.logaddexp(weight[0], below[first])
        loss = self.pair.loss[first:last]
        error = ERROR + rounding(float(weight.min()), float(np.abs(loss).max()))
        return Atoms(loss, weight, 0.0, lost).lift(error, self.rate)

    def atoms_in_buckets(self, low: float, high: float, width: float, offset: float = 0.0) -> Atoms:
        """The same, as there is nothing to integrate."""
        return self.atoms(low, high)


def paired(found: Releases, replace_one: bool) -> list[tuple[Directions, int]]:
    """Pairs of the releases that are priced by their weighted losses, and how often each is made."""
    every = [(dominating(each.event, replace_one), each.times) for each in found.paired]
    return every + [(fixed_gaussian(share, noise), count) for share, noise, count in found.without_replacement]


def atoms_pairs(found: Releases, replace_one: bool) -> tuple[list[AtomsPair], list[AtomsPair]]:
    """The same as pairs to compose, for each direction of neighbours."""
    directed: tuple[list[AtomsPair], list[AtomsPair]] = ([], [])
    for pairs, count in paired(found, replace_one):
        for direction in (0, 1):
            directed[direction].append(AtomsPair(pairs[direction % len(pairs)], count, len(pairs) == 1))
    return directed
