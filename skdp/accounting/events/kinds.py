"""Table of the properties of each type of event, and of each form of release that the methods support.

All code that depends on the type of an event reads this table, except for compositions, samples and selections, whose
types are named in the code. The dominating pairs are in `dominating.LAWS`.

**Groups.** The functions `*_of_group` return the event whose privacy cost for one record is that of an event for a
group of k, if there is one. `Kind.grouped` holds the function of each event.

Neighbors differ in the k records of a group. A sum changes by at most k C, which has the same effect as noise divided
by k (Gaussian, Laplace and discrete noise). A Poisson sample contains each of the k records independently, so the norm
of the shift is binomial. By the proof in `dominating`, the mixture over this number dominates:
`MixtureOfGaussiansDpEvent`, without numbers that have a probability below 1e-300. Ranges of losses and pure epsilons
add up along a chain of neighbors. For (epsilon, delta), delta becomes delta (1 + e^epsilon + .. + e^((k-1) epsilon)).
For zero-concentrated privacy, rho becomes k^2 rho. Compositions, selections and the worst of several events hold for
any relation between data sets, so the event of the group is the same composition of the events of its parts.

The factor *k^2* is due to Bun & Steinke (2016). Proof: with a = (k alpha - 1) / (k - 1), p = a / alpha and 1 / p + 1 /
p' = 1, P^alpha Q^(1-alpha) is the product of P^alpha R^((1-a)/p) and R^((a-1)/p) Q^(1-alpha). Hölder's inequality with
p and p' yields, after division by alpha - 1,

    D_alpha(P, Q) <= k alpha / (k alpha - 1) D_a(P, R) + D_(k alpha)(R, Q).

If R differs from P in k - 1 records and from Q in one, the first term is at most (k-1) k rho alpha, by induction, and
the second at most k rho alpha. The sum is k^2 rho alpha.

**Conversion.** Events of Google's dp-accounting have the same names and fields. Which events can be converted depends
on the installed version.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, NamedTuple, cast

import numpy as np
from scipy.special import gammaln

from skdp.accounting.events import specifications
from skdp.accounting.events.specifications import DpEvent, show

# Largest group: beyond, a binomial mixture has too many parts.
MOST_IN_GROUP = 1000


def noise_of_group(event: Any, k: int) -> DpEvent:
    """Return the event with the noise divided by k; non-private if the noise is below the smallest valid value."""
    noise = event.noise_multiplier / k
    if noise < specifications.LEAST_NOISE:
        return specifications.NonPrivateDpEvent()
    return replace(event, noise_multiplier=noise)


def integers_of_group(event: Any, k: int) -> DpEvent | None:
    """Return the event with k times the sensitivity, for sums of integers."""
    moved = event.sensitivity * k
    return replace(event, sensitivity=moved) if moved <= specifications.MOST_SENSITIVE else None


def statement_of_group(event: specifications.EpsilonDeltaDpEvent, k: int) -> DpEvent:
    """Return the guarantee that follows along a chain of k neighbors."""
    if event.delta == 0.0:
        return specifications.EpsilonDeltaDpEvent(k * event.epsilon, 0.0)
    if event.epsilon * k > 700.0:  # e^epsilon of the group overflows
        return specifications.NonPrivateDpEvent()
    delta = event.delta * math.fsum(math.exp(i * event.epsilon) for i in range(k)) * (1.0 + 1e-14)
    if delta >= 1.0:
        return specifications.NonPrivateDpEvent()
    return specifications.EpsilonDeltaDpEvent(k * event.epsilon, delta)


def _mixture(noise: float, parts: dict[float, float]) -> DpEvent:
    kept = {shift: p for shift, p in sorted(parts.items()) if p > 1e-300}
    return specifications.MixtureOfGaussiansDpEvent(noise, tuple(kept), tuple(kept.values()))


def sample_of_group(event: specifications.PoissonSampledDpEvent, k: int) -> DpEvent | None:
    """Return the mixture over the binomial number of the group's records in the sample (0 < probability < 1)."""
    q, inner = event.sampling_probability, event.event
    if not isinstance(inner, specifications.GaussianDpEvent):
        return None
    j = np.arange(k + 1.0)
    logs = gammaln(k + 1.0) - gammaln(j + 1.0) - gammaln(k - j + 1.0) + j * math.log(q) + (k - j) * math.log1p(-q)
    return _mixture(inner.noise_multiplier, dict(enumerate(np.exp(logs).tolist())))


def mixture_of_group(event: specifications.MixtureOfGaussiansDpEvent, k: int) -> DpEvent | None:
    """Return the event with the sum of the sensitivities of k records, each drawn independently."""
    total = {0.0: 1.0}
    for _ in range(k):
        grown: dict[float, float] = {}
        for shift, p in total.items():
            for more, q in zip(event.sensitivities, event.sampling_probs, strict=True):
                at = shift + more
                grown[at] = grown.get(at, 0.0) + p * q
        if len(grown) > specifications.MOST_PARTS:
            return None
        total = grown
    return _mixture(event.standard_deviation, total)


class Sample(NamedTuple):
    """Sampling of the records: sampling rate, description, and short form for tables."""

    share: float
    rows: str
    short: str


class Kind(NamedTuple):
    """Properties of one type of event.

    Attributes
    ----------
    event : type of DpEvent
    words : str
        Description in reports; empty if the parts are described instead.
    note : callable
        Function that returns the parameters as text, for reports.
    sample : callable or None
        Function that returns the sampling; None if all records are used.
    has_effect : callable
        Function that returns whether the output depends on a record.
    grouped : callable or None
        Function that returns the event for groups of k records, or None. Without it, compositions are transformed by
        their parts, and the cost of other events follows from a bound on their profile.
    scaled : callable or None
        Function that returns the event with `factor` times the noise.
    substitute : str
        Remedy for the conversion to dp-accounting 0.6.0, if it lacks the event: a substitute with at least its cost.
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
    """Form of a release: its name in messages (empty for the name of the event), and the methods that support it."""

    name: str
    methods: tuple[str, ...]


_STATEMENTS = ("pld", "rdp", "optimal_exact", "optimal", "strong", "naive")
_APPROXIMATIONS = ("moments_asymptotic", "strong_2016")

# The fields of `Releases` that hold releases, in their order.
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


def _scale(name: str, power: float, low: float, high: float) -> Callable[[Any, float], DpEvent]:
    """Return a function that scales the noise field of an event by a power of the factor, within a range."""

    def scaled(event: Any, factor: float) -> DpEvent:
        value: float = getattr(event, name) * factor**power
        return replace(event, **{name: min(max(value, low), high)})

    return scaled


_BY_MULTIPLIER = _scale("noise_multiplier", 1.0, 1e-100, 1e100)
_BY_EPSILON = _scale("epsilon", -1.0, 0.0, 1e300)


def law_of(event: specifications.RepeatAndSelectDpEvent) -> str:
    """Return the name of the distribution of the number of trials."""
    if event.shape == math.inf:
        return "Poisson"
    return {0.0: "logarithmic", 1.0: "geometric"}.get(event.shape, f"negative binomial ({event.shape:g})")


_ROWS = (
    Kind(specifications.NoOpDpEvent, grouped=lambda event, k: event),
    Kind(specifications.NonPrivateDpEvent, "a release without a guarantee", grouped=lambda event, k: event),
    Kind(specifications.GaussianDpEvent, "Gaussian noise", grouped=noise_of_group, scaled=_BY_MULTIPLIER),
    Kind(specifications.LaplaceDpEvent, "Laplace noise", grouped=noise_of_group, scaled=_BY_MULTIPLIER),
    Kind(
        specifications.EpsilonDeltaDpEvent,
        "a release with a known (epsilon, delta) guarantee",
        lambda event: f"epsilon {event.epsilon:g}, delta {event.delta:g}",
        has_effect=lambda event: event.epsilon > 0.0 or event.delta > 0.0,
        grouped=statement_of_group,
        scaled=_BY_EPSILON,
        substitute="Compose pld.privacy_loss_distribution.from_privacy_parameters with the other losses",
    ),
    Kind(
        specifications.ZCDpEvent,
        "a release with a known zCDP guarantee",
        lambda event: f"rho {event.rho:g}, xi {event.xi:g}",
        has_effect=lambda event: event.rho > 0.0 or event.xi > 0.0,
        grouped=lambda event, k: specifications.ZCDpEvent(k * k * event.rho) if event.xi == 0.0 else None,
        scaled=lambda event, factor: replace(event, rho=event.rho / factor**2, xi=event.xi / factor**2),
    ),
    Kind(
        specifications.DiscreteLaplaceDpEvent,
        words="discrete Laplace noise",
        note=lambda event: f"parameter {event.noise_parameter:g}, sensitivity {event.sensitivity}",
        has_effect=lambda event: event.sensitivity > 0,
        grouped=integers_of_group,
        scaled=_scale("noise_parameter", -1.0, 1e-9, 1e9),
    ),
    Kind(
        specifications.DiscreteGaussianDpEvent,
        words="discrete Gaussian noise",
        note=lambda event: f"standard deviation {event.standard_deviation:g}, sensitivity {event.sensitivity}",
        has_effect=lambda event: event.sensitivity > 0,
        grouped=integers_of_group,
        scaled=_scale("standard_deviation", 1.0, 0.01, 1e9),
        substitute="Use ZCDpEvent(sensitivity**2 / (2 * standard_deviation**2))",
    ),
    Kind(
        specifications.MixtureOfGaussiansDpEvent,
        words="Gaussian noise with random sensitivities",
        note=lambda e: f"standard deviation {e.standard_deviation:g}, sensitivities up to {max(e.sensitivities):g}",
        has_effect=lambda e: any(c > 0.0 and p > 0.0 for c, p in zip(e.sensitivities, e.sampling_probs, strict=True)),
        grouped=mixture_of_group,
        scaled=_scale("standard_deviation", 1.0, 1e-100, 1e100),
    ),
    Kind(
        specifications.PoissonSampledDpEvent,
        sample=lambda event: Sample(
            event.sampling_probability, "a Poisson sample", f"Poisson({event.sampling_probability:.6g})"
        ),
        grouped=sample_of_group,
    ),
    Kind(
        specifications.SampledWithoutReplacementDpEvent,
        sample=lambda event: Sample(
            event.sample_size / event.source_dataset_size,
            "a sample of fixed size",
            f"{event.sample_size} of {event.source_dataset_size}",
        ),
    ),
    Kind(
        specifications.RepeatAndSelectDpEvent,
        "the best of a secret number of trials",
        lambda event: f"{law_of(event)} distribution, {event.mean:.4g} trials on average",
    ),
    Kind(
        specifications.WorstOfDpEvent,
        "one of several events, counted as the worst",
        lambda event: f"{len(event.events)} events",
        substitute="Use the event with the largest privacy cost",
    ),
    Kind(specifications.SelfComposedDpEvent),
    Kind(specifications.ComposedDpEvent),
)

EVENT_KINDS = {row.event: row for row in _ROWS}
# Types of events by their names in files and in dp-accounting.
BY_NAME = {row.event.__name__: row.event for row in _ROWS}

# Events without an implementation here, by the names in dp-accounting and in older files, and valid substitutes.
REMOVED_EVENTS = {
    "ExponentialMechanismDpEvent": "ZCDpEvent(epsilon**2 / 8) or EpsilonDeltaDpEvent(epsilon, 0.0)",
    "RandomAllocationDpEvent": "SelfComposedDpEvent(GaussianDpEvent(noise_multiplier), num_selected)",
    "RandomizedResponseDpEvent": "EpsilonDeltaDpEvent(epsilon, 0.0)",
    "ReportNoisyMaxDpEvent": "LaplaceDpEvent(1.0 / epsilon)",
    "SampledWithReplacementDpEvent": "EpsilonDeltaDpEvent(epsilon, delta)",
    "SingleEpochTreeAggregationDpEvent": "SelfComposedDpEvent(GaussianDpEvent(noise_multiplier), n_nodes)",
    "TruncatedSubsampledGaussianDpEvent": "EpsilonDeltaDpEvent(epsilon, delta)",
}


def kind_of(event: DpEvent) -> Kind:
    """Return the row of an event; an empty row for the base class and third-party types."""
    return EVENT_KINDS.get(type(event), Kind(DpEvent))


def sampled_form(event: DpEvent) -> tuple[str, float, DpEvent]:
    """Return the type of sampling, the sampling rate, and the event on the sample.

    Parameters
    ----------
    event : DpEvent

    Returns
    -------
    kind : {"all", "poisson", "fixed"}
    share : float
    event : DpEvent
    """
    if isinstance(event, specifications.PoissonSampledDpEvent):
        return "poisson", event.sampling_probability, event.event
    if isinstance(event, specifications.SampledWithoutReplacementDpEvent):
        return "fixed", event.sample_size / event.source_dataset_size, event.event
    return "all", 1.0, event


def name_of(event: DpEvent) -> str:
    """Return the name of an event for messages."""
    inner = getattr(event, "event", None)
    return type(event).__name__ + (f" of {type(inner).__name__}" if isinstance(inner, DpEvent) else "")


def _counterpart(caller: str, name: str) -> Any:
    """Return the class of the installed dp-accounting with this name and the same fields, or None."""
    try:
        from dp_accounting import dp_event
    except ImportError as error:
        raise ImportError(f"{caller} requires dp-accounting. Run `pip install dp-accounting`.") from error
    theirs, ours = getattr(dp_event, name, None), BY_NAME.get(name)
    if ours is None or not isinstance(theirs, type):
        return None
    known = {field.name for field in fields(cast(Any, ours))}
    return theirs if set(inspect.signature(theirs).parameters) == known else None


def _rebuilt(event: Any, cls: Any, convert: Callable[[Any], Any]) -> Any:
    """Return the event as an instance of another class with the same fields, with converted parts."""
    values = {field.name: getattr(event, field.name) for field in fields(cast(Any, BY_NAME[cls.__name__]))}
    if "event" in values:
        values["event"] = convert(values["event"])
    if "events" in values:
        values["events"] = [convert(part) for part in values["events"]]
    return cls(**values)


def to_dp_accounting(event: DpEvent) -> Any:
    """Convert an event to the package ``dp_accounting``.

    Parameters
    ----------
    event : DpEvent
        Event to convert.

    Returns
    -------
    dp_accounting.DpEvent
        Event with the same `noise_multiplier`, relative to the bound C of one record for every adjacency. Under
        REPLACE_ONE, the Rényi accountant of dp-accounting does not double the sensitivity, unlike skdp.

    Raises
    ------
    TypeError
        If the installed version of dp-accounting lacks the event.
    """
    name = type(event).__name__
    theirs = _counterpart("to_dp_accounting", name)
    if theirs is None or type(event) is not BY_NAME[name]:
        remedy = kind_of(event).substitute or "Use an event of skdp.accounting"
        raise TypeError(f"event={event!r} has no counterpart in dp-accounting. {remedy}.")
    return _rebuilt(event, theirs, to_dp_accounting)


def from_dp_accounting(event: Any) -> DpEvent:
    """Convert an event from the package ``dp_accounting``.

    Parameters
    ----------
    event : dp_accounting.DpEvent
        Event to convert.

    Returns
    -------
    DpEvent
        Validated event of ``skdp.accounting``.

    Raises
    ------
    TypeError
        If the event has no counterpart. The message names a substitute.
    """
    name = type(event).__name__
    theirs = _counterpart("from_dp_accounting", name)
    if theirs is None or type(event) is not theirs:
        use = REMOVED_EVENTS.get(name, "EpsilonDeltaDpEvent(epsilon, delta) or ZCDpEvent(rho), whichever is known")
        raise TypeError(f"event={show(event)} has no counterpart in skdp.accounting. Use {use}.")
    return cast(DpEvent, _rebuilt(event, BY_NAME[name], from_dp_accounting))
