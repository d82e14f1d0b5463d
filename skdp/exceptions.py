"""Errors and warnings about privacy, how a warning points at the user's line, and parameters that were replaced."""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

_NOT_THE_USER = {"skdp", "sklearn", "joblib"}


class BudgetExceededError(RuntimeError):
    """A charge would take an accountant above its budget; nothing was charged and nothing was read."""


class AccountantDetachedError(RuntimeError):
    """A pickled copy of an accountant was asked to spend: it can be read, but the balance lives elsewhere."""


class BudgetFileError(RuntimeError):
    """The file of a budget cannot be read, written or trusted; nothing was charged and nothing was read of the data."""


class PrivacyLeakWarning(UserWarning):
    """Something was read from private data, or can be foreseen by others, without being paid for."""


class QualityWarning(UserWarning):
    """A result is worth little, or less than it could be: told by public numbers and by releases alone."""


class FitInterruptedWarning(UserWarning):
    """Ctrl-C ended a fit: the model of the steps done is kept, and so is the full charge."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first line outside skdp and scikit-learn, which is the user's or that of another library."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _NOT_THE_USER:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


Call = TypeVar("Call", bound=Callable[..., Any])

REMOVED = {
    "accounting": "set it on the accountant, PrivacyAccountant(method=...)",
    "adam_noise_floor": "use solver='adam' with a small adam_epsilon, whose steps hardly depend on max_grad_norm",
    "balanced": "rows are always balanced; sample_sets draws independent rows",
    "ceiling": "its name is budget",
    "class_shares": "its name is class_prevalences",
    "confidence": "its name is level",
    "decay_epochs": "pass a pair, learning_rate_end=(end, epochs)",
    "label_shares": "its name is class_prevalences",
    "labour_force_only": "its name is labor_force_only",
    "ledger": "its name is accountant",
    "n_directions": "a component always has up to 100 main directions",
    **dict.fromkeys(
        ["n_samples_public", "n_groups_public", "n_households_public"], "pass adjacency=skdp.AddRemove(n_public=...)"
    ),
    "n_tries": "its name is n_trials",
    "noise_multiplier": "set epsilon, from which the noise of all parts follows",
    **dict.fromkeys(["parities", "rounds"], "remove it, as it improved no real table"),
    "plain_share": "plain columns always have a third of the squared norm of a row",
    "prices": "its name is privacy_costs",
    "risk": "pass epsilon=skdp.Risk(advantage=...) or skdp.Risk(tpr=..., fpr=...)",
    "score_share": "its name is score_fraction",
    "shares": "its name is fractions",
    "threshold_share": "the threshold of categories always has 1% of delta; set delta",
    "units": "its name is scales",
}
"""Parameters of earlier versions, or of single estimators alone, and what replaces them."""


def refuse_removed(call: Any, names: Iterable[str]) -> None:
    """Raise a TypeError for a name of the table that is not a parameter of the class or function."""
    for name in names:
        if name in REMOVED and name not in inspect.signature(call).parameters:
            shown = getattr(call, "_public_name", "") or call.__qualname__.removesuffix(".__init__").rpartition(".")[2]
            raise TypeError(f"{shown} has no parameter {name!r}: {REMOVED[name]}.")


def without_removed(call: Call) -> Call:
    """Let a function, or the constructor of a class, refuse them; its signature stays."""
    if isinstance(call, type):
        call.__init__ = without_removed(call.__init__)  # type: ignore[misc]
        return call

    @functools.wraps(call)
    def checked(*args: Any, **kwargs: Any) -> Any:
        if not REMOVED.keys().isdisjoint(kwargs):
            refuse_removed(call, kwargs)
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
