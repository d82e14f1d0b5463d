"""The table of events, methods and adjacencies in docs/accounting.md, made from what the code costs.

python tests/accounting_table.py        prints it
"""

from __future__ import annotations

from skdp.accounting import (
    DiscreteGaussianDpEvent,
    DiscreteLaplaceDpEvent,
    DpEvent,
    EpsilonDeltaDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    MixtureOfGaussiansDpEvent,
    PoissonSampledDpEvent,
    RepeatAndSelectDpEvent,
    SampledWithoutReplacementDpEvent,
    WorstOfDpEvent,
    ZCDpEvent,
)
from skdp.accounting.events.composition import group_event
from skdp.accounting.methods import explain_rejection

GAUSS, LAPLACE = GaussianDpEvent(4.0), LaplaceDpEvent(5.0)
INTEGERS = {"discrete Laplace": DiscreteLaplaceDpEvent(0.2, 1), "discrete Gaussian": DiscreteGaussianDpEvent(4.0, 1)}
PURE, BROKEN = EpsilonDeltaDpEvent(0.5, 0.0), EpsilonDeltaDpEvent(0.5, 1e-7)
MIXTURE = MixtureOfGaussiansDpEvent(2.0, (0.0, 1.0), (0.5, 0.5))


def _named(*events: DpEvent) -> dict[str, DpEvent]:
    return {f"`{type(event).__name__}`": event for event in events}


def _sampled(event: DpEvent) -> DpEvent:
    return PoissonSampledDpEvent(0.01, event)


def _fixed(event: DpEvent) -> DpEvent:
    return SampledWithoutReplacementDpEvent(100, 5, event)


EVENTS: dict[str, DpEvent] = {
    **_named(GAUSS, LAPLACE, DiscreteLaplaceDpEvent(0.2, 1), DiscreteGaussianDpEvent(4.0, 1)),
    **_named(MIXTURE),
    "`EpsilonDeltaDpEvent`, delta = 0": PURE,
    "`EpsilonDeltaDpEvent`, delta > 0": BROKEN,
    **_named(ZCDpEvent(0.1)),
    "`PoissonSampledDpEvent` of a Gaussian": _sampled(GAUSS),
    "of a Laplace, or (epsilon, 0)": _sampled(LAPLACE),
    "of (epsilon, delta)": _sampled(BROKEN),
    "of integer-valued noise, or a mixture": _sampled(MIXTURE),
    "`SampledWithoutReplacementDpEvent` of a Gaussian": _fixed(GAUSS),
    "of a Laplace, or (epsilon, 0) ": _fixed(LAPLACE),
    "of (epsilon, delta) ": _fixed(BROKEN),
    "of integer-valued noise, or a mixture ": _fixed(MIXTURE),
    "`RepeatAndSelectDpEvent` of a Gaussian": RepeatAndSelectDpEvent(GAUSS, 3.0, 1.0),
    "`WorstOfDpEvent` of a Gaussian": WorstOfDpEvent((GAUSS, GaussianDpEvent(5.0))),
}
ALIKE: dict[str, tuple[DpEvent, ...]] = {
    "of a Laplace, or (epsilon, 0)": (_sampled(PURE),),
    "of integer-valued noise, or a mixture": tuple(map(_sampled, INTEGERS.values())),
    "of a Laplace, or (epsilon, 0) ": (_fixed(PURE),),
    "of integer-valued noise, or a mixture ": tuple(map(_fixed, INTEGERS.values())),
}
"""Events that share a row with the one in `EVENTS`: a test holds them to the same entries, but for groups."""

COLUMNS = {
    "`pld`": "pld",
    "`rdp`": "rdp",
    "`moments`": "moments",
    "theorems": "optimal",
    "approximations": "moments_asymptotic",
}
TOGETHER = {"optimal": ("optimal_exact", "strong", "naive"), "moments_asymptotic": ("strong_2016",)}
"""Methods that share a column."""


def entry(event: DpEvent, method: str) -> str:
    """Under which adjacencies a method costs an event."""
    charged = [
        letter
        for letter, adjacency in (("a", "zero_out"), ("r", "replace_one"))
        if explain_rejection(event, method, adjacency) is None
    ]
    return " ".join(charged) or "-"


def row(event: DpEvent) -> list[str]:
    """The entries of one event."""
    groups = "bound" if entry(event, "pld") != "-" else "-"
    return [*(entry(event, method) for method in COLUMNS.values()), "yes" if group_event(event, 2) else groups]


def markdown() -> str:
    """The table."""
    lines = ["| event | " + " | ".join([*COLUMNS, "groups"]) + " |", "|---" * (len(COLUMNS) + 2) + "|"]
    lines += [f"| {name.strip()} | " + " | ".join(row(event)) + " |" for name, event in EVENTS.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    print(markdown())
