"""Privacy filters: which further charges a ceiling admits when they are chosen after seeing outputs.

A price that is composed jointly (PLD) holds for a plan fixed before data are read. Once outputs have been
seen, the next charge may depend on them, and a theorem about *adaptively chosen* privacy parameters is
needed. Two are used.

- Plain Gaussian releases: a run in which the sum of mu^2 never passes B is sqrt(B)-GDP (Smith & Thakurta
  2022, fully adaptive Gaussian composition), so B = mu(epsilon, delta)^2 of the closed form is sound.
- Anything with a Rényi price: a run in which the sum of the Rényi divergences at ONE order, fixed in
  advance, never passes B is (order, B)-RDP (Feldman & Zrnic 2021, Theorem 3.1; the order must not depend
  on outputs), so B = epsilon less the conversion term of that order is sound. Both directions of
  neighbours are covered, as the Rényi price is the larger of the two.

The family and the order are fixed by the first charge (the family by `filter_family` of the accountant, if
it is given: who plans to mix kinds asks for Rényi from the start). That one was chosen before any output, so it is
public, and so is everything derived from it. Three cases are then distinguished by public facts alone,
and in each of them one theorem covers the whole run; no delta is spent twice:

1. the first plan exceeds the filter's budget (PLD is tighter and admitted it): nothing further is ever
   admitted, the run *is* the plan, and its PLD price holds;
2. the first plan is all plain Gaussian and within budget, and Rényi was not asked for: the run is
   governed by the Gaussian filter, and any other event is refused. Passing to the Rényi filter midway
   would be a choice made on outputs: the transcripts split into two families, each with its own delta,
   and only the sum of both would hold;
3. otherwise the Rényi filter governs all charges, plain Gaussian ones included.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from ._composition import Releases
from ._gaussian import gaussian_mu
from ._rdp import ORDERS, rdp, rdp_refusal, renyi_epsilon_at

__all__ = ["FAMILIES", "Filter", "filter_for"]

FAMILIES = ("auto", "gaussian", "renyi")


@dataclass(frozen=True)
class Filter:
    """A budget that adds up.

    Attributes
    ----------
    order : float or None
        Rényi order; None for the Gaussian filter, and for one that admits nothing (budget 0).
    budget : float
        Most that the costs may sum to: mu^2, or Rényi divergence in nats.
    doubled : bool
        Whether neighbours replace a record.
    """

    order: float | None
    budget: float
    doubled: bool

    def covers(self, found: Releases) -> bool:
        """Whether the filter's theorem speaks about these releases."""
        if self.order is None:
            return found.plain
        return not found.non_private and rdp_refusal(found, doubled=self.doubled) is None

    def cost(self, found: Releases) -> float:
        """What the releases take from the budget; inf if no theorem speaks about them."""
        if not self.covers(found):
            return math.inf
        if self.order is None:
            return found.mu_squared * (4.0 if self.doubled else 1.0)
        return rdp(found, self.order, doubled=self.doubled)


@lru_cache(maxsize=256)
def filter_for(first: Releases, epsilon: float, delta: float, doubled: bool, family: str = "auto") -> Filter:
    """The filter of a run whose first charge is `first`.

    Parameters
    ----------
    first : Releases
    epsilon, delta : float
        The ceiling.
    doubled : bool
        Whether neighbours replace a record.
    family : {"auto", "gaussian", "renyi"}
        "auto": Gaussian if `first` is plain Gaussian, otherwise Rényi.

    Returns
    -------
    Filter
        The Gaussian filter, or the Rényi filter at the order at which `first` could be repeated most often;
        one of budget 0, which admits nothing further, where the family has no price for `first`.
    """
    if first.plain and family != "renyi":
        return Filter(None, gaussian_mu(epsilon, delta) ** 2, doubled)
    if family == "gaussian" or first.non_private or rdp_refusal(first, doubled=doubled) is not None:
        return Filter(None, 0.0, doubled)
    best, chosen = -math.inf, Filter(None, 0.0, doubled)
    for order in ORDERS:
        cost = rdp(first, order, doubled=doubled)
        budget = epsilon - renyi_epsilon_at(order, 0.0, delta)
        if budget > 0.0 and 0.0 < cost < math.inf and budget / cost > best:
            best, chosen = budget / cost, Filter(order, budget, doubled)
        if cost > epsilon + 1.0 - math.log1p(-1.0 / order):
            break
    return chosen
