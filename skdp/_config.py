"""What happens when something is read from private data without being paid for."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator

from skdp.exceptions import PrivacyLeakWarning

_blocks: list[list[str]] = []
"""What each open block asks for. Of the process and not of a thread: threads that a search starts must heed it too."""


@contextlib.contextmanager
def config_context(*, on_leak: str = "warn") -> Iterator[None]:
    """Settings for all fits of this process, in any thread, while a ``with`` block lasts.

    Of several open blocks the one entered last counts. Other processes (``n_jobs`` with loky) do not know of any.

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
    block = [on_leak]
    _blocks.append(block)
    try:
        yield
    finally:
        _blocks[:] = [other for other in _blocks if other is not block]


def report_leak(message: str, stacklevel: int = 3) -> None:
    """Warn of a leak, or raise it where the user asked for that."""
    if _blocks and _blocks[-1] == ["raise"]:
        raise PrivacyLeakWarning(message)
    warnings.warn(message, PrivacyLeakWarning, stacklevel=stacklevel)
