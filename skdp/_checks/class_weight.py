"""Public weights of classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._checks.parameters import WrongTypeError, check_real, show

_REMEDY = "give a dict of class to weight, such as {0: 1.0, 1: 3.0}"


def class_weights(class_weight: Any, classes: NDArray[Any]) -> NDArray[np.float64] | None:
    """Return the factors by which the weights of the rows of each class are multiplied.

    Parameters
    ----------
    class_weight : mapping of class to float, or None
        Public, nonnegative weights. A class that is not named has weight 1.
    classes : ndarray of shape (n_classes,)
        Public classes.

    Returns
    -------
    factors : ndarray of shape (n_classes,) or None
        Weights divided by the largest of them; None if no weights are given.

    Notes
    -----
    The factor of a row, a number in [0, 1], multiplies its gradient after that is clipped, so a row's contribution is
    at most C, and the sensitivity is that of a fit without weights. The factor of a row is a function of its own label
    and of public constants, so a row has no say in the weight of another. Shares of the classes in the data would give
    it one, so "balanced" is refused.

    Only the ratios of class weights count: they are divided by the largest.
    """
    if class_weight is None:
        return None
    if isinstance(class_weight, str) and class_weight == "balanced":
        raise ValueError(
            "class_weight='balanced' reads the shares of the classes from the labels, which is not paid for: give a "
            "dict of class to 1 / share, with shares that are public."
        )
    if not isinstance(class_weight, Mapping):
        raise WrongTypeError(f"class_weight={show(class_weight)} is of the wrong type: {_REMEDY}, or None.")
    names = classes.tolist()
    if unknown := [name for name in class_weight if name not in names]:
        raise ValueError(f"class_weight names {show(unknown[0])}, which is no class: give weights of classes alone.")
    weights = np.ones(len(names))
    for name, weight in class_weight.items():
        remedy = "choose a weight from 0 (no influence) to 1e30"
        weights[names.index(name)] = check_real(
            f"class_weight[{name!r}]", weight, at_least=0, at_most=1e30, remedy=remedy
        )
    if not weights.any():
        raise ValueError("class_weight is 0 for every class: give at least one class a weight above 0.")
    return weights / weights.max()
