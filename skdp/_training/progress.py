"""A progress bar that shows the price of the steps done, and the time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

_READINGS = 20  # pricing takes milliseconds, so the figure is not refreshed at every step
_LONG = 2.0  # seconds after which it is: a step may be a pass over a large file


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
        self._shown = self._begun = time.monotonic()
        self._first: int | None = None

    def __call__(self, n_done: int) -> None:
        now = time.monotonic()
        if self._first is None:  # a run that resumes has made steps before
            self._first = n_done - 1
        if n_done % self._every and n_done != self._n_steps and now - self._shown < _LONG:
            return
        self._shown = now
        price = f"epsilon so far {self._epsilon_of(n_done):.4g}"
        if self._bar is None:
            seconds = (now - self._begun) / (n_done - self._first) * (self._n_steps - n_done)
            done = f"step {n_done}/{self._n_steps} ({_format(seconds)} left)"
            print(f"\r{done}, {price}  ", end="", file=sys.stderr, flush=True)
        else:
            self._bar.set_postfix_str(price, refresh=False)
            self._bar.update(n_done - self._bar.n)

    def close(self) -> None:
        if self._bar is None:
            print(file=sys.stderr)
        else:
            self._bar.close()


def _format(seconds: float) -> str:
    """Format a time in the unit that suits it, in round numbers."""
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 2.0 * size:
            return f"{seconds / size:3.0f} {unit}"
    return f"{seconds:3.0f} s"


def _tqdm_bar(total: int) -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm(total=total, unit="step", desc="skdp")
