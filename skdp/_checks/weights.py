"""Sample weights and class weights: validation, scaling by a bound and clipping."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp._checks.leaks import warn
from skdp._checks.numbers import NUMBER, all_finite, numbers_of, reject, reject_not_finite, values_of
from skdp._checks.parameters import WrongTypeError, check_real, show

_GRID = 2.0**24

_CONSTRAINT = "a public number from 1e-30 to 1e30, such as the largest possible weight, or None"


@dataclass(frozen=True)
class WeightReader:
    """Reads weights of rows as shares of a bound.

    Parameters
    ----------
    bound : float
        By which weights are divided, and at which they are cut.
    is_public : bool
        Whether the bound was given. If not, a fit with weights warns that they are cut at 1.

    Notes
    -----
    **Guarantees.** A share is a number in [0, 1], a function of the weight of its own row and of the bound. It
    multiplies what the row adds to a sum, which was clipped before. So no weight raises what a row may change, and a
    row of weight 0 is the zeroed-out record. Weights that are all equal to the bound have shares of exactly 1, and give
    the model of no weights; where the sum of weights is released because there are some, but for the noise.

    A weight before the clip would be private all the same, but would not mean what it says: gradients that are cut to
    one length are votes of one size, whatever their weights were.
    """

    bound: float
    is_public: bool = True

    @classmethod
    def of(cls, weight_bound: Any) -> WeightReader:
        """Return the reader for a public bound, or reject it; None is a bound of 1."""
        if weight_bound is None:
            return cls(1.0, is_public=False)
        return cls(check_real("weight_bound", weight_bound, at_least=1e-30, at_most=1e30, constraint=_CONSTRAINT))

    def read(self, sample_weight: Any, n_rows: int) -> Any:
        """Return the scaled weights of all rows of a fit, and warn if the bound is not public; see `__call__`."""
        if sample_weight is None:
            return 1.0
        warn_of_no_bound(self.bound if self.is_public else None, sample_weight)
        return self(sample_weight, n_rows)

    def __call__(self, sample_weight: Any, n_rows: int, *, of_block: bool = False) -> Any:
        """Return the scaled weights, an array of float64 of shape (n_rows,); 1.0 for weights of None.

        Parameters
        ----------
        sample_weight : array-like of shape (n_rows,), float or None
            Private.
        n_rows : int
        of_block : bool
            Whether these rows are only a block, whose weights may all be 0.

        Raises
        ------
        TypeError, ValueError
            The weights are not finite nonnegative numbers. The message is one line without a weight.
        """
        weights = check_weights(sample_weight, n_rows, of_block=of_block)
        return weights if sample_weight is None else self.shares(weights)

    def shares(self, weights: Any) -> Any:
        """Divide validated weights by the bound, and clip them to 1."""
        with np.errstate(all="ignore"):  # a floating-point warning would reveal a weight
            return np.minimum(weights / self.bound, 1.0)


def exactly_summable(shares: Any) -> Any:
    """Round scaled weights down to multiples of 2**-24: sums of up to 2**29 of them are exact in any order."""
    return np.floor(np.asarray(shares) * _GRID) / _GRID


def check_weights(sample_weight: Any, n_rows: int, *, of_block: bool = False) -> Any:
    """Return `sample_weight` as an array of shape (n_rows,): finite, nonnegative, not all zero; 1.0 for None.

    The weights of a block may all be zero.
    """
    if sample_weight is None:
        return 1.0
    name = "sample_weight"
    weights = values_of(name, sample_weight)
    if weights.ndim == 0:
        weights = np.full(n_rows, weights)
    if weights.shape != (n_rows,):
        raise ValueError(f"`{name}` must have shape ({n_rows},), one weight per row of X, got {weights.shape}.")
    # Numbers first, then what they may be; an error shows none of them.
    fault, weights = numbers_of(weights)
    if fault != NUMBER:
        reject(fault, name)
    with np.errstate(all="ignore"):  # what is too large for float64 becomes infinite, and is rejected as that
        weights = weights.astype(np.float64, order="C")
    if not all_finite(weights):
        reject_not_finite(name, nan=bool(np.isnan(weights).any()))
    if (weights < 0).any():
        raise ValueError(f"Negative values in data passed to `{name}`: weights must be 0 (no influence) or larger.")
    if not of_block and not weights.any():
        raise ValueError(f"`{name}` is zero for all rows. Pass at least one weight above 0.")
    return weights


def weight_of_each(weights: Any, n_rows: int) -> np.ndarray:
    """Return scaled weights as an array of shape (n_rows,), which may be read-only; 1.0 applies to each row."""
    return np.broadcast_to(np.asarray(weights, np.float64), (n_rows,))


def warn_of_no_bound(weight_bound: Any, sample_weight: Any) -> None:
    """Warn that weights are clipped to 1 without a bound, in every fit with weights, whatever their values."""
    if weight_bound is None and sample_weight is not None:
        warn(
            "`weight_bound` was not set, so weights above 1 are clipped to 1. Set `weight_bound` to a public "
            "upper bound, such as the largest possible weight: weights are divided by it and clipped to it."
        )


# --- public weights of classes ---


def class_weights(class_weight: Any, classes: np.ndarray) -> np.ndarray:
    """Return the factors by which the weights of the rows of each class are multiplied.

    Parameters
    ----------
    class_weight : mapping of class to float
        Public, nonnegative weights. A class that is not named has weight 1.
    classes : ndarray of shape (n_classes,)
        Public classes.

    Returns
    -------
    factors : ndarray of shape (n_classes,)
        Weights divided by the largest of them.

    Notes
    -----
    The factor of a row, a number in [0, 1], multiplies its clipped gradient. So the contribution of a row is at most C,
    and the sensitivity is that of a fit without weights. The factor depends only on the label of the row and on public
    constants. With class proportions from the data, it would depend on other rows, so "balanced" is rejected.
    """
    if isinstance(class_weight, str) and class_weight == "balanced":
        raise ValueError(
            "class_weight='balanced' reads the class proportions from `y`. This is not covered by the privacy "
            "guarantee. Pass weights from public class proportions, e.g. "
            "class_weight={0: 1 / 0.8, 1: 1 / 0.2}."
        )
    if not isinstance(class_weight, Mapping):
        raise WrongTypeError(
            f"`class_weight` must be a dict such as {{0: 1.0, 1: 3.0}}, or None, got {show(class_weight)}."
        )
    names = classes.tolist()
    if unknown := [name for name in class_weight if name not in names]:
        raise ValueError(f"`class_weight` contains {show(unknown[0])}, which is not one of `classes`. Remove it.")
    weights = np.ones(len(names))
    for name, weight in class_weight.items():
        constraint = "a weight from 0 (no influence) to 1e30"
        weights[names.index(name)] = check_real(
            f"class_weight[{name!r}]", weight, at_least=0, at_most=1e30, constraint=constraint
        )
    if not weights.any():
        raise ValueError("`class_weight` is 0 for all classes. Pass at least one weight above 0.")
    return weights / weights.max()
