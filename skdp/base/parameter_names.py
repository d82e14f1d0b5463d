"""Parameters of scikit-learn's estimators that do not exist, and what replaces them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable
from typing import Any

from skdp._checks.parameters import REMOVED, refuse_removed

_PAGE = 'see "Coming from scikit-learn" (docs/coming_from.md)'
_STOPPING = "a rule that looks at the data in every step would have to be paid for; set max_iter, where there are steps"
_FOLDS = "rows that score are set aside once, by test_size"
_ONE_METHOD = "there is one way to train or to decompose, the one that is accounted"

REPLACEMENTS = {
    "C": "use alpha, about 1 / (C * n_samples)",
    "penalty": "the penalty is L2; set its strength by alpha",
    "l1_ratio": "the penalty is L2; set its strength by alpha",
    **dict.fromkeys(["tol", "early_stopping", "n_iter_no_change", "validation_fraction", "max_fun"], _STOPPING),
    **dict.fromkeys(["cv", "return_train_score", "error_score", "pre_dispatch"], _FOLDS),
    **dict.fromkeys(["solver", "dual", "multi_class", "svd_solver", "iterated_power", "n_oversamples"], _ONE_METHOD),
    **dict.fromkeys(["power_iteration_normalizer", "power_t", "nesterovs_momentum"], _ONE_METHOD),
    "intercept_scaling": "scale columns by public bounds; data_norm bounds the rows",
    "shuffle": "rows are drawn at random in every step; see sampling_rate",
    "epochs": "use max_iter",
    "accountant": "set it on the estimator that is fitted",
    **dict.fromkeys(["copy", "copy_X", "copy_x"], "rows are never changed in place"),
    **dict.fromkeys(["init", "n_init", "algorithm"], "centers start from noisy counts of a tree, which have a share"),
    **dict.fromkeys(["max_samples", "max_features", "bootstrap"], "trees read no row, and all rows fall through them"),
    "warm_start": "each fit is a release of its own, which is paid for",
    "verbose": "what is said on the way would have to be released",
    "max_iter": "one release is solved at once",
    "n_jobs": "one release runs in one process",
    "positive": "the noise has both signs, and so have coefficients",
    "priors": "they are noisy shares of the classes, and class_prior_ may be set after the fit",
    "var_smoothing": "variances are held above the noise, whose size is public",
}


def refuse_foreign(cls: type, names: Iterable[str]) -> None:
    """Raise a TypeError for a name of the tables that is not a parameter of the class."""
    for name in names:
        if (name in REMOVED or name in REPLACEMENTS) and name not in inspect.signature(cls).parameters:
            refuse_removed(cls, [name])
            raise TypeError(f"{cls.__name__} has no parameter {name!r}: {REPLACEMENTS[name]}; {_PAGE}.")


def refuse_foreign_in_init(cls: type) -> None:
    """Let the constructor of a class refuse them, if it has one of its own, with the signature that it has."""
    init = vars(cls).get("__init__")
    if init is None:
        return

    @functools.wraps(init)
    def checked(self: Any, *args: Any, **kwargs: Any) -> None:
        refuse_foreign(cls, kwargs)  # a subclass may hide what this one has
        init(self, *args, **kwargs)

    cls.__init__ = checked  # type: ignore[misc]
