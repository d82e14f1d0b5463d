"""What happens when something is read from private data without being paid for."""

from __future__ import annotations

import contextlib
import contextvars
import warnings
from collections.abc import Iterator

from skdp.exceptions import PrivacyLeakWarning

_on_leak: contextvars.ContextVar[str] = contextvars.ContextVar("skdp_on_leak", default="warn")


@contextlib.contextmanager
def config_context(*, on_leak: str = "warn") -> Iterator[None]:
    """Settings for the fits inside a ``with`` block.

    Parameters
    ----------
    on_leak : {"warn", "raise"}
        Whether a leak (classes read from the labels, a noise seed that others can know) gives a
        `PrivacyLeakWarning` or raises it.

    Examples
    --------
    >>> import skdp
    >>> with skdp.config_context(on_leak="raise"):
    ...     pass
    """
    if on_leak not in ("warn", "raise"):
        raise ValueError(f"on_leak={on_leak!r} is not known: use 'warn' or 'raise'.")
    token = _on_leak.set(on_leak)
    try:
        yield
    finally:
        _on_leak.reset(token)


def report_leak(message: str, stacklevel: int = 3) -> None:
    """Warn of a leak, or raise it where the user asked for that."""
    if _on_leak.get() == "raise":
        raise PrivacyLeakWarning(message)
    warnings.warn(message, PrivacyLeakWarning, stacklevel=stacklevel)
