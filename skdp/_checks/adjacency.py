"""The neighboring relation of an estimator: as its parameter states it, and settled in the copy of a fit."""

from __future__ import annotations

from typing import Any

from skdp._checks.parameters import show
from skdp.accounting import AddRemove, PrivacyAccountant, resolve_accountant
from skdp.accounting.methods import ADJACENCIES


def stated_adjacency(model: Any, accountant: PrivacyAccountant | None = None) -> str | AddRemove:
    """Return the neighboring relation of an estimator as its parameter states it, or reject it.

    None is the relation of the accountant, by default that of the estimator, else zero-out.
    """
    given = model.adjacency
    if given is None:
        if accountant is None and model.accountant is not None:
            accountant = resolve_accountant(model.accountant)
        given = (accountant and accountant.adjacency) or "zero_out"
    if isinstance(given, AddRemove):
        return given
    if isinstance(given, str) and given == "add_remove":
        if "_n_public" in vars(model):  # in a copy made for a fit
            return AddRemove(model._n_public)
        raise ValueError(
            f"adjacency={model.adjacency!r}: under add_remove the number of rows or groups is private; set "
            "adjacency=skdp.AddRemove(n_public=...), with a round number near it."
        )
    if isinstance(given, str) and given in ADJACENCIES:
        return given
    raise ValueError(
        f"adjacency={show(given)} is not known: use 'zero_out', 'replace_one' or skdp.AddRemove(n_public=...)."
    )


def settle_adjacency(model: Any) -> None:
    """Give a copy made for a fit the name of its neighboring relation, and the public number of records beside it."""
    stated = stated_adjacency(model)
    if isinstance(stated, AddRemove):
        model._n_public = stated.n_public
    model.adjacency = name_of_relation(stated)


def name_of_relation(stated: str | AddRemove) -> str:
    """Return the name of a neighboring relation."""
    return "add_remove" if isinstance(stated, AddRemove) else stated


def with_n_public(adjacency: str, n: Any) -> str | AddRemove:
    """Return a neighboring relation by its name, as parameters of a fit to `n` public records state it."""
    return AddRemove(n) if adjacency == "add_remove" else adjacency


def adjacency_of(model: Any) -> str:
    """Return the name of the neighboring relation of an estimator."""
    return name_of_relation(stated_adjacency(model))


def public_n(model: Any, n: int) -> int:
    """Return the number of rows, or of groups, that rules may use: under add_remove the data's own is private."""
    stated = stated_adjacency(model)
    return stated.n_public if isinstance(stated, AddRemove) else int(vars(model).get("_n_public", n))


def number_is_private(reader: Any) -> bool:
    """Whether the number of records is private to an estimator, in a fit or after it; False of any other object."""
    adjacency = getattr(reader, "adjacency", None)
    return isinstance(adjacency, AddRemove) or (isinstance(adjacency, str) and adjacency == "add_remove")
