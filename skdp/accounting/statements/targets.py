"""What a budget is stated in: an epsilon at a delta, or an attacker's success rate. Calibration uses targets only.

A target has these attributes, and another kind of promise is another class with the same:

- `price(event, method, adjacency)`: what an event costs, never below the truth; it falls with the noise. `rough` is the
  same in less time, a little above, for searches;
- `goal`: the most that `price` may be, above 0; `mu`: the size of the largest Gaussian release that fits;
- `of_size(mu)`: a target of the same kind that a Gaussian release of this size just fits;
- for messages, `words`: the parameters as they were given; `place`: where `price` is read; `remedy`: what to raise
  where the goal cannot be reached.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from scipy.special import ndtr, ndtri

from skdp.accounting.events.specifications import DpEvent, read_real, show
from skdp.accounting.formulas.gaussian import gaussian_delta, gaussian_epsilon, gaussian_mu
from skdp.accounting.methods import check_delta, check_epsilon, get_epsilon, rough_epsilon
from skdp.accounting.statements.privacy_curves import PrivacyProfile

_DOWN = 1.0 - 1e-9  # a mu by the inverse of the normal distribution, which is rounded


@dataclass(frozen=True)
class EpsilonTarget:
    """Epsilon at a delta."""

    epsilon: float
    delta: float
    remedy = "raise epsilon or delta"

    @property
    def goal(self) -> float:
        return self.epsilon

    @property
    def mu(self) -> float:
        return gaussian_mu(self.epsilon, self.delta)

    @property
    def words(self) -> str:
        return f"epsilon={self.epsilon!r}, delta={self.delta!r}"

    @property
    def place(self) -> str:
        return f"delta={self.delta!r}"

    def price(self, event: DpEvent, method: str, adjacency: str) -> float:
        return get_epsilon(event, self.delta, method=method, adjacency=adjacency)

    def rough(self, event: DpEvent, method: str, adjacency: str) -> float:
        return rough_epsilon(event, self.delta, method=method, adjacency=adjacency)

    def of_size(self, mu: float) -> EpsilonTarget:
        return EpsilonTarget(gaussian_epsilon(self.delta, mu), self.delta)


@dataclass(frozen=True, kw_only=True, repr=False)
class Risk:
    """Most that a membership-inference attack may achieve: a privacy budget in place of an epsilon.

    Parameters
    ----------
    advantage : float, optional
        In (0, 1): most that the true-positive rate of any attack may exceed its false-positive rate.
    tpr, fpr : float, optional
        Instead of `advantage`: the largest true-positive rate of any attack with this false-positive rate, which is
        smaller; both in (0, 1).

    References
    ----------
    Kulynych et al. (2024), "Attack-aware noise calibration for differential privacy".

    Examples
    --------
    >>> import skdp
    >>> model = skdp.DPLogisticRegression(epsilon=skdp.Risk(advantage=0.1), classes=[0, 1])
    >>> model.epsilon
    Risk(advantage=0.1)
    """

    advantage: float | None = None
    tpr: float | None = None
    fpr: float | None = None

    def __post_init__(self) -> None:
        for name, value in self._stated.items():
            number = read_real(value)
            if number is None or not 0.0 < number < 1.0:
                raise ValueError(f"Risk: {name} must be a number above 0 and below 1, got {show(value)}.")
            object.__setattr__(self, name, number)
        if set(self._stated) not in ({"advantage"}, {"tpr", "fpr"}):
            raise ValueError(f"Risk takes advantage alone, or tpr and fpr, got {sorted(self._stated)}.")
        if self.tpr is not None and self.fpr is not None and self.fpr >= self.tpr:
            raise ValueError(f"Risk: fpr must be below tpr, got fpr={self.fpr!r} and tpr={self.tpr!r}.")

    def __repr__(self) -> str:
        return f"Risk({', '.join(f'{name}={value!r}' for name, value in self._stated.items())})"

    @property
    def _stated(self) -> dict[str, float]:
        """The parameters that were set."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class RiskTarget:
    """A `Risk`: most that a test of whether a record is there may find beyond guessing.

    Attributes
    ----------
    tpr : float or None
        Most records that it may find at `fpr`; None for a bound on the advantage, which is `goal`.
    fpr : float
        Its false positives; 0 for a bound on the advantage.
    goal : float
        Most that true positives may exceed false ones: by any test, or at `fpr`.
    """

    tpr: float | None
    fpr: float
    goal: float
    remedy = "raise the risk"

    @classmethod
    def of(cls, risk: Risk) -> RiskTarget:
        if risk.tpr is None or risk.fpr is None:
            return cls(None, 0.0, float(risk.advantage or 0.0))
        return cls(risk.tpr, risk.fpr, risk.tpr - risk.fpr)

    @property
    def risk(self) -> Risk:
        return Risk(advantage=self.goal) if self.tpr is None else Risk(tpr=self.tpr, fpr=self.fpr)

    @property
    def mu(self) -> float:
        if self.tpr is None:
            return gaussian_mu(0.0, self.goal)
        return float(ndtri(self.tpr) - ndtri(self.fpr)) * _DOWN

    @property
    def words(self) -> str:
        return f"epsilon={self.risk!r}"

    @property
    def place(self) -> str:
        return self.words

    def price(self, event: DpEvent, method: str, adjacency: str) -> float:
        profile = PrivacyProfile(event, method=method, adjacency=adjacency)
        if self.tpr is None:
            return profile.advantage()
        return float(profile.true_positive_rate(self.fpr)) - self.fpr

    rough = price  # there is nothing quicker

    def of_size(self, mu: float) -> RiskTarget:
        if self.tpr is None:
            return RiskTarget(None, 0.0, gaussian_delta(0.0, mu))
        tpr = float(ndtr(mu + ndtri(self.fpr)))
        return RiskTarget(tpr, self.fpr, tpr - self.fpr)

    def epsilon(self, delta: float) -> float:
        """Epsilon of the Gaussian release that just fits; for rules that ask for one."""
        return gaussian_epsilon(delta, self.mu)

    def implied_by(self, delta: float) -> float:
        """The largest epsilon such that whatever is (epsilon, delta)-private has this risk; 0 or less if there is none.

        Of false positives a, an (epsilon, delta)-private release lets a test find the smaller of e^epsilon a + delta
        and 1 - e^-epsilon (1 - delta - a) at most (Wasserman & Zhou 2010); the advantage is largest where they meet,
        (e^epsilon - 1 + 2 delta) / (e^epsilon + 1) (Kairouz, Oh & Viswanath 2015).
        """
        if self.tpr is None:
            return math.log((1.0 + self.goal - 2.0 * delta) / (1.0 - self.goal)) * _DOWN if self.goal > delta else 0.0
        if self.tpr <= delta:
            return 0.0
        ahead = math.log((self.tpr - delta) / self.fpr)
        exchanged = math.log((1.0 - delta - self.fpr) / (1.0 - self.tpr)) if delta + self.fpr < 1.0 else 0.0
        return max(ahead, exchanged) * _DOWN


BudgetTarget = EpsilonTarget | RiskTarget


def target_of(epsilon: Any, delta: Any) -> BudgetTarget:
    """The target that the parameters of a calibration stand for: a risk, or an epsilon at `delta`."""
    if isinstance(epsilon, Risk):
        return RiskTarget.of(epsilon)
    return EpsilonTarget(check_epsilon(epsilon, positive=True), check_delta(delta))
