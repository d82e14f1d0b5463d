"""What was released with noise, as rows of a table: from the event, and from the fitted constants of each part."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from skdp.accounting import DpEvent, RepeatAndSelectDpEvent, WorstOfDpEvent, flatten
from skdp.accounting.events.kinds import kind_of
from skdp.report.values import number

MOST_ROWS = 60


def mechanism_rows(event: DpEvent) -> tuple[list[dict[str, Any]], int]:
    """The first rows of the table of releases, and the number of all."""
    rows = list(_rows(event, ""))
    return rows[:MOST_ROWS], len(rows)


def _rows(event: DpEvent, within: str) -> Iterator[dict[str, Any]]:
    for basic, times in flatten(event).items():
        yield {**_row(basic), "times": times, "within": within}
        if isinstance(basic, RepeatAndSelectDpEvent):
            yield from _rows(basic.event, "each trial")
        if isinstance(basic, WorstOfDpEvent):
            for part, each in enumerate(basic.events, 1):
                yield from _rows(each, f"{within}, possibility {part}".removeprefix(", "))


def _row(event: DpEvent) -> dict[str, Any]:
    sample = kind_of(event).sample
    share, rows, _ = (1.0, "all rows", "") if sample is None else sample(event)
    inner = event if sample is None else getattr(event, "event", event)
    kind, noise = kind_of(inner), getattr(inner, "noise_multiplier", None)
    return {
        "mechanism": kind.words or type(inner).__name__.removesuffix("DpEvent"),
        "rows": rows,
        "sampling_rate": share,
        "noise_multiplier": None if noise is None else number(noise),
        "note": kind.note(inner),
    }


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
