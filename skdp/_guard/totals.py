"""The joint price of several fits of one or more private estimators, where it can be known without the data."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import Any, NamedTuple

from sklearn import get_config
from sklearn.utils.metadata_routing import get_routing_for_object

from skdp._checks.default_delta import check_delta, delta_for
from skdp._checks.units import GROUP, ROW
from skdp.accounting import (
    DpEvent,
    SelfComposedDpEvent,
    compose,
    get_epsilon,
    resolve_accountant,
)
from skdp.accounting.calibration.noise import calibrate_to
from skdp.accounting.targets import target_of

_SHAPES = ((50, 3), (997, 41), (1_000_003, 7))


class Total(NamedTuple):
    """An upper bound on the number of fits, and their joint price, each None where it is not known."""

    n_fits: int | None = None
    epsilon: float | None = None
    delta: float | None = None

    def __str__(self) -> str:
        if self.n_fits is None or self.n_fits < 2:
            return ""
        if self.epsilon is None:
            return f"up to {self.n_fits} fits in all"
        return f"up to {self.n_fits} fits in all, which alone cost epsilon={self.epsilon:.3g} (delta={self.delta:g})"


class FitPrice(NamedTuple):
    """One fit: its event, what it is priced with, and what it is private for, a row or a group."""

    event: DpEvent
    delta: float
    adjacency: str
    unit: str = ROW


def add_fits(fits: Iterable[tuple[Any, int | None]], price: FitPrice | None = None) -> Total:
    """Return the total of private estimators that are fitted several times.

    Prices at two deltas, adjacencies or units are not added: fits for rows and fits for groups have no joint price.

    Parameters
    ----------
    fits : iterable of (estimator, int or None)
        Estimators, and how often each is fitted.
    price : FitPrice or None, default=None
        The price of one fit, if there is one estimator and it is known. By default it is planned without data.

    Returns
    -------
    Total
    """
    listed = list(fits)
    if any(times is None for _, times in listed):
        return Total()
    n_fits = sum(times or 0 for _, times in listed)
    prices = [price] if price is not None and len(listed) == 1 else [plan_without_data(leaf) for leaf, _ in listed]
    known = [each for each in prices if each is not None]
    if n_fits < 1 or len(known) < len(prices) or len({each[1:] for each in known}) != 1:
        return Total(n_fits)
    events = [SelfComposedDpEvent(each.event, n) for each, (_, n) in zip(known, listed, strict=True) if n]
    try:
        epsilon = get_epsilon(compose(events), known[0].delta, adjacency=known[0].adjacency)
    except Exception:  # an event without a price by this method
        return Total(n_fits)
    return Total(n_fits, epsilon, known[0].delta)


def plan_without_data(estimator: Any) -> FitPrice | None:
    """Return the price of a fit that costs the same for tables of any shape, or None.

    A delta that follows from the number of rows is taken for a single row, where it is largest: at that delta, a fit to
    more rows costs no more.
    """
    try:
        unit = GROUP if asks_for_groups(estimator) else ROW
        public = estimator.n_samples_public if unit == ROW else estimator.n_groups_public
        ledger, n = resolve_accountant(estimator.accountant), public or 1
        copied = copy(estimator).set_params(accountant=None)
        copied.set_params(delta=delta_for(check_delta(copied.delta), ledger, n))
        first, *others = (copied._plan_step(*shape).event_at for shape in _SHAPES)
        if any(event_at(1.0) != first(1.0) for event_at in others):
            return None
        noise = copied.noise_multiplier
        if noise is None:
            target = target_of(copied.epsilon, copied.delta, getattr(copied, "risk", None))
            noise = calibrate_to(first, target, adjacency=copied.adjacency)
        return FitPrice(first(noise), float(copied.delta), str(copied.adjacency), unit)
    except Exception:  # a budgeted pipeline, a search, or parameters that fit will refuse
        return None


def asks_for_groups(estimator: Any) -> bool:
    """Whether scikit-learn's routing of metadata hands labels of units to the ``fit`` of an estimator."""
    if not get_config()["enable_metadata_routing"]:
        return False
    routing = get_routing_for_object(estimator)
    given = getattr(getattr(routing, "fit", None), "requests", {}).get("groups")
    return bool(routing.consumes("fit", ["groups"])) or (isinstance(given, str) and given.isidentifier())  # an alias
