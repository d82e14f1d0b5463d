"""What an export says of the guarantee: an explicit list, and nothing else of a ledger."""

from __future__ import annotations

from typing import Any

from sklearn.frozen import FrozenEstimator

import skdp
from skdp._checks.leaks import SEED, UNKNOWN, leaks_of
from skdp.accounting.ledger.serial import event_to_dict

FACTS = ("class", "epsilon", "delta", "unit", "adjacency", "event", "noise")
"""What is said of each private part. Its ledger is not asked: paths, labels, notes and other charges stay there."""


def facts_of(model: Any) -> dict[str, Any]:
    """Return what an export says of a fitted model, as JSON can hold it.

    Parameters
    ----------
    model : estimator
        Private, or a composition. One with a price of its own is one part, whatever it consists of.

    Returns
    -------
    dict
        The version of skdp, and the `FACTS` of each private part. "noise" is "secret", "seeded" or "not recorded".
    """
    return {"skdp": skdp.__version__, "privacy": [_facts_of_part(part) for part in _priced_parts(model)]}


def _priced_parts(model: Any) -> list[Any]:
    if hasattr(type(model), "_private_parts"):
        is_around = isinstance(getattr(model, "estimator", None), FrozenEstimator)  # which was paid for by other rows
        return [model, *_priced_parts(model.estimator_)] if is_around else [model]
    inner = [step for _, step in getattr(model, "steps", ())] or [getattr(model, "estimator_", None)]
    return [part for each in inner if each is not None and not isinstance(each, str) for part in _priced_parts(each)]


def _facts_of_part(part: Any) -> dict[str, Any]:
    kinds = {leak.kind for leak in leaks_of(part)}
    found = (
        type(part).__name__,
        float(part.epsilon_),
        float(part.delta_),
        getattr(part, "privacy_unit_", "row"),
        part.adjacency_,
        event_to_dict(part.privacy_event_),
        "seeded" if SEED in kinds else "not recorded" if UNKNOWN in kinds else "secret",
    )
    return dict(zip(FACTS, found, strict=True))
