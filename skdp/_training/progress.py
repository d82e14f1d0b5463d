"""A progress bar that shows the price of the steps done."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

_READINGS = 20  # pricing takes milliseconds, so the figure is not refreshed at every step


class StepProgress:
    """Show the number of steps done and their epsilon on standard error, when called with that number.

    Parameters
    ----------
    n_steps : int
    epsilon_of : callable
        Function that returns the epsilon of the first k steps.
    """

    def __init__(self, n_steps: int, epsilon_of: Callable[[int], float]) -> None:
        self._n_steps, self._epsilon_of = n_steps, epsilon_of
        self._every = max(1, n_steps // _READINGS)
        self._bar = _tqdm_bar(n_steps)

    def __call__(self, n_done: int) -> None:
        if n_done % self._every and n_done != self._n_steps:
            return
        price = f"epsilon so far {self._epsilon_of(n_done):.4g}"
        if self._bar is None:
            print(f"\rstep {n_done}/{self._n_steps}, {price}", end="", file=sys.stderr, flush=True)
        else:
            self._bar.set_postfix_str(price, refresh=False)
            self._bar.update(n_done - self._bar.n)

    def close(self) -> None:
        if self._bar is None:
            print(file=sys.stderr)
        else:
            self._bar.close()


def _tqdm_bar(total: int) -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm(total=total, unit="step", desc="skdp")
