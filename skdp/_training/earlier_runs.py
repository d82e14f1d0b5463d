"""What a fit continues that starts from the current parameters: earlier runs, which it must be like."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

from skdp._checks.leaks import Leak
from skdp._fit.releases import Release, releases_of
from skdp.accounting import DpEvent, compose


class EarlierRuns(NamedTuple):
    """The runs on which the current parameters of an estimator depend, and what the next one must have in common.

    Attributes
    ----------
    releases : tuple of Release
    counts : (int, int)
        Steps and epochs.
    before_last : (int, int)
        Those of all runs but the last.
    leaks : tuple of Leak or None
        None if they were not kept.
    delta : float
    adjacency, unit, group_name : str
    """

    releases: tuple[Release, ...]
    counts: tuple[int, int]
    before_last: tuple[int, int]
    leaks: tuple[Leak, ...] | None
    delta: float
    adjacency: str
    unit: str
    group_name: str

    @classmethod
    def of(cls, estimator: Any) -> Self:
        """Return those of a fitted estimator."""
        learned = estimator.__dict__
        return cls(
            releases_of(estimator), (estimator.n_steps_, estimator.n_iter_), estimator._fitted_before,
            learned.get("_fitted_leaks"), estimator.delta_, estimator.adjacency_, estimator.privacy_unit_,
            learned.get("_fitted_group_name", ""),
        )  # fmt: skip

    @property
    def event(self) -> DpEvent | None:
        """What the runs cost together, None if there are none."""
        return compose(release.event for release in self.releases) if self.releases else None

    def without_last(self) -> Self:
        """Return the runs before the last one, which was interrupted and goes on."""
        return self._replace(releases=self.releases[:-1], counts=self.before_last)

    def check(self, model: Any) -> None:
        """Reject a run for rows after one for groups, the other way round, by other groups or of other neighbors.

        `model` is the copy that learns: it keeps the name of the column of groups.
        """
        now, name = model.privacy_unit_, model.__dict__.get("_fitted_group_name", "")
        if self.unit != now:
            raise ValueError(
                f"earlier runs were private for a {self.unit}, and this one would be for a {now}: give groups to all "
                "runs or to none, or start again with fit and warm_start=False."
            )
        if self.group_name and name not in ("", self.group_name):
            raise ValueError(
                f"groups={name!r} differs from the {self.group_name!r} of earlier runs, and two kinds of groups have "
                "no joint price: give the same column to all runs, or start again with fit and warm_start=False."
            )
        if self.group_name:
            model._fitted_group_name = self.group_name
        if self.adjacency != model.adjacency:
            raise ValueError(
                f"adjacency={model.adjacency!r} differs from the {self.adjacency!r} of earlier runs, and two kinds of "
                "neighbours have no joint price: use the same, or start again with fit and warm_start=False."
            )


__all__ = ["EarlierRuns"]
