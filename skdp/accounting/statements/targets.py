"""Targets of a calibration: epsilon at a delta, or an attacker's success rate.

A target has these attributes, and a new type of guarantee is a new class with the same ones:

- `cost(event, method, adjacency)`: upper bound of the cost of an event, which decreases with the noise. `rough` is a
  faster and slightly larger bound for searches;
- `goal`: largest admitted cost, above 0; `mu`: size of the largest Gaussian release that meets the goal;
- `of_size(mu)`: target of the same type that a Gaussian release of this size just meets;
- for messages, `words`: the given parameters; `place`: where the cost is evaluated; `remedy`: what to raise if the goal
  cannot be reached.
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

_DOWN = 1.0 - 1e-9  # covers the rounding of mu, an inverse of the normal distribution


@dataclass(frozen=True)
class EpsilonTarget:
    """Target of an epsilon at a delta."""

    epsilon: float
    delta: float
    remedy = "Raise epsilon or delta"

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

    def cost(self, event: DpEvent, method: str, adjacency: str) -> float:
        return get_epsilon(event, self.delta, method=method, adjacency=adjacency)

    def rough(self, event: DpEvent, method: str, adjacency: str) -> float:
        return rough_epsilon(event, self.delta, method=method, adjacency=adjacency)

    def of_size(self, mu: float) -> EpsilonTarget:
        return EpsilonTarget(gaussian_epsilon(self.delta, mu), self.delta)


@dataclass(frozen=True, kw_only=True, repr=False)
class Risk:
    """Bound on membership-inference attacks, a privacy budget that replaces epsilon.

    Set either `advantage`, or both `tpr` and `fpr`. See ``docs/membership_inference.md``.

    Parameters
    ----------
    advantage : float, optional
        Largest membership inference advantage (true positive rate minus false positive rate) of any attack, in (0, 1).
    tpr, fpr : float, optional
        Largest true positive rate of any attack with the false positive rate `fpr`; both in (0, 1), with ``fpr < tpr``.

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
                raise ValueError(f"Risk: `{name}` must be a number above 0 and below 1, got {show(value)}.")
            object.__setattr__(self, name, number)
        if set(self._stated) not in ({"advantage"}, {"tpr", "fpr"}):
            raise ValueError(f"Risk: expected `advantage`, or both `tpr` and `fpr`, got {sorted(self._stated)}.")
        if self.tpr is not None and self.fpr is not None and self.fpr >= self.tpr:
            raise ValueError(f"Risk: `fpr` must be smaller than `tpr`, got fpr={self.fpr!r} and tpr={self.tpr!r}.")

    def __repr__(self) -> str:
        return f"Risk({', '.join(f'{name}={value!r}' for name, value in self._stated.items())})"

    @property
    def _stated(self) -> dict[str, float]:
        """The parameters that were set."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class RiskTarget:
    """Target of a `Risk`.

    Attributes
    ----------
    tpr : float or None
        Largest true positive rate at `fpr`; None for a bound on the advantage, which is `goal`.
    fpr : float
        False positive rate; 0 for a bound on the advantage.
    goal : float
        Largest difference of true and false positive rate: of any test, or at `fpr`.
    """

    tpr: float | None
    fpr: float
    goal: float
    remedy = "Raise the risk"

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

    place = words

    def cost(self, event: DpEvent, method: str, adjacency: str) -> float:
        profile = PrivacyProfile(event, method=method, adjacency=adjacency)
        if self.tpr is None:
            return profile.advantage()
        return float(profile.true_positive_rate(self.fpr)) - self.fpr

    rough = cost  # no faster bound is available

    def of_size(self, mu: float) -> RiskTarget:
        if self.tpr is None:
            return RiskTarget(None, 0.0, gaussian_delta(0.0, mu))
        tpr = float(ndtr(mu + ndtri(self.fpr)))
        return RiskTarget(tpr, self.fpr, tpr - self.fpr)

    def epsilon(self, delta: float) -> float:
        """Return the epsilon of the Gaussian release that just meets the risk, for rules that depend on epsilon."""
        return gaussian_epsilon(delta, self.mu)

    def implied_by(self, delta: float) -> float:
        """Return the largest epsilon for which every (epsilon, delta)-private release has this risk; at most 0 if none.

        With false positive rate a, the true positive rate is at most the smaller of e^epsilon a + delta and
        1 - e^-epsilon (1 - delta - a) (Wasserman & Zhou 2010). The advantage is largest where both are equal,
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
    """Return the target of the parameters of a calibration: a risk, or epsilon at `delta`."""
    if isinstance(epsilon, Risk):
        return RiskTarget.of(epsilon)
    return EpsilonTarget(check_epsilon(epsilon, positive=True), check_delta(delta))
