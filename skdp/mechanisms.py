"""Mechanisms: what adds noise also says what the noise is worth."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._config import report_leak
from skdp._random import SecretStream
from skdp._validation import check_real
from skdp.accounting import GaussianDpEvent, PrivacyAccountant, resolve_accountant


@dataclass(frozen=True)
class GaussianMechanism:
    """Gaussian mechanism, which adds independent normal noise to a number or an array and prices the release.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation sigma of the noise, divided by `sensitivity`. Above 0.
    sensitivity : float
        Largest Euclidean norm C of what one record adds to the value. Above 0, in the units of the value.

    Notes
    -----
    **Guarantees.** The standard deviation of every coordinate is `noise_multiplier` times `sensitivity`. The event
    states the same `noise_multiplier`. (Dwork & Roth 2014, appendix A; priced exactly by Balle & Wang 2018.) `release`
    charges the accountant before it draws noise, and nothing that it refuses is charged.

    That `sensitivity` bounds what one record adds is the caller's promise: clip the records. A mean is released as a
    sum of clipped records, divided by a public number of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import PrivacyAccountant
    >>> from skdp.accounting import GaussianDpEvent, calibrate_noise_multiplier
    >>> from skdp.mechanisms import GaussianMechanism
    >>> ages = np.clip([41.0, 29.0, 57.0, 33.0], 0, 100)  # private; the bounds are public
    >>> accountant = PrivacyAccountant(epsilon=1.0, delta=1e-6)
    >>> sigma = calibrate_noise_multiplier(GaussianDpEvent, epsilon=0.5, delta=1e-6)
    >>> noisy = GaussianMechanism(sigma, sensitivity=100.0).release(ages.sum(), accountant=accountant)
    >>> mean = noisy / 4  # post-processing; the number of rows is public under zero_out
    >>> bool(accountant.get_epsilon(1e-6) <= 0.5)
    True
    """

    noise_multiplier: float
    sensitivity: float

    def __post_init__(self) -> None:
        GaussianDpEvent(self.noise_multiplier)  # refuses what has no price
        check_real("sensitivity", self.sensitivity, above=0, remedy="give the norm that records are clipped to")

    @property
    def event(self) -> GaussianDpEvent:
        """Event of one release."""
        return GaussianDpEvent(self.noise_multiplier)

    @property
    def standard_deviation(self) -> float:
        """Standard deviation of the noise in each coordinate, in the units of the value."""
        return self.noise_multiplier * self.sensitivity

    def release(
        self,
        value: Any,
        random_state: Any = None,
        *,
        accountant: PrivacyAccountant | str | os.PathLike[str] | None = None,
        adjacency: str = "zero_out",
        label: str = "GaussianMechanism",
    ) -> Any:
        """Charge the release, and return the value with noise added.

        Parameters
        ----------
        value : float or array-like of real numbers
            Exact private value of any shape. It is not modified.
        random_state : int, RandomState instance, Generator instance or None, default=None
            Source of the noise. None draws a fresh secret key. Any other value makes the noise reproducible and issues
            a `PrivacyLeakWarning`.
        accountant : PrivacyAccountant, str, path-like or None, default=None
            Ledger to charge. A path names the file of an existing ledger. If None, nothing is charged.
        adjacency : {"zero_out", "add_remove", "replace_one"}, default="zero_out"
            Neighbouring relation of the charge. `sensitivity` is what one record adds in each case.
        label : str, default="GaussianMechanism"
            Name of the release in the ledger.

        Returns
        -------
        float or ndarray of float64 of the shape of `value`
            Noisy value.

        Raises
        ------
        ValueError
            `value` holds something other than finite real numbers. Nothing was charged.
        BudgetExceededError
            The ceiling does not admit the release. Nothing was charged.
        """
        if isinstance(random_state, SecretStream):  # of a fit, which has charged all its releases
            return self._add_noise(value, random_state)
        stream = SecretStream.from_random_state(random_state)
        if random_state is not None:
            report_leak(f"random_state={random_state!r} makes the noise reproducible: use random_state=None.")
        ledger = resolve_accountant(accountant)
        exact = _finite(value)
        if ledger is not None:
            ledger.spend(self.event, label, adjacency=adjacency)
        noisy = self._add_noise(exact, stream)
        return float(noisy) if exact.ndim == 0 else noisy

    def _add_noise(self, value: NDArray[np.float64], stream: SecretStream) -> NDArray[np.float64]:
        """The only line of the library that adds noise is here."""
        noisy = stream.normal(value.size).astype(np.float64, copy=False).reshape(value.shape)
        noisy *= self.standard_deviation
        noisy += value
        return noisy


def _finite(value: Any) -> NDArray[np.float64]:
    """`value` as an array of float64, without a word of what is in it where that cannot be."""
    try:
        exact = np.asarray(value)
        real = exact.dtype.kind in "buif"
    except (TypeError, ValueError):
        real = False
    if not real or not np.isfinite(exact).all():
        raise ValueError("value holds what is no finite real number: give a float or an array of them.") from None
    return exact.astype(np.float64)


__all__ = ["GaussianMechanism"]
