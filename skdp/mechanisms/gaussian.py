"""Gaussian mechanism, and the base class of mechanisms with additive noise."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np

from skdp._checks.leaks import report_leak
from skdp._checks.parameters import check_choice, check_real
from skdp.accounting import DpEvent, GaussianDpEvent, PrivacyAccountant, resolve_accountant
from skdp.accounting.methods import ADJACENCIES
from skdp.mechanisms.streams import SecretStream


class AdditiveMechanism(Protocol):
    """Base class of mechanisms that add independent noise to each coordinate of a value.

    A subclass defines `event`, the privacy event of its noise, and draws the noise in `_add_noise`.
    """

    norm_order: ClassVar[int] = 2
    """Norm of the sensitivity: 1 for the L1 norm with Laplace noise, 2 for the L2 norm with Gaussian noise."""
    is_whole: ClassVar[bool] = False
    """Whether value and noise are integers. The noise then has the discrete distribution of its type."""

    @property
    def event(self) -> DpEvent:
        """Privacy event of one release."""

    def release(
        self,
        value: Any,
        random_state: Any = None,
        *,
        accountant: PrivacyAccountant | str | os.PathLike[str] | None = None,
        adjacency: str = "zero_out",
        label: str | None = None,
    ) -> Any:
        """Charge the release to an accountant and return the noisy value.

        Parameters
        ----------
        value : number or array-like of numbers
            Exact private value of any shape: finite numbers, or integers for integer-valued noise. It is not modified.
        random_state : int, RandomState instance, Generator instance or None, default=None
            Source of the noise. If None, a new secret key is drawn. Any other value makes the noise reproducible, which
            is not private, and issues a `skdp.PrivacyLeakWarning`.
        accountant : PrivacyAccountant, str, path-like or None, default=None
            Accountant to charge. A path refers to an existing budget file. If None, the release is not recorded.
        adjacency : {"zero_out", "add_remove", "replace_one"}, default="zero_out"
            Neighboring relation of the charge. For every relation, `sensitivity` bounds the contribution of one record.
        label : str or None, default=None
            Label of the charge. If None, the name of the class.

        Returns
        -------
        number or ndarray of the shape of `value`
            Noisy value of dtype float64, or int64 for integer-valued noise.

        Raises
        ------
        ValueError
            If `value` holds other values. No budget is consumed.
        BudgetExceededError
            If the release would exceed the budget. No budget is consumed.
        """
        stream, exact, of_fit = random_state, value, isinstance(random_state, SecretStream) and accountant is None
        if not of_fit:  # fits charge their releases in advance
            check_choice("adjacency", adjacency, ADJACENCIES)
            if not isinstance(stream, SecretStream):
                stream = SecretStream.from_random_state(random_state, type(self).__name__)
            if random_state is not None and stream is not random_state:
                report_leak(
                    f"random_state={random_state!r} makes the noise reproducible. Anyone who knows the seed, or two "
                    "releases with it, can remove the noise. Use random_state=None for private data."
                )
            ledger = resolve_accountant(accountant)
            exact = checked_value(value, whole=self.is_whole)
            if ledger is not None:
                known = None if stream is random_state else {"seeded": random_state is not None}
                ledger.spend(self.event, label or type(self).__name__, adjacency=adjacency, parameters=known)
        noisy = self._add_noise(exact, stream)
        if stream.track is not None:  # an audit records releases
            noisy = stream.track.release(self, exact, noisy)
        return noisy if of_fit or exact.ndim > 0 else noisy.item()

    def _add_noise(self, value: np.ndarray, stream: SecretStream) -> np.ndarray:
        """Return `value` with noise from the stream."""


@dataclass(frozen=True)
class GaussianMechanism(AdditiveMechanism):
    """Gaussian mechanism, which adds independent Gaussian noise to a number or an array.

    The caller must ensure that `sensitivity` bounds the contribution of one record, for example by clipping the
    records.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise divided by `sensitivity`; above 0. `skdp.accounting.calibrate_noise_multiplier`
        computes it for a given epsilon and delta.
    sensitivity : float
        Largest Euclidean norm C of one record's contribution to the value; above 0, in the units of the value.

    Attributes
    ----------
    standard_deviation : float
        Standard deviation of the noise in each coordinate, in the units of the value.

    Notes
    -----
    **Guarantees.** The standard deviation of every coordinate is `noise_multiplier` times `sensitivity`, increased by
    one part in 4,055 for rounding errors. The event has the same `noise_multiplier` (Dwork & Roth 2014, appendix A;
    Balle & Wang 2018). The released value is the exact value plus ideal Gaussian noise, rounded to a grid. Grid and
    standard deviation depend only on the two parameters, so the number of coordinates can be private. The value can be
    a floating-point sum of up to 2**20 records in any order. The accountant is charged before noise is drawn. A
    rejected value is not charged.

    *Floating-point sums.* The rounding errors of a sum depend on the order of its terms, so removing a record can
    change all later roundings (Casacuberta et al. 2022). Let each of m contributions have a norm of at most C and pass
    through at most h additions with relative rounding error u = 2**-53. A coordinate then has an error of at most 1.01
    h u times the sum of its absolute terms (Higham 2002, section 4.2), and these sums have a norm of at most m C. So
    the distance of two neighboring sums exceeds C by at most 2.02 h m u C. In any order, h < m, so this is 1.01 C /
    2**12 for m up to 2**20. The noise is increased by this factor, which suffices for all h m up to 2**40, for example
    for sums of up to 2**24 rows in blocks of 512. Under ``replace_one`` all terms double, as does the sensitivity.

    *Floating-point noise.* Let D be the increased standard deviation, and g the step of the grid, a power of two of at
    most D / 2**26. A value v is split into a multiple of g and a remainder r g, with r from -1/2 to 1/2. The split is
    exact except for remainders below 2**-1022 steps, which D covers. The mechanism adds g floor(r + s z + 1/2) to the
    multiple, where s = D / g and z is a normal number with as many bits as the rounding requires. The result is v + D
    z, rounded to the nearest multiple of g: post-processing of the Gaussian mechanism in each coordinate. (Rounding the
    exact value first would change it by up to g / 2 in every coordinate.) Doubles represent both summands exactly, and
    the rounding of their sum is post-processing. So the low-order bits of a released number do not depend on the value,
    unlike those of a sum of two doubles (Mironov 2012).

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
    >>> round(accountant.spent, 2)
    0.5
    """

    noise_multiplier: float
    sensitivity: float
    standard_deviation: float = field(init=False, repr=False, compare=False)
    _event: GaussianDpEvent = field(init=False, repr=False, compare=False)
    _grid_and_scale: tuple[float, float] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # as doubles: in other arithmetic, the product could underflow to 0
        event = GaussianDpEvent(self.noise_multiplier)
        noise = event.noise_multiplier
        constraint = "a number above 0, the norm to which records are clipped"
        sensitivity = check_real("sensitivity", self.sensitivity, above=0, constraint=constraint)
        # All numbers derived from the standard deviation are normal doubles.
        if not 2.0**-960 <= noise * sensitivity <= 2.0**990:
            raise ValueError(
                "The standard deviation of the noise, `noise_multiplier` times `sensitivity`, must be from 1e-288 to "
                f"1e298, got noise_multiplier={noise!r} and sensitivity={sensitivity!r}. Rescale the value."
            )
        # The grid depends only on the standard deviation, as the number of coordinates can be private. Its step is a
        # power of two of at most this fraction.
        deviation = noise * sensitivity * _INFLATION
        grid = math.ldexp(0.5, math.frexp(deviation * 2.0**-26)[1])
        vars(self).update(
            noise_multiplier=noise, sensitivity=sensitivity, standard_deviation=deviation, _event=event,
            _grid_and_scale=(grid, deviation / grid),
        )  # fmt: skip

    @property
    def event(self) -> GaussianDpEvent:
        """Privacy event of one release."""
        return self._event

    def _add_noise(self, value: np.ndarray, stream: SecretStream) -> np.ndarray:
        """Add noise. Only this line of the library adds Gaussian noise."""
        grid, scale = self._grid_and_scale
        return stream.noisy(value.ravel(), scale, grid).reshape(value.shape)


_INFLATION = 1.0 + 1.01 * 2.0**-12 + 2.0**-50  # for the rounding of sums of doubles, and of products


def checked_value(value: Any, *, whole: bool) -> np.ndarray:
    """Return `value` as an array of int64 or float64, or raise a ValueError that does not reveal its content.

    Masked arrays are rejected, because their masked cells would be released. Integers that a double would round are
    rejected, too.
    """
    largest = 2**53  # all integers up to this one are doubles
    try:
        exact = np.asarray(value)
        usable = exact.dtype.kind in ("uib" if whole else "buif") and not np.ma.isMaskedArray(value)
        if usable and exact.dtype.kind in "ui":
            usable = bool((exact <= largest).all() and (exact >= -largest).all())
        made = exact.astype(np.int64 if whole else np.float64) if usable else exact
        usable = usable and bool(np.isfinite(made).all())
    except Exception:  # third-party arrays can raise any exception, with values in its message
        usable = False
    if usable:
        return made
    needed = "finite real numbers in double precision. Pass a float or an array of floats."
    needed = "integers up to 2**53 in absolute value. Pass an int or an array of ints." if whole else needed
    raise ValueError(f"`value` must hold only {needed}") from None


def noise_ratio(share: float, rate: float = 1.0, n_steps: int = 1) -> float:
    """Return the ratio of the noise multipliers of a release and of `n_steps` steps, for a fraction of the common mu^2.

    T steps at a sampling rate q have a mu^2 of about T (q / sigma)^2, and exactly this value at q = 1. At a smaller
    rate they can cost more, and then the release has a smaller fraction.
    """
    return math.sqrt((1.0 - share) / (share * n_steps)) / rate
