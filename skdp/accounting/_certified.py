"""`get_epsilon_bounds`: the truth, from both sides."""

from __future__ import annotations

import math
import sys

from ._composition import releases
from ._methods import check_adjacency, check_delta
from ._pld import pld_bounds
from ._refusals import check_priced
from .events import DpEvent

__all__ = ["get_epsilon_bounds"]


def get_epsilon_bounds(event: DpEvent, delta: float, *, adjacency: str = "zero_out") -> tuple[float, float]:
    """Certified bracket of the least epsilon at which an event is (epsilon, delta)-private.

    Parameters
    ----------
    event : DpEvent
        What `get_epsilon` prices by method "pld".
    delta : float
        In (0, 1).
    adjacency : {"zero_out", "add_remove", "replace_one"}
        What neighbours differ in.

    Returns
    -------
    lower, upper : float
        In nats. `upper` is what `get_epsilon` gives; the mechanism alone costs at least `lower`, by the
        proof in `skdp.accounting._bounds`. Mostly within 1e-3 of each other; wider, at worst with a `lower`
        of what a single release costs, where losses are large and rare or noise is nearly absent. Both are
        inf where no epsilon holds at this delta.
    """
    delta, adjacency = check_delta(delta), check_adjacency(adjacency)
    found = releases(event)
    if found.empty:
        return 0.0, 0.0
    if found.non_private:
        return math.inf, math.inf
    check_priced(found, "pld", adjacency == "replace_one")
    lower, upper = pld_bounds(found, delta, adjacency == "replace_one")
    return lower, max(upper, sys.float_info.min)
