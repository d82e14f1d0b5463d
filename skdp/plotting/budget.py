"""`BudgetDisplay`: charges of an accountant and its remaining budget; `RiskDisplay`: membership-inference risk."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from skdp._checks.parameters import without_removed
from skdp.accounting import DpEvent, PrivacyAccountant, PrivacyProfile, resolve_accountant
from skdp.accounting.ledger.report import to_digits
from skdp.plotting import _axes

_MOST_BARS = 16


@without_removed
@dataclass(kw_only=True, eq=False, repr=False)
class BudgetDisplay:
    """Charges of an accountant: epsilon added by each charge, running total, budget and remaining budget.

    It is recommended to use `from_accountant` to create a display. All parameters are stored as attributes.

    Parameters
    ----------
    labels : sequence of str of length n_charges
        Label of each charge, in order.
    totals : sequence of float of length n_charges
        Epsilon of all charges up to each one, in nats, under composition. A charge adds the difference to the total
        before it, which is less than its epsilon alone.
    delta : float
        Delta at which the totals are computed.
    privacy_costs : sequence of (float or None) of length n_charges, default=None
        Epsilon of each charge alone. None if a bar represents several charges.
    budget : float or None, default=None
        Budget of epsilon.
    remaining : float or None, default=None
        Largest epsilon of one more fit like the last one within the budget.
    note : str, default=""
        Note below the axes.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes with the bars.
    figure_ : matplotlib.figure.Figure
        Figure of the axes.
    bars_ : matplotlib.container.BarContainer
        One bar per charge, from the total before it to the total after it.
    remaining_bar_ : matplotlib.patches.Rectangle or None
        From the total to the budget; None without a budget, or if the budget is used up.
    budget_line_ : matplotlib.lines.Line2D or None
        Line at the budget; None without one.
    note_ : matplotlib.text.Annotation or None
        Note below the axes; None if it is empty.

    See Also
    --------
    skdp.PrivacyAccountant : The accountant.
    """

    labels: Sequence[str]
    totals: Sequence[float]
    delta: float
    privacy_costs: Sequence[float | None] | None = None
    budget: float | None = None
    remaining: float | None = None
    note: str = ""

    @classmethod
    def from_accountant(
        cls, accountant: Any, *, delta: float | None = None, ax: Any = None, **kwargs: Any
    ) -> BudgetDisplay:
        """Plot the charges of an accountant. No budget is consumed.

        Parameters
        ----------
        accountant : PrivacyAccountant, str or path-like
            Accountant, or the path of a budget file. If there are more than 16 charges, the earlier ones share a bar.
        delta : float, optional
            Delta at which the totals are computed. By default, and always if the accountant has a budget, the delta of
            the budget.
        ax : matplotlib axes, optional
            Axes to plot on. If None, a new figure is created.
        **kwargs : dict
            Keyword arguments of `plot`.

        Returns
        -------
        display : BudgetDisplay
            The display with its plot.

        Raises
        ------
        ValueError
            There is neither a budget nor a `delta`, or `delta` is not that of the budget.
        """
        ledger = resolve_accountant(accountant)
        if ledger is None:
            raise TypeError("`accountant` must be a PrivacyAccountant or the path of a budget file, got None.")
        delta = _check_delta(ledger, delta)
        labels, totals, privacy_costs = _running_totals(ledger, delta)
        return cls(
            labels=labels, totals=totals, delta=delta, privacy_costs=privacy_costs, budget=ledger.epsilon,
            remaining=None if ledger.epsilon is None else ledger.remaining(), note=_note(ledger, delta),
        ).plot(ax=ax, **kwargs)  # fmt: skip

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Plot the charges, the budget and the remaining budget.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to plot on. If None, a new figure is created.
        **kwargs : dict
            Keyword arguments of `matplotlib.axes.Axes.barh` for the charges.

        Returns
        -------
        display : BudgetDisplay
            The display itself, with `ax_`, `figure_`, `bars_`, `remaining_bar_`, `budget_line_` and `note_`.
        """
        ends = np.asarray(self.totals, float)
        starts = np.concatenate([[0.0], ends[:-1]]) if len(ends) else ends
        rows = np.arange(len(ends))
        ticks = [_axes.in_a_line(tick) for tick in self.labels]
        if self.budget is not None:  # three digits, rounded down
            left = "" if self.remaining is None else f": {to_digits(float(self.remaining), 3)}"
            ticks.append(f"remaining{left}")
        ax = _axes.axes_for(self, ax, size=(0.8 + _axes.width_beside(ticks), 1.8 + 0.34 * (len(ends) + 1)))
        self.bars_ = ax.barh(rows, ends - starts, left=starts, **{"color": _axes.BLUE, "height": 0.6, **kwargs})
        ax.vlines(ends[:-1], rows[:-1], rows[1:], color=_axes.GRAY, linewidth=0.8)  # from one total to the next
        privacy_costs = [None] * len(ends) if self.privacy_costs is None else list(self.privacy_costs)
        for row, start, end, cost in zip(rows, starts, ends, privacy_costs, strict=True):
            text = f"+{_spent(end - start)}" + (_beside(cost, end) if row else "")
            style = {"textcoords": "offset points", "va": "center", "fontsize": "small", "bbox": _ON_WHITE}
            ax.annotate(text, (end, row), (5, 0), **style)
        total = float(ends[-1]) if len(ends) else 0.0
        self.remaining_bar_, self.budget_line_ = self._draw_budget(ax, len(ends), total)
        n_rows = len(ticks)
        ax.set_yticks(np.arange(n_rows), ticks, **_axes.AS_IT_IS)
        ax.set_ylim(max(n_rows, 1) - 0.4, -0.6)
        ax.set_xlim(0.0, 1.3 * max(total, self.budget or 0.0) or 1.0)
        ax.set_xlabel(f"epsilon at delta = {self.delta:g}")
        _axes.clear_frame(ax, "x")
        ax.tick_params(axis="y", length=0)
        self.note_ = _axes.finish(self, ax, self.note)
        return self

    def _draw_budget(self, ax: Any, row: int, total: float) -> tuple[Any, Any]:
        """The line of the budget, and below the charges the remaining budget."""
        if self.budget is None:
            return None, None
        line = ax.axvline(self.budget, color=_axes.VERMILION, linestyle="--", linewidth=1.2)
        ax.annotate(
            f"budget {self.budget:g}", (self.budget, 1.0), (0, 3), xycoords=("data", "axes fraction"),
            textcoords="offset points", ha="center", va="bottom", fontsize="small", color=_axes.VERMILION,
        )  # fmt: skip
        room, bar = self.budget - total, None
        if room > 0:
            (bar,) = ax.barh(row, room, left=total, height=0.6, facecolor="none", edgecolor=_axes.GRAY, hatch="////")
        return bar, line


_ON_WHITE = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1.0}


def _spent(epsilon: float) -> str:
    """The spent epsilon with three digits, rounded up."""
    return to_digits(max(float(epsilon), 0.0), 3, up=True)


def _beside(cost: float | None, total: float) -> str:
    return ("" if cost is None else f" (alone {_spent(cost)})") + f", total {_spent(total)}"


def _check_delta(ledger: PrivacyAccountant, delta: float | None) -> float:
    if ledger.delta is not None:
        if delta not in (None, ledger.delta):
            raise ValueError(f"`delta` must be that of the budget, {ledger.delta!r}, got {delta!r}. Remove `delta`.")
        return ledger.delta
    if delta is None:
        raise ValueError("`delta` must be set for an accountant without a budget, e.g. delta=1e-5.")
    return delta


def _running_totals(ledger: PrivacyAccountant, delta: float) -> tuple[list[str], list[float], list[float | None]]:
    """Labels of the bars, epsilon of all charges up to each, and epsilon of each alone."""
    charges, again = ledger.history, PrivacyAccountant()
    n_together = len(charges) - _MOST_BARS + 1 if len(charges) > _MOST_BARS else 0
    if ledger.split is not None:
        again.keep_split(ledger.split.test_size, n_rows=ledger.split.n_rows, groups=ledger.split.groups)
    labels: list[str] = []
    totals: list[float] = []
    privacy_costs: list[float | None] = []
    for number, charge in enumerate(charges, 1):
        rule = charge.partition and ledger.partition_rule
        again.spend(charge.event, adjacency=charge.adjacency, partition=charge.partition, partition_rule=rule)
        if number < n_together:
            continue
        alone = PrivacyAccountant()
        alone.spend(charge.event, adjacency=charge.adjacency)
        labels.append(f"1 to {number}" if number == n_together else f"{number}. {charge.label or 'charge'}")
        totals.append(again.get_epsilon(delta))
        privacy_costs.append(None if number == n_together else alone.get_epsilon(delta))
    return labels, totals, privacy_costs


def _note(ledger: PrivacyAccountant, delta: float) -> str:
    """The conditions of the totals, and records of the accountant without a bar."""
    adaptive = ledger.get_epsilon(delta, adaptive=True)
    figure = _spent(adaptive) if math.isfinite(adaptive) else "not available"
    kinds = [entry.kind for entry in ledger.entries]
    parts = ["Bars: epsilon that each charge adds to the total under composition."]
    if ledger.epsilon is None:
        parts.append(f"Total for adaptively chosen charges: {figure}.")
    else:
        parts.append("Remaining: largest epsilon of one more fit like the last one, with adaptive composition.")
    if raises := kinds.count("raise"):
        parts.append(f"The budget was increased ({raises} times), so the guarantee is the adaptive total, {figure}.")
    if rejections := kinds.count("rejection"):
        parts.append(f"Rejected fits without a charge: {rejections}.")
    return " ".join([*parts, f"Privacy unit: one {ledger.unit}."])


PEOPLE = 1000
_COLUMNS = 40


@dataclass(kw_only=True, eq=False, repr=False)
class RiskDisplay:
    """Membership-inference risk: 1,000 people in the data, and those that an attacker can detect.

    It is recommended to use `from_event` or `from_estimator` to create a display. All parameters are stored as
    attributes.

    Parameters
    ----------
    by_chance : int
        Number of the 1,000 people that are detected without the release.
    with_release : int
        Largest number of them that are detected with the release; rounded up.
    fpr : float
        False positive rate: fraction of detections among people who are not in the data; the same in both cases.
    right_guesses : int
        Largest number of correct guesses of 1,000 if each person is in the data with probability 50%. Without the
        release it is 500.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes with the people.
    figure_ : matplotlib.figure.Figure
        Figure of the axes.
    people_ : list of matplotlib.collections.PathCollection
        Detected without the release, additionally detected with it, and not detected; empty kinds are omitted.
    text_ : str
        The plot in words.

    Notes
    -----
    The attacker knows all other records, the record in question and every public parameter, and uses the best test
    (`skdp.accounting.PrivacyProfile.true_positive_rate`). Real attackers know less. For a dot to be a person, the
    privacy unit must be a person (``docs/privacy_unit.md``).
    """

    by_chance: int
    with_release: int
    fpr: float
    right_guesses: int

    @classmethod
    def from_event(
        cls, event: DpEvent, *, adjacency: str = "zero_out", fpr: float = 0.01, ax: Any = None, **kwargs: Any
    ) -> RiskDisplay:
        """Compute the membership-inference risk of an event, and plot it.

        Parameters
        ----------
        event : DpEvent
            Event of all releases.
        adjacency : {"zero_out", "add_remove", "replace_one"}, default="zero_out"
            Neighboring relation.
        fpr : float, default=0.01
            False positive rate, in (0, 1).
        ax : matplotlib axes, optional
            Axes to plot on. If None, a new figure is created.
        **kwargs : dict
            Keyword arguments of `plot`.

        Returns
        -------
        display : RiskDisplay
            The display with its plot.
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
        """Compute the membership-inference risk of a fitted private estimator, pipeline or search, and plot it.

        Parameters
        ----------
        estimator : estimator
            Fitted private estimator, pipeline or search.
        fpr : float, default=0.01
            False positive rate, in (0, 1).
        ax : matplotlib axes, optional
            Axes to plot on. If None, a new figure is created.
        **kwargs : dict
            Keyword arguments of `plot`.

        Returns
        -------
        display : RiskDisplay
            The display with its plot.
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
        ax = _axes.axes_for(self, ax, (6.4, 4.6))
        place = np.arange(PEOPLE)
        x, y = place % _COLUMNS, place // _COLUMNS
        more = max(0, self.with_release - self.by_chance)
        # Three kinds of people, in this order: detected by chance, detected with the model, not detected.
        kinds = [
            (slice(0, self.by_chance), _axes.BLUE, f"{self.by_chance} detected without the model"),
            (slice(self.by_chance, self.by_chance + more), _axes.VERMILION, f"at most {more} more with the model"),
            (slice(self.by_chance + more, PEOPLE), _axes.PALE, "not detected"),
        ]
        self.people_ = []
        named = []
        for part, color, name in kinds:
            if place[part].size:
                style: dict[str, Any] = {"color": color, "s": 22, "label": name}
                self.people_.append(ax.scatter(x[part], y[part], **{**style, **kwargs}))
                named.append((self.people_[-1], name))
        ax.set(xticks=[], yticks=[], xlim=(-1, _COLUMNS), ylim=(PEOPLE // _COLUMNS, -1))
        ax.spines[:].set_visible(False)
        ax.set_xlabel(f"{PEOPLE:,} people in the training data")
        _axes.draw_legend(ax, named, fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(named))
        self.text_ = (
            f"The attacker knows all other records and accepts a false positive rate of {self.fpr:.3g}. Of {PEOPLE:,} "
            f"people in the data, {self.by_chance} are then detected by chance, and at most {self.with_release} with "
            f"the model. If each person is in the data with probability 50%, at most {self.right_guesses} of "
            f"{PEOPLE:,} guesses are correct, instead of {PEOPLE // 2}."
        )
        _axes.finish(self, ax, self.text_)
        return self


def _up(number: float) -> int:
    """A number of people, rounded up, except for rounding errors."""
    return min(PEOPLE, math.ceil(number - 1e-9))
