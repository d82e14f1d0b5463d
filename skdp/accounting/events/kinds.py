"""One table of kinds: a row for each type of event, and one for each form in which methods read a release.

What is said of one kind of release stands in its row: everything that lists kinds reads this table. What takes
compositions, samples and selections apart knows these by name; no new event is added there. What dominates an event is
in its row of `dominating.noise.LAWS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from .groups import integers_of_group, mixture_of_group, noise_of_group, sample_of_group, statement_of_group
from .noise_events import DiscreteGaussianDpEvent, DiscreteLaplaceDpEvent, MixtureOfGaussiansDpEvent
from .specifications import (
    ComposedDpEvent,
    DpEvent,
    EpsilonDeltaDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    RepeatAndSelectDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
    WorstOfDpEvent,
    ZCDpEvent,
)


class Sample(NamedTuple):
    """Who takes part: the share of all records, in words, and in short as in a ledger."""

    share: float
    rows: str
    short: str


class Kind(NamedTuple):
    """What is known of one type of event.

    Attributes
    ----------
    event : type of DpEvent
    words : str
        What it is, for people; empty of what is shown by its parts.
    note : callable
        Its figures, for people.
    sample : callable or None
        Who takes part, if not every record does.
    has_effect : callable
        Whether anything depends on a record.
    grouped : callable or None
        The event for groups of k records, or None; without it compositions are made of what their parts are, and
        anything else is priced by a bound on its profile.
    scaled : callable or None
        The event with `factor` times the noise.
    substitute : str
        What stands in for it in dp-accounting 0.6.0, which does not have it, and costs as much or more.
    """

    event: type[DpEvent]
    words: str = ""
    note: Callable[[Any], str] = lambda event: ""
    sample: Callable[[Any], Sample] | None = None
    has_effect: Callable[[Any], bool] = lambda event: True
    grouped: Callable[[Any, int], DpEvent | None] | None = None
    scaled: Callable[[Any, float], DpEvent] | None = None
    substitute: str = ""


class Form(NamedTuple):
    """How methods read a release: the event as messages name it, empty if the event says so itself; who prices it."""

    name: str
    methods: tuple[str, ...]


_STATEMENTS = ("pld", "rdp", "optimal_exact", "optimal", "strong", "naive")
_APPROXIMATIONS = ("moments_asymptotic", "strong_2016")

FORMS = {
    "gaussian": Form("GaussianDpEvent", (*_STATEMENTS, "moments", *_APPROXIMATIONS)),
    "sampled": Form("PoissonSampledDpEvent of GaussianDpEvent", (*_STATEMENTS, "moments", *_APPROXIMATIONS)),
    "laplace": Form("LaplaceDpEvent", (*_STATEMENTS, "moments")),
    "epsilon_delta": Form("EpsilonDeltaDpEvent", (*_STATEMENTS, "moments")),
    "zcdp": Form("ZCDpEvent", ("rdp",)),
    "without_replacement": Form("SampledWithoutReplacementDpEvent of GaussianDpEvent", _STATEMENTS),
    "sampled_pure": Form("", _STATEMENTS),
    "selected": Form("RepeatAndSelectDpEvent", ("pld", "rdp")),
    "others": Form("", ("pld", "rdp")),
}
"""The fields of `Releases` that hold releases, in their order."""


def _scale(name: str, power: float, low: float, high: float) -> Callable[[Any, float], DpEvent]:
    """By the field that holds the noise, the power of it by which it grows, and its range."""

    def scaled(event: Any, factor: float) -> DpEvent:
        value: float = getattr(event, name) * factor**power
        return replace(event, **{name: min(max(value, low), high)})

    return scaled


_BY_MULTIPLIER = _scale("noise_multiplier", 1.0, 1e-100, 1e100)
_BY_EPSILON = _scale("epsilon", -1.0, 0.0, 1e300)


def law_of(event: RepeatAndSelectDpEvent) -> str:
    """Name of the law of the number of trials."""
    if event.shape == math.inf:
        return "Poisson"
    return {0.0: "logarithmic", 1.0: "geometric"}.get(event.shape, f"negative binomial ({event.shape:g})")


_ROWS = (
    Kind(NoOpDpEvent, grouped=lambda event, k: event),
    Kind(NonPrivateDpEvent, "a release without a guarantee", grouped=lambda event, k: event),
    Kind(GaussianDpEvent, "Gaussian noise", grouped=noise_of_group, scaled=_BY_MULTIPLIER),
    Kind(LaplaceDpEvent, "Laplace noise", grouped=noise_of_group, scaled=_BY_MULTIPLIER),
    Kind(
        EpsilonDeltaDpEvent,
        "a release known by its epsilon and delta",
        lambda event: f"epsilon {event.epsilon:g}, delta {event.delta:g}",
        has_effect=lambda event: event.epsilon > 0.0 or event.delta > 0.0,
        grouped=statement_of_group,
        scaled=_BY_EPSILON,
        substitute="compose pld.privacy_loss_distribution.from_privacy_parameters with the other losses",
    ),
    Kind(
        ZCDpEvent,
        "a release known by its concentrated privacy",
        lambda event: f"rho {event.rho:g}, xi {event.xi:g}",
        has_effect=lambda event: event.rho > 0.0 or event.xi > 0.0,
        grouped=lambda event, k: ZCDpEvent(k * k * event.rho) if event.xi == 0.0 else None,
        scaled=lambda event, factor: replace(event, rho=event.rho / factor**2, xi=event.xi / factor**2),
    ),
    Kind(
        DiscreteLaplaceDpEvent,
        words="discrete Laplace noise",
        note=lambda event: f"parameter {event.noise_parameter:g}, sensitivity {event.sensitivity}",
        has_effect=lambda event: event.sensitivity > 0,
        grouped=integers_of_group,
        scaled=_scale("noise_parameter", -1.0, 1e-9, 1e9),
    ),
    Kind(
        DiscreteGaussianDpEvent,
        words="discrete Gaussian noise",
        note=lambda event: f"standard deviation {event.standard_deviation:g}, sensitivity {event.sensitivity}",
        has_effect=lambda event: event.sensitivity > 0,
        grouped=integers_of_group,
        scaled=_scale("standard_deviation", 1.0, 0.01, 1e9),
        substitute="give ZCDpEvent(sensitivity**2 / (2 * standard_deviation**2))",
    ),
    Kind(
        MixtureOfGaussiansDpEvent,
        words="Gaussian noise, with sensitivities drawn at random",
        note=lambda e: f"standard deviation {e.standard_deviation:g}, sensitivities up to {max(e.sensitivities):g}",
        has_effect=lambda e: any(c > 0.0 and p > 0.0 for c, p in zip(e.sensitivities, e.sampling_probs, strict=True)),
        grouped=mixture_of_group,
        scaled=_scale("standard_deviation", 1.0, 1e-100, 1e100),
    ),
    Kind(
        PoissonSampledDpEvent,
        sample=lambda event: Sample(
            event.sampling_probability, "a Poisson sample", f"Poisson({event.sampling_probability:.6g})"
        ),
        grouped=sample_of_group,
    ),
    Kind(
        SampledWithoutReplacementDpEvent,
        sample=lambda event: Sample(
            event.sample_size / event.source_dataset_size,
            "a sample of fixed size",
            f"{event.sample_size} of {event.source_dataset_size}",
        ),
    ),
    Kind(
        RepeatAndSelectDpEvent,
        "the best of a secret number of trials",
        lambda event: f"{law_of(event)} law, {event.mean:.4g} trials on average",
    ),
    Kind(
        WorstOfDpEvent,
        "one of several, priced as the worst",
        lambda event: f"{len(event.events)} possibilities",
        substitute="give the costliest of its events",
    ),
    Kind(SelfComposedDpEvent),
    Kind(ComposedDpEvent),
)

EVENT_KINDS = {row.event: row for row in _ROWS}
BY_NAME = {row.event.__name__: row.event for row in _ROWS}
"""The types of events, as files and dp-accounting name them."""

REMOVED_EVENTS = {
    "ExponentialMechanismDpEvent": "ZCDpEvent(epsilon**2 / 8) or EpsilonDeltaDpEvent(epsilon, 0.0)",
    "RandomAllocationDpEvent": "SelfComposedDpEvent(GaussianDpEvent(noise_multiplier), num_selected)",
    "RandomizedResponseDpEvent": "EpsilonDeltaDpEvent(epsilon, 0.0)",
    "ReportNoisyMaxDpEvent": "LaplaceDpEvent(1.0 / epsilon)",
    "SampledWithReplacementDpEvent": "EpsilonDeltaDpEvent(epsilon, delta)",
    "SingleEpochTreeAggregationDpEvent": "SelfComposedDpEvent(GaussianDpEvent(noise_multiplier), n_nodes)",
    "TruncatedSubsampledGaussianDpEvent": "EpsilonDeltaDpEvent(epsilon, delta)",
}
"""Events without an implementation here, by the names in dp-accounting and in older files, and valid substitutes."""


def kind_of(event: DpEvent) -> Kind:
    """The row of an event; that of the base of all events, and of others' types, says nothing."""
    return EVENT_KINDS.get(type(event), Kind(DpEvent))


def sampled_form(event: DpEvent) -> tuple[str, float, DpEvent]:
    """How records are sampled, with which share, and what is done to the sample.

    Parameters
    ----------
    event : DpEvent

    Returns
    -------
    kind : {"all", "poisson", "fixed"}
    share : float
    event : DpEvent
    """
    if isinstance(event, PoissonSampledDpEvent):
        return "poisson", event.sampling_probability, event.event
    if isinstance(event, SampledWithoutReplacementDpEvent):
        return "fixed", event.sample_size / event.source_dataset_size, event.event
    return "all", 1.0, event


def name_of(event: DpEvent) -> str:
    """An event as messages name it."""
    inner = getattr(event, "event", None)
    return type(event).__name__ + (f" of {type(inner).__name__}" if isinstance(inner, DpEvent) else "")
