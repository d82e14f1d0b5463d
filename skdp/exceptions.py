"""Errors and warnings about privacy, the stack level of warnings, and messages for removed parameters."""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

_NOT_THE_USER = {"skdp", "sklearn", "joblib"}


class BudgetExceededError(RuntimeError):
    """Raised if a charge would exceed the budget of an accountant. No budget was consumed and no data were read."""


class AccountantDetachedError(RuntimeError):
    """Raised if a detached copy of an accountant is charged. Pickled copies of in-memory accountants are read-only."""


class BudgetFileError(RuntimeError):
    """Raised if a budget file cannot be read, written or verified. No budget was consumed and no data were read."""


class PrivacyLeakWarning(UserWarning):
    """Warning about information that the privacy guarantee does not cover, such as classes read from the labels."""


class QualityWarning(UserWarning):
    """Quality diagnostic: a result is likely inaccurate. It uses only public values and private estimates."""


class FitInterruptedWarning(UserWarning):
    """Warning that Ctrl-C interrupted a fit. The model of the completed steps is kept; the full budget was consumed."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning that points to the first calling line outside skdp, scikit-learn and joblib."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _NOT_THE_USER:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


Call = TypeVar("Call", bound=Callable[..., Any])

REMOVED = {
    "accounting": "set it on the accountant, PrivacyAccountant(method=...)",
    "adam_noise_floor": "use solver='adam' with a small adam_epsilon instead",
    "balanced": "remove it; rows are always balanced. Use sample_sets for independent rows",
    "ceiling": "use budget instead",
    "class_shares": "use class_prevalences instead",
    "confidence": "use level instead",
    "decay_epochs": "pass a pair, learning_rate_end=(end, epochs)",
    "label_shares": "use class_prevalences instead",
    "labour_force_only": "use labor_force_only instead",
    "ledger": "use accountant instead",
    "n_directions": "remove it; each component has up to 100 main directions",
    **dict.fromkeys(
        ["n_samples_public", "n_groups_public", "n_households_public"], "pass adjacency=skdp.AddRemove(n_public=...)"
    ),
    "n_tries": "use n_trials instead",
    "noise_multiplier": "set epsilon; the noise of all parts is calibrated to it",
    **dict.fromkeys(["parities", "rounds"], "remove it"),
    "plain_share": "remove it; unbinned columns always have one third of the squared row norm",
    "prices": "use privacy_costs instead",
    "risk": "pass epsilon=skdp.Risk(advantage=...) or skdp.Risk(tpr=..., fpr=...)",
    "score_share": "use score_fraction instead",
    "shares": "use fractions instead",
    "threshold_share": "remove it; partition selection always uses 1% of delta. Set delta instead",
    "units": "use scales instead",
}
"""Parameters of earlier versions, or of other estimators, and their replacements."""


def reject_removed(call: Any, names: Iterable[str]) -> None:
    """Raise a TypeError for a removed name that is not a parameter of the class or function."""
    for name in names:
        if name in REMOVED and name not in inspect.signature(call).parameters:
            shown = getattr(call, "_public_name", "") or call.__qualname__.removesuffix(".__init__").rpartition(".")[2]
            raise TypeError(f"{shown} has no parameter {name!r}: {REMOVED[name]}.")


def without_removed(call: Call) -> Call:
    """Decorate a function or class so that removed parameters raise a TypeError; the signature does not change."""
    if isinstance(call, type):
        call.__init__ = without_removed(call.__init__)  # type: ignore[misc]
        return call

    @functools.wraps(call)
    def checked(*args: Any, **kwargs: Any) -> Any:
        if not REMOVED.keys().isdisjoint(kwargs):
            reject_removed(call, kwargs)
        return call(*args, **kwargs)

    return checked  # type: ignore[return-value]


__all__ = [
    "AccountantDetachedError",
    "BudgetExceededError",
    "BudgetFileError",
    "FitInterruptedWarning",
    "PrivacyLeakWarning",
    "QualityWarning",
]
