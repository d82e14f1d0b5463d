"""The table of events, methods and adjacencies in docs/accounting.md, made from what the code prices.

python tests/accounting_table.py        prints it
"""

from __future__ import annotations

from skdp.accounting import (
    DiscreteGaussianDpEvent,
    DiscreteLaplaceDpEvent,
    DpEvent,
    EpsilonDeltaDpEvent,
    ExponentialMechanismDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    MixtureOfGaussiansDpEvent,
    PoissonSampledDpEvent,
    RandomAllocationDpEvent,
    RandomizedResponseDpEvent,
    RepeatAndSelectDpEvent,
    ReportNoisyMaxDpEvent,
    SampledWithoutReplacementDpEvent,
    SampledWithReplacementDpEvent,
    SingleEpochTreeAggregationDpEvent,
    TruncatedSubsampledGaussianDpEvent,
    WorstOfDpEvent,
    ZCDpEvent,
)
from skdp.accounting.events.composition import group_event
from skdp.accounting.methods import explain_refusal

GAUSS, LAPLACE = GaussianDpEvent(4.0), LaplaceDpEvent(5.0)
INTEGERS = {"discrete Laplace": DiscreteLaplaceDpEvent(0.2, 1), "discrete Gaussian": DiscreteGaussianDpEvent(4.0, 1)}
PURE, BROKEN = EpsilonDeltaDpEvent(0.5, 0.0), EpsilonDeltaDpEvent(0.5, 1e-7)
RESPONSE, RANGE = RandomizedResponseDpEvent(0.5, 3), ExponentialMechanismDpEvent(0.5)
MIXTURE = MixtureOfGaussiansDpEvent(2.0, (0.0, 1.0), (0.5, 0.5))


def _named(*events: DpEvent) -> dict[str, DpEvent]:
    return {f"`{type(event).__name__}`": event for event in events}


def _sampled(event: DpEvent) -> DpEvent:
    return PoissonSampledDpEvent(0.01, event)


def _fixed(event: DpEvent) -> DpEvent:
    return SampledWithoutReplacementDpEvent(100, 5, event)


EVENTS: dict[str, DpEvent] = {
    **_named(GAUSS, LAPLACE, DiscreteLaplaceDpEvent(0.2, 1), DiscreteGaussianDpEvent(4.0, 1), RESPONSE, RANGE),
    **_named(ReportNoisyMaxDpEvent(0.5), MIXTURE),
    **_named(SingleEpochTreeAggregationDpEvent(8.0, 4), TruncatedSubsampledGaussianDpEvent(100, 0.1, 12, 2.0)),
    **_named(RandomAllocationDpEvent(2.0, 20)),
    "`EpsilonDeltaDpEvent`, delta = 0": PURE,
    "`EpsilonDeltaDpEvent`, delta > 0": BROKEN,
    **_named(ZCDpEvent(0.1)),
    "`PoissonSampledDpEvent` of a Gaussian": _sampled(GAUSS),
    "of a Laplace, or (epsilon, 0)": _sampled(LAPLACE),
    "of (epsilon, delta)": _sampled(BROKEN),
    "of integer noise, an exponential mechanism, a mixture": _sampled(RANGE),
    "of randomised response": _sampled(RESPONSE),
    "`SampledWithoutReplacementDpEvent` of a Gaussian": _fixed(GAUSS),
    "of a Laplace, or (epsilon, 0) ": _fixed(LAPLACE),
    "of (epsilon, delta) ": _fixed(BROKEN),
    "of integer noise, an exponential mechanism, a mixture, randomised response": _fixed(RANGE),
    "`SampledWithReplacementDpEvent` of a Gaussian, Laplace, integers": SampledWithReplacementDpEvent(9, 3, GAUSS),
    "`RepeatAndSelectDpEvent` of a Gaussian": RepeatAndSelectDpEvent(GAUSS, 3.0, 1.0),
    "`WorstOfDpEvent` of a Gaussian": WorstOfDpEvent((GAUSS, GaussianDpEvent(5.0))),
}
ALIKE: dict[str, tuple[DpEvent, ...]] = {
    "of a Laplace, or (epsilon, 0)": (_sampled(PURE),),
    "of integer noise, an exponential mechanism, a mixture": tuple(map(_sampled, (*INTEGERS.values(), MIXTURE))),
    "of a Laplace, or (epsilon, 0) ": (_fixed(PURE),),
    "of integer noise, an exponential mechanism, a mixture, randomised response": tuple(
        map(_fixed, (*INTEGERS.values(), MIXTURE, RESPONSE))
    ),
    "`SampledWithReplacementDpEvent` of a Gaussian, Laplace, integers": tuple(
        SampledWithReplacementDpEvent(9, 3, event) for event in (LAPLACE, *INTEGERS.values())
    ),
}
"""Events that share a row with the one in `EVENTS`: a test holds them to the same entries, but for groups."""

COLUMNS = {
    "`pld`": "pld",
    "`rdp`": "rdp",
    "`moments`": "moments",
    "statements": "optimal",
    "`gdp`": "gdp",
    "2016": "moments_asymptotic",
}
TOGETHER = {"optimal": ("optimal_exact", "strong", "naive"), "moments_asymptotic": ("strong_2016",)}
"""Methods that share a column."""


def entry(event: DpEvent, method: str) -> str:
    """Under which adjacencies a method prices an event."""
    priced = [
        letter
        for letter, adjacency in (("a", "zero_out"), ("r", "replace_one"))
        if explain_refusal(event, method, adjacency) is None
    ]
    return " ".join(priced) or "-"


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
