"""What was released with noise, as rows of a table: from the event, and from the fitted constants of each part."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from skdp.accounting import (
    DiscreteGaussianDpEvent,
    DiscreteLaplaceDpEvent,
    DpEvent,
    EpsilonDeltaDpEvent,
    ExponentialMechanismDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    MixtureOfGaussiansDpEvent,
    NonPrivateDpEvent,
    NumberOfTries,
    PoissonSampledDpEvent,
    RandomAllocationDpEvent,
    RandomizedResponseDpEvent,
    RepeatAndSelectDpEvent,
    SampledWithoutReplacementDpEvent,
    SampledWithReplacementDpEvent,
    SingleEpochTreeAggregationDpEvent,
    TruncatedSubsampledGaussianDpEvent,
    WorstOfDpEvent,
    ZCDpEvent,
    flatten,
)
from skdp.report.values import number

MOST_ROWS = 60
_NAMES = {
    GaussianDpEvent: "Gaussian noise",
    LaplaceDpEvent: "Laplace noise",
    EpsilonDeltaDpEvent: "a release known by its epsilon and delta",
    ZCDpEvent: "a release known by its concentrated privacy",
    NonPrivateDpEvent: "a release without a guarantee",
    RepeatAndSelectDpEvent: "the best of a secret number of tries",
    WorstOfDpEvent: "one of several, priced as the worst",
    DiscreteGaussianDpEvent: "discrete Gaussian noise",
    DiscreteLaplaceDpEvent: "discrete Laplace noise",
    ExponentialMechanismDpEvent: "an exponential mechanism",
    MixtureOfGaussiansDpEvent: "Gaussian noise, with sensitivities drawn at random",
    RandomizedResponseDpEvent: "randomised response",
    SingleEpochTreeAggregationDpEvent: "Gaussian noise in the nodes of trees",
    TruncatedSubsampledGaussianDpEvent: "Gaussian noise",
    RandomAllocationDpEvent: "Gaussian noise",
}


def mechanism_rows(event: DpEvent) -> tuple[list[dict[str, Any]], int]:
    """The first rows of the table of releases, and the number of all."""
    rows = list(_rows(event, ""))
    return rows[:MOST_ROWS], len(rows)


def _rows(event: DpEvent, within: str) -> Iterator[dict[str, Any]]:
    for basic, times in flatten(event).items():
        yield {**_row(basic), "times": times, "within": within}
        if isinstance(basic, RepeatAndSelectDpEvent):
            yield from _rows(basic.event, "each try")
        if isinstance(basic, WorstOfDpEvent):
            for part, each in enumerate(basic.events, 1):
                yield from _rows(each, f"{within}, possibility {part}".removeprefix(", "))


def _row(event: DpEvent) -> dict[str, Any]:
    rate, rows, inner = 1.0, "all rows", event
    if isinstance(event, PoissonSampledDpEvent):
        rate, inner, rows = event.sampling_probability, event.event, "a Poisson sample"
    elif isinstance(event, SampledWithoutReplacementDpEvent):
        rate, inner, rows = event.sample_size / event.source_dataset_size, event.event, "a sample of fixed size"
    elif isinstance(event, SampledWithReplacementDpEvent):
        rate, inner, rows = event.sample_size / event.source_dataset_size, event.event, "a sample with replacement"
    elif isinstance(event, TruncatedSubsampledGaussianDpEvent):
        rate, rows = event.sampling_probability, f"a Poisson sample, at most {event.truncated_batch_size} of it"
    elif isinstance(event, RandomAllocationDpEvent):
        rate, rows = event.num_selected / event.num_steps, f"each in {event.num_selected} of {event.num_steps} steps"
    noise = getattr(inner, "noise_multiplier", None)
    return {
        "mechanism": _NAMES.get(type(inner), type(inner).__name__.removesuffix("DpEvent")),
        "rows": rows,
        "sampling_rate": rate,
        "noise_multiplier": None if noise is None else number(noise),
        "note": _note(inner),
    }


def _note(event: DpEvent) -> str:
    if isinstance(event, EpsilonDeltaDpEvent):
        return f"epsilon {event.epsilon:g}, delta {event.delta:g}"
    if isinstance(event, ExponentialMechanismDpEvent):
        return f"epsilon {event.epsilon:g}"
    if isinstance(event, RandomizedResponseDpEvent):
        return f"a random one of {event.num_buckets} buckets with probability {event.noise_parameter:g}"
    if isinstance(event, DiscreteLaplaceDpEvent):
        return f"parameter {event.noise_parameter:g}, sensitivity {event.sensitivity}"
    if isinstance(event, DiscreteGaussianDpEvent):
        return f"standard deviation {event.standard_deviation:g}, sensitivity {event.sensitivity}"
    if isinstance(event, MixtureOfGaussiansDpEvent):
        return f"standard deviation {event.standard_deviation:g}, sensitivities up to {max(event.sensitivities):g}"
    if isinstance(event, SingleEpochTreeAggregationDpEvent):
        return f"at most {event.height} nodes move with a row"
    if isinstance(event, ZCDpEvent):
        return f"rho {event.rho:g}, xi {event.xi:g}"
    if isinstance(event, RepeatAndSelectDpEvent):
        return f"{law_of(event)} law, {event.mean:.4g} tries on average"
    return f"{len(event.events)} possibilities" if isinstance(event, WorstOfDpEvent) else ""


def law_of(event: RepeatAndSelectDpEvent) -> str:
    """Name of the law of the number of tries."""
    if NumberOfTries(event.mean, event.shape).poisson:
        return "Poisson"
    return {0.0: "logarithmic", 1.0: "geometric"}.get(event.shape, f"negative binomial ({event.shape:g})")


_CONSTANTS = {
    "noise_multiplier_": "standard deviation of the noise, divided by what one row can add{of_all}",
    "max_grad_norm_": "clip: what one row can add to the sum of a step, in Euclidean norm",
    "data_norm_": "bound on the norm of a row; longer rows are scaled down to it",
    "sampling_rate_": "probability that a row takes part in a step",
    "n_steps_": "number of noisy steps, over all runs",
    "noise_scale_": "standard deviation of the noise in the variance of a single column",
    "score_noise_": "standard deviation of the noise in a score",
}


_OF_ALL = ", if it were the same in all steps, at the same price: early steps have less, late ones more"


def constant_rows(part: Any) -> list[dict[str, Any]]:
    """Public constants of the last run of an estimator: noise, clip, sampling, and the noise in its coefficients."""
    rows, of_all = [], _OF_ALL if getattr(part, "_fitted_noise_falls", False) else ""
    for name, meaning in _CONSTANTS.items():
        value = getattr(part, name, None)
        if isinstance(value, int | float | np.number):
            rows.append({"name": name, "value": _plain(value), "meaning": meaning.format(of_all=of_all)})
    noise, clip = getattr(part, "noise_multiplier_", None), getattr(part, "max_grad_norm_", None)
    if isinstance(noise, int | float) and isinstance(clip, int | float):
        meaning = f"standard deviation of the noise in each coordinate of the sum of a step{of_all}"
        rows.append({"name": "noise_multiplier_ * max_grad_norm_", "value": number(noise * clip), "meaning": meaning})
    return [*rows, *_coefficient_rows(part)]


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, int | np.integer) else number(value)


def _coefficient_rows(part: Any) -> list[dict[str, Any]]:
    noise = getattr(part, "coef_noise_", None)
    if noise is None:
        return []
    sizes = np.asarray(noise, dtype=float).ravel()
    if sizes.size == 0 or not np.isfinite(sizes).all():
        return []
    meaning = "expected noise in a coefficient: standard deviation if rows added nothing, usually less where they do"
    largest, middle = float(sizes.max()), float(np.median(sizes))
    if math.isclose(largest, middle):
        return [{"name": "coef_noise_", "value": largest, "meaning": meaning}]
    return [
        {"name": "coef_noise_ (median)", "value": middle, "meaning": meaning},
        {"name": "coef_noise_ (largest)", "value": largest, "meaning": meaning},
    ]


__all__ = ["MOST_ROWS", "constant_rows", "law_of", "mechanism_rows"]
