"""The description of a table, by one release."""

from __future__ import annotations

from typing import Any

from skdp.statistics.describer import MOST_BINS, TableDescriber
from skdp.statistics.description import PrivateDescription


def describe(
    table: Any,
    *,
    schema: Any = None,
    epsilon: float | None = 1.0,
    delta: float | str = "auto",
    by: str | None = None,
    groups: Any = None,
    quantiles: Any = (0.05, 0.25, 0.5, 0.75, 0.95),
    correlation: bool = True,
    crosstabs: Any = (),
    n_bins: int = MOST_BINS,
    noise_multiplier: float | None = None,
    adjacency: str = "zero_out",
    accounting: str = "pld",
    accountant: Any = None,
    n_samples_public: int | None = None,
    n_groups_public: int | None = None,
    random_state: Any = None,
) -> PrivateDescription:
    """Describe."""
    describer = TableDescriber(
        schema,
        by=by,
        correlation=correlation,
        crosstabs=crosstabs,
        quantiles=quantiles,
        n_bins=n_bins,
        epsilon=epsilon,
        delta=delta,
        noise_multiplier=noise_multiplier,
        adjacency=adjacency,
        accounting=accounting,
        accountant=accountant,
        n_samples_public=n_samples_public,
        n_groups_public=n_groups_public,
        random_state=random_state,
    )
    return PrivateDescription.of(describer.fit(table, groups=groups))


__all__ = ["describe"]
