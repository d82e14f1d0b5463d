"""What mechanisms share that add noise: the order of check, charge and draw."""

from __future__ import annotations

import os
from typing import Any, ClassVar, Protocol

import numpy as np

from skdp._checks.leaks import report_leak
from skdp._checks.parameters import check_choice
from skdp.accounting import DpEvent, PrivacyAccountant, resolve_accountant
from skdp.accounting.methods import ADJACENCIES
from skdp.mechanisms.streams import SecretStream


class AdditiveMechanism(Protocol):
    """Base of mechanisms that add independent noise to each coordinate of a value.

    A subclass states `event`, the price of the noise that its `_add_noise` adds, and says by `_checked` what it takes.
    """

    norm_order: ClassVar[int] = 2
    """1 where the sensitivity is a sum of sizes and noise is of Laplace's kind, 2 where it is Euclidean and normal."""
    is_whole: ClassVar[bool] = False
    """Whether value and noise are whole numbers: the noise then has the discrete law of its kind."""

    @property
    def event(self) -> DpEvent:
        """Event of one release."""

    def release(
        self,
        value: Any,
        random_state: Any = None,
        *,
        accountant: PrivacyAccountant | str | os.PathLike[str] | None = None,
        adjacency: str = "zero_out",
        label: str | None = None,
    ) -> Any:
        """Charge the release, and return the value with noise added.

        Parameters
        ----------
        value : number or array-like of numbers
            Exact private value of any shape: finite real numbers, or whole ones for noise in whole numbers. It is not
            modified.
        random_state : int, RandomState instance, Generator instance or None, default=None
            Source of the noise. None draws a fresh secret key. Any other value makes the noise reproducible and issues
            a `PrivacyLeakWarning`.
        accountant : PrivacyAccountant, str, path-like or None, default=None
            Ledger to charge. A path names the file of an existing ledger. If None, nothing is charged.
        adjacency : {"zero_out", "add_remove", "replace_one"}, default="zero_out"
            Neighbouring relation of the charge. `sensitivity` is what one record adds in each case.
        label : str or None, default=None
            Name of the release in the ledger. None is the name of the class.

        Returns
        -------
        number or ndarray of the shape of `value`
            Noisy value, of float64, or of int64 for noise in whole numbers.

        Raises
        ------
        ValueError
            `value` holds something else than such numbers. Nothing was charged.
        BudgetExceededError
            The budget does not admit the release. Nothing was charged.
        """
        stream, exact, of_fit = random_state, value, isinstance(random_state, SecretStream) and accountant is None
        if not of_fit:  # a fit has charged its releases
            check_choice("adjacency", adjacency, ADJACENCIES)
            if not isinstance(stream, SecretStream):
                stream = SecretStream.from_random_state(random_state, type(self).__name__)
            if random_state is not None and stream is not random_state:
                report_leak(
                    f"random_state={random_state!r} makes the noise reproducible. If it is used for two releases, "
                    "anyone can subtract their noise: use random_state=None."
                )
            ledger = resolve_accountant(accountant)
            exact = self._checked(value)
            if ledger is not None:
                known = None if stream is random_state else {"seeded": random_state is not None}
                ledger.spend(self.event, label or type(self).__name__, adjacency=adjacency, parameters=known)
        noisy = self._add_noise(exact, stream)
        if stream.track is not None:  # an audit records releases
            noisy = stream.track.release(self, exact, noisy)
        return noisy if of_fit or exact.ndim > 0 else noisy.item()

    def _checked(self, value: Any) -> np.ndarray:
        """Return `value` as an array of numbers to which noise is added, or raise a ValueError that shows none."""

    def _add_noise(self, value: np.ndarray, stream: SecretStream) -> np.ndarray:
        """Return `value` with noise from the stream."""


__all__ = ["AdditiveMechanism"]
