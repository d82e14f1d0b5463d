"""The delta of a fit: the one that was given, the ledger's, or a rule in the public number of rows."""

from __future__ import annotations

from typing import Any

from skdp._checks.parameters import check_real
from skdp.accounting import PrivacyAccountant

_LEAST_DIGITS = 5  # 1e-5, the common choice for tables of up to 10,000 rows


def check_delta(delta: Any) -> float | None:
    """Return a number in (0, 1), or None for "auto", whose number is found once the number of rows is known."""
    if isinstance(delta, str) and delta == "auto":
        return None
    return check_real("delta", delta, above=0, below=1, remedy="choose a number in (0, 1), well below 1/n, or 'auto'")


def default_delta(n_samples: int) -> float:
    """Return 1e-5, or 1 / (10 n) rounded down to a power of ten where that is less.

    Publishing one record of n, drawn at random, satisfies a delta of 1/n, so delta has to be well below that (Dwork &
    Roth 2014, section 2.3; NIST SP 800-226). A tenth of it is the margin here.

    Parameters
    ----------
    n_samples : int
        Public number of rows, 1 or more.

    Returns
    -------
    delta : float
        Power of ten, at most 1e-5, with ``delta * n_samples <= 0.1``. It does not increase with `n_samples`.

    Raises
    ------
    ValueError
        `n_samples` is 0: it is not known yet.
    """
    if n_samples < 1:
        raise ValueError(
            "delta='auto' follows from the number of rows, but there are none, or they are an iterator: "
            "set adjacency=skdp.AddRemove(n_public=...), or delta as a number well below 1/n."
        )
    digits = len(str(10 * n_samples - 1))  # least k with 10 n <= 10**k, in whole numbers: logarithms are rounded
    return float(f"1e-{max(_LEAST_DIGITS, digits)}")


def delta_for(delta: float | None, accountant: PrivacyAccountant | None, n_samples: int) -> float:
    """Return the delta of a fit: `delta` if it was given, else the ledger's if it has one, else the rule's."""
    if delta is not None:
        return delta
    if accountant is not None and accountant.delta is not None:
        return accountant.delta
    return default_delta(n_samples)
