"""What a parameter `accountant` stands for."""

from __future__ import annotations

import os
import shlex
from typing import Any

from skdp.exceptions import BudgetFileError

from .accountant import PrivacyAccountant

__all__ = ["resolve_accountant"]


def resolve_accountant(value: Any) -> PrivacyAccountant | None:
    """The accountant that a parameter `accountant` stands for.

    Parameters
    ----------
    value : PrivacyAccountant, str, path-like or None
        A path names the file of a ledger that exists; it is made absolute here.

    Returns
    -------
    PrivacyAccountant or None
    """
    if value is None or isinstance(value, PrivacyAccountant):
        return value
    name = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(name, str):
        raise TypeError(
            f"accountant={type(value).__name__} is not valid; give a PrivacyAccountant, the path of a ledger's file, "
            "or None."
        )
    if not name:
        raise ValueError("accountant='' is not valid; give the path of a ledger's file, such as 'census.budget'.")
    path = os.path.abspath(name)
    if not os.path.lexists(path):
        raise BudgetFileError(
            f"accountant={name!r} names no file ({path}); create it by `python -m skdp.budget create "
            f"{shlex.quote(path)} --epsilon E --delta D`, or correct the path."
        )
    return PrivacyAccountant.open(path)
