"""`RiskDisplay`: of 1,000 people, how many an attacker names rightly, with and without what was released."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from skdp.accounting import DpEvent, PrivacyProfile

from ._axes import BLUE, PALE, VERMILION, axes_for, draw_legend, small_print

PEOPLE = 1000
_COLUMNS = 40


@dataclass(kw_only=True, eq=False, repr=False)
class RiskDisplay:
    """Display of what an attacker gains: 1,000 people whose records were used, and those who are named as such.

    It is recommended to use `from_event` or `from_estimator` to create a display. All parameters are stored as
    attributes.

    Parameters
    ----------
    by_chance : int
        How many of the 1,000 are named without the release.
    with_release : int
        How many of them are named at most by whoever has it; rounded up.
    fpr : float
        Share of people who are named although their records were not used; the same with and without the release.
    right_guesses : int
        Of 1,000 guesses whether a record was used, where a fair coin decides that, how many are right at most. Without
        the release 500 are.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes with the people.
    figure_ : matplotlib.figure.Figure
        Figure of the axes.
    people_ : list of matplotlib.collections.PathCollection
        Those named by chance, those named in addition, and the others; a kind without people is left out.
    text_ : str
        What the picture says, in words.

    Notes
    -----
    The attacker knows all other records, the record in question and every public parameter, and names whom the best
    test names (`skdp.accounting.PrivacyProfile.true_positive_rate`). Real attackers know less. Rows of one person have
    to be one unit (`docs/units.md`) for a dot to be a person.
    """

    by_chance: int
    with_release: int
    fpr: float
    right_guesses: int

    @classmethod
    def from_event(
        cls, event: DpEvent, *, adjacency: str = "zero_out", fpr: float = 0.01, ax: Any = None, **kwargs: Any
    ) -> RiskDisplay:
        """Compute what the release of an event lets an attacker find, and plot it.

        Parameters
        ----------
        event : DpEvent
            All that is released.
        adjacency : {"zero_out", "add_remove", "replace_one"}, default="zero_out"
            Neighbouring relation.
        fpr : float, default=0.01
            Share of false positives, in (0, 1).
        ax : matplotlib axes, optional
            Axes to plot on. If None, a new figure is created.
        **kwargs : dict
            Keyword arguments of `plot`.

        Returns
        -------
        display : RiskDisplay
            Display that holds the plot.
        """
        profile = PrivacyProfile(event, adjacency=adjacency)
        found = {
            "by_chance": round(PEOPLE * fpr),
            "with_release": _up(PEOPLE * profile.true_positive_rate(fpr)),
            "right_guesses": _up(PEOPLE * 0.5 * (1.0 + profile.advantage())),
        }
        return cls(fpr=fpr, **found).plot(ax=ax, **kwargs)

    @classmethod
    def from_estimator(cls, estimator: Any, *, fpr: float = 0.01, ax: Any = None, **kwargs: Any) -> RiskDisplay:
        """Compute it for a fitted private estimator, pipeline or search, and plot it.

        Parameters
        ----------
        estimator : estimator
            Fitted private estimator, pipeline or search.
        fpr : float, default=0.01
            Share of false positives, in (0, 1).
        ax : matplotlib axes, optional
            Axes to plot on. If None, a new figure is created.
        **kwargs : dict
            Keyword arguments of `plot`.

        Returns
        -------
        display : RiskDisplay
            Display that holds the plot.
        """
        return cls.from_event(estimator.privacy_event_, adjacency=estimator.adjacency_, fpr=fpr, ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Plot the people.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to plot on. If None, a new figure is created.
        **kwargs : dict
            Keyword arguments of every call of `matplotlib.axes.Axes.scatter`.

        Returns
        -------
        display : RiskDisplay
            The display itself, with `ax_`, `figure_`, `people_` and `text_`.
        """
        ax = axes_for(self, ax, (6.4, 4.6))
        place = np.arange(PEOPLE)
        x, y = place % _COLUMNS, place // _COLUMNS
        more = max(0, self.with_release - self.by_chance)
        kinds = [
            (slice(0, self.by_chance), BLUE, f"{self.by_chance} named without the model"),
            (slice(self.by_chance, self.by_chance + more), VERMILION, f"{more} more named with it, at most"),
            (slice(self.by_chance + more, PEOPLE), PALE, "not named"),
        ]
        self.people_ = []
        named = []
        for part, colour, name in kinds:
            if place[part].size:
                style: dict[str, Any] = {"color": colour, "s": 22, "label": name}
                self.people_.append(ax.scatter(x[part], y[part], **{**style, **kwargs}))
                named.append((self.people_[-1], name))
        ax.set(xticks=[], yticks=[], xlim=(-1, _COLUMNS), ylim=(PEOPLE // _COLUMNS, -1))
        ax.spines[:].set_visible(False)
        ax.set_xlabel(f"{PEOPLE:,} people whose records were used")
        draw_legend(ax, named, fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(named))
        self.text_ = (
            f"An attacker who knows all other records accepts to name {self.fpr:.3g} of those who are not in the data: "
            f"of {PEOPLE:,} people who are, {self.by_chance} are then named by chance, and {self.with_release} at most "
            f"with the model. If a coin decides who is in, {self.right_guesses} of {PEOPLE:,} guesses are right at "
            f"most, instead of {PEOPLE // 2}."
        )
        small_print(ax, self.text_)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _up(number: float) -> int:
    """A number of people, rounded up; rounding of the figure itself does not make one more."""
    return min(PEOPLE, math.ceil(number - 1e-9))
