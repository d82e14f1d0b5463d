"""What mechanisms share that add noise: the order of check, charge and draw."""

from __future__ import annotations

import os
from typing import Any, ClassVar

from numpy.typing import NDArray

from skdp._checks.leaks import report_leak
from skdp._checks.parameters import check_choice
from skdp.accounting import DpEvent, PrivacyAccountant, resolve_accountant
from skdp.accounting.methods import ADJACENCIES
from skdp.mechanisms.streams import SecretStream


class AdditiveMechanism:
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
        raise NotImplementedError(f"{type(self).__name__} has no price: write event.")

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
        if isinstance(random_state, SecretStream) and accountant is None:  # of a fit, which has charged its releases
            return self._heard(value, random_state)
        check_choice("adjacency", adjacency, ADJACENCIES)
        stream = random_state
        if not isinstance(stream, SecretStream):
            stream = SecretStream.from_random_state(random_state, type(self).__name__)
        if random_state is not None and stream is not random_state:
            report_leak(
                f"random_state={random_state!r} makes the noise reproducible. If it is used for two releases, anyone "
                "can subtract their noise: use random_state=None."
            )
        ledger = resolve_accountant(accountant)
        exact = self._checked(value)
        if ledger is not None:
            known = None if stream is random_state else {"seeded": random_state is not None}
            ledger.spend(self.event, label or type(self).__name__, adjacency=adjacency, parameters=known)
        noisy = self._heard(exact, stream)
        return noisy.item() if exact.ndim == 0 else noisy

    def _checked(self, value: Any) -> NDArray[Any]:
        """`value` as an array of numbers that noise can be added to, or a ValueError that shows none of them."""
        raise NotImplementedError(f"{type(self).__name__} does not say what it takes: write _checked.")

    def _heard(self, value: NDArray[Any], stream: SecretStream) -> NDArray[Any]:
        """`value` with noise, which an audit hears that follows the stream."""
        noisy = self._add_noise(value, stream)
        return noisy if stream.track is None else stream.track.release(self, value, noisy)

    def _add_noise(self, value: NDArray[Any], stream: SecretStream) -> NDArray[Any]:
        """`value` with noise from the stream."""
        raise NotImplementedError(f"{type(self).__name__} adds no noise: write _add_noise.")


__all__ = ["AdditiveMechanism"]
