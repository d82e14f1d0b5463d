"""Errors and warnings that speak about privacy, and how a warning points at the user's line."""

from __future__ import annotations

import sys
import warnings

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


__all__ = [
    "AccountantDetachedError",
    "BudgetExceededError",
    "BudgetFileError",
    "FitInterruptedWarning",
    "PrivacyLeakWarning",
    "QualityWarning",
]
