"""Regression targets between public bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp._checks.leaks import Y_BOUNDS_READ, note_leaks, report_leak
from skdp._checks.parameters import check_choice, check_real, show
from skdp._checks.rows import check_targets

_CONSTRAINT = "a public number from -1e100 to 1e100"

TargetBounds = tuple[float, float]


class TargetScale(NamedTuple):
    """Map of targets between their bounds into [-1, 1]: (y - middle) / half, or the same for the logarithm of y.

    The map of a target is independent of other targets.
    """

    middle: float
    half: float
    is_log: bool = False

    @classmethod
    def of(cls, bounds: TargetBounds, fit_intercept: bool, *, is_log: bool = False) -> TargetScale:
        """Scale of targets between `bounds`. Without an intercept nothing is subtracted."""
        low, high = map(math.log, bounds) if is_log else bounds
        if not fit_intercept:
            return cls(0.0, max(abs(low), abs(high)), is_log)
        half = 0.5 * high - 0.5 * low
        return cls(low + half, half, is_log)

    def scaled(self, targets: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return targets between the bounds on this scale. Logarithms are clipped to the bounds."""
        if self.is_log:
            targets = np.clip(np.log(targets), self.middle - self.half, self.middle + self.half)
        return (targets - self.middle) / self.half

    def restored(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the targets of values on this scale, which may be outside the bounds."""
        targets = self.middle + self.half * values
        return np.exp(targets) if self.is_log else targets


@dataclass(frozen=True)
class TargetReader:
    """Reader of the targets, on the scale of the model, and weights of a block of rows."""

    bounds: TargetBounds
    scale: TargetScale
    read_weights: Any
    are_counts: bool = False

    def __call__(self, y: Any, sample_weight: Any, n_rows: int) -> tuple[NDArray[np.float64], Any]:
        """Return targets and weights, or reject them."""
        weights = self.read_weights(sample_weight, n_rows, of_block=True)
        values = check_targets(y, n_rows)
        if self.are_counts:
            reject_negative(values)
        values, _ = bring_into_bounds(values, self.bounds)
        return self.scale.scaled(values), weights


def reject_negative(counts: NDArray[np.float64]) -> None:
    """Reject negative targets of the Poisson loss."""
    if (counts < 0.0).any():
        raise ValueError("y contains negative targets, but loss='poisson' requires targets of 0 or larger.")


def check_y_bounds(y_bounds: Any) -> TargetBounds | None:
    """Return the public bounds of the targets, or None if they have to be read from y."""
    if y_bounds is None:
        return None
    ends = list(y_bounds) if isinstance(y_bounds, tuple | list | np.ndarray) else []
    if len(ends) != 2:
        raise ValueError(
            f"`y_bounds` must be a pair (low, high) of public numbers with low < high, got {show(y_bounds)}."
        )
    low, high = (
        check_real(f"y_bounds[{i}]", end, at_least=-1e100, at_most=1e100, constraint=_CONSTRAINT)
        for i, end in enumerate(ends)
    )
    if not _are_bounds(low, high):
        raise ValueError(f"`y_bounds` must be a pair (low, high) with low < high, got ({low!r}, {high!r}).")
    return low, high


def check_y_transform(y_transform: Any, bounds: TargetBounds | None) -> bool:
    """Return whether the logarithm of the targets is fitted, or reject it: it requires public bounds."""
    if y_transform is None:
        return False
    check_choice("y_transform", y_transform, ("log",))
    if bounds is None:
        raise ValueError("y_transform='log' requires public bounds above 0. Set `y_bounds`, e.g. y_bounds=(1, 10_000).")
    low, high = bounds
    if not (low > 0.0 and math.log(high) > math.log(low)):
        raise ValueError(
            f"y_transform='log' requires bounds above 0 with low < high, got y_bounds=({low!r}, {high!r}). Pass a low "
            "bound above 0, to which smaller targets are moved, or y_transform=None for amounts with many zeros."
        )
    return True


def report_bounds_read(estimator: Any) -> None:
    """Report and record that an estimator without `y_bounds` reads them from y."""
    report_leak(
        "`y_bounds` was not set, so the bounds were read from `y`. This is not covered by the privacy "
        "guarantee. Pass public bounds, e.g. y_bounds=(0, 100)."
    )
    note_leaks(estimator, Y_BOUNDS_READ)


def bring_into_bounds(
    targets: NDArray[np.float64], bounds: TargetBounds | None
) -> tuple[NDArray[np.float64], TargetBounds]:
    """Clip targets to `bounds`, and return both; bounds of None are read from the targets."""
    if bounds is None:
        low, high = float(targets.min()), float(targets.max())
        width = 0.0 if _are_bounds(low, high) else max(1.0, 1e-3 * abs(low))
        bounds = (low - width, high + width)
    return np.clip(targets, *bounds), bounds


def _are_bounds(low: float, high: float) -> bool:
    """Whether there are doubles between the bounds by which targets can be divided."""
    return 0.5 * high - 0.5 * low > 1e-300
