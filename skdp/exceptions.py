"""Errors and warnings that speak about privacy."""


class BudgetExceededError(RuntimeError):
    """A charge would take an accountant above its ceiling; nothing was charged and nothing was read."""


class AccountantDetachedError(RuntimeError):
    """A pickled copy of an accountant was asked to spend: it can be read, but the balance lives elsewhere."""


class BudgetFileError(RuntimeError):
    """The file of a budget cannot be read, written or trusted; nothing was charged and nothing was read of the data."""


class PrivacyLeakWarning(UserWarning):
    """Something was read from private data, or can be foreseen by others, without being paid for."""


class FitInterruptedWarning(UserWarning):
    """Ctrl-C ended a fit: the model of the steps done is kept, and so is the full charge."""


__all__ = [
    "AccountantDetachedError",
    "BudgetExceededError",
    "BudgetFileError",
    "FitInterruptedWarning",
    "PrivacyLeakWarning",
]
