"""Neighboring relations as estimators take them."""

from __future__ import annotations

from skdp import AddRemove


def with_n_public(adjacency: str, n: int) -> str | AddRemove:
    """Return a relation by its name, as an estimator takes it that may know that there are about `n` records."""
    return AddRemove(n) if adjacency == "add_remove" else adjacency
