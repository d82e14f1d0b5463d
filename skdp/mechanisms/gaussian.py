"""Normal noise, and what it is worth."""

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


@dataclass(frozen=True)
class GaussianMechanism(AdditiveMechanism):
    """Gaussian mechanism, which adds independent normal noise to a number or an array and prices the release.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation sigma of the noise, divided by `sensitivity`. Above 0.
    sensitivity : float
        Largest Euclidean norm C of what one record adds to the value. Above 0, in the units of the value.

    Attributes
    ----------
    standard_deviation : float
        Of the noise that is drawn for each coordinate, in the units of the value.

    Notes
    -----
    **Guarantees.** The standard deviation of every coordinate is `noise_multiplier` times `sensitivity`, and larger by
    one part in 4,055. The event states the same `noise_multiplier` (Dwork & Roth 2014, appendix A; Balle & Wang 2018).
    The released value is the exact one with ideal normal noise, rounded to a grid. The grid and the standard deviation
    follow from the two parameters alone, and not from the value or its number of coordinates, which may therefore be
    private. The value may be a sum of up to 2**20 records' contributions, added up as doubles in any order. `release`
    charges the accountant before it draws noise. A value that it rejects is not charged.

    Proof. Sums of doubles depend on their order, and all behind a record that leaves may round otherwise (Casacuberta
    et al. 2022). Let each of m contributions have a norm of at most C, and pass through at most h additions, each of
    which rounds its result by u = 2**-53 of it. Then a coordinate is wrong by at most 1.01 h u times the sum of the
    sizes that are added to it (Higham 2002, section 4.2), and these sums have a norm of at most m C. So two sums are
    further apart than C by at most 2.02 h m u C: in any order, where h < m, by 1.01 C / 2**12 for m up to 2**20. The
    noise is larger than sigma C by this factor. The same holds for all h m up to 2**40, for example for sums of up to
    2**24 rows in blocks of 512. Under ``replace_one`` all of this is doubled, as the sensitivity is.

    Let D be the standard deviation with this factor, and g the step of the grid, a power of two of at most D / 2**26.
    A value v is split into a multiple of g and a rest r g, with r from -1/2 to 1/2 (`skdp._kernels.bits`). The split is
    exact, but for rests below 2**-1022 steps, for which D has room. To the multiple g floor(r + s z + 1/2) is added,
    where s = D / g and z is a normal number of infinitely many bits, of which as many are drawn as the rounding needs
    (`skdp.mechanisms.streams`). The sum is v + D z, rounded to the nearest multiple of g. This is
    post-processing of the Gaussian mechanism, one coordinate at a time, and has the same event. Rounding the exact
    value first would move it by up to g / 2 in every coordinate, and the noise would depend on their number. Doubles
    hold both summands exactly, and round their sum where it has more than 53 bits, which is post-processing too. Thus
    the low bits of a released number do not depend on the value, as they do in a sum of two doubles (Mironov 2012).

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
    standard_deviation: float = field(init=False, repr=False, compare=False)
    _event: GaussianDpEvent = field(init=False, repr=False, compare=False)
    _grid_and_scale: tuple[float, float] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # as doubles: in the arithmetic of what was given, a product could overflow to 0
        event = GaussianDpEvent(self.noise_multiplier)
        noise = event.noise_multiplier
        remedy = "give the norm that records are clipped to"
        sensitivity = check_real("sensitivity", self.sensitivity, above=0, remedy=remedy)
        # All numbers that are derived from the standard deviation are normal doubles.
        if not 2.0**-960 <= noise * sensitivity <= 2.0**990:
            raise ValueError(
                f"noise_multiplier={noise!r}, sensitivity={sensitivity!r}: their product, the standard deviation of "
                "the noise, is not between 1e-288 and 1e298; scale the value."
            )
        # The grid follows from the standard deviation alone: a number of coordinates can be private. Its step is a
        # power of two of at most this fraction.
        deviation = noise * sensitivity * _INFLATION
        grid = math.ldexp(0.5, math.frexp(deviation * 2.0**-26)[1])
        vars(self).update(
            noise_multiplier=noise, sensitivity=sensitivity, standard_deviation=deviation, _event=event,
            _grid_and_scale=(grid, deviation / grid),
        )  # fmt: skip

    @property
    def event(self) -> GaussianDpEvent:
        """Event of one release."""
        return self._event

    def _checked(self, value: Any) -> np.ndarray:
        return checked_value(value, whole=False)

    def _add_noise(self, value: np.ndarray, stream: SecretStream) -> np.ndarray:
        """The only line of the library that adds normal noise is here."""
        grid, scale = self._grid_and_scale
        return stream.noisy(value.ravel(), scale, grid).reshape(value.shape)


_INFLATION = 1.0 + 1.01 * 2.0**-12 + 2.0**-50  # two sums of doubles may differ by more than C; products are rounded


def checked_value(value: Any, *, whole: bool) -> np.ndarray:
    """Return `value` as an array of int64 or of float64, or raise a ValueError that says nothing of what is in it.

    Refused are masked arrays, whose hidden cells would be released, and whole numbers that a double would round.
    """
    largest = 2**53  # whole numbers up to here are doubles
    try:
        exact = np.asarray(value)
        usable = exact.dtype.kind in ("uib" if whole else "buif") and not np.ma.isMaskedArray(value)
        if usable and exact.dtype.kind in "ui":
            usable = bool((exact <= largest).all() and (exact >= -largest).all())
        made = exact.astype(np.int64 if whole else np.float64) if usable else exact
        usable = usable and bool(np.isfinite(made).all())
    except Exception:  # somebody's own array may raise anything, with values in its message
        usable = False
    if usable:
        return made
    needed = "finite real number in double precision: give a float or an array of floats."
    needed = "whole number up to 2**53: give an int or an array of ints." if whole else needed
    raise ValueError(f"value holds what is no {needed}") from None


def noise_ratio(share: float, rate: float = 1.0, n_steps: int = 1) -> float:
    """Noise multiplier of a Gaussian release over that of steps beside it, of whose common mu^2 it has this share.

    Steps at a sampling rate q have a mu^2 of about T (q / sigma)^2, and exactly that at q = 1. At a smaller rate they
    may cost more, and then the release has less than its share.
    """
    return math.sqrt((1.0 - share) / (share * n_steps)) / rate
