"""Quality diagnostics of a fit, from public numbers and releases, at no additional privacy cost.

A diagnostic is issued once, as a `skdp.exceptions.QualityWarning`. If it depends only on public numbers, it is issued
before the charge, otherwise after the fit is published, so that a warning turned into an error loses no budget. The
fitted state and the report keep a record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skdp._checks.numbers import format_names
from skdp.exceptions import QualityWarning, warn


def note_notice(fitted: Any, text: str) -> None:
    """Record a diagnostic, to be issued at the end of the fit unless it was issued; "" records nothing."""
    if text:
        fitted._fitted_notices = {text: False, **fitted.__dict__.get("_fitted_notices", {})}


def tell_now(fitted: Any, text: str) -> None:
    """Issue a diagnostic before anything is charged, and record it; "" issues nothing."""
    if text and not fitted.__dict__.get("_fitted_notices", {}).get(text):
        fitted._fitted_notices = {**fitted.__dict__.get("_fitted_notices", {}), text: True}
        warn(text, QualityWarning)


def repeat_notices(step: Any) -> None:
    """Issue the diagnostics that a step of a pipeline recorded while its warnings were suppressed."""
    for text in getattr(step, "__dict__", {}).get("_fitted_notices", {}):
        warn(text, QualityWarning)


def notices_of(fitted: Any) -> dict[str, bool]:
    """Return the diagnostics of an estimator, a pipeline or a search and its private parts, and if they were issued."""
    found: dict[str, bool] = {}
    for part in fitted._private_parts():
        found |= notices_of(part)
    return found | dict(fitted.__dict__.get("_fitted_notices", {}))


LEAST_SIGNAL = 10.0
"""Below this signal noise decides much of a linear model. On parts of two census tables two fits to the same rows then
differed by 0.05 to 0.1 in AUROC (standard deviation; 12 parameters) or 0.02 to 0.1 (200), and 20 rows at epsilon 1 by
0.2 to 0.3 in accuracy from the best to the worst of 15 fits. Above 30 it was 0.015 and 0.006 (benchmarks/README.md)."""


LEAST_SIGNAL_OF_NUMBERS = 3.0 * LEAST_SIGNAL
"""The same where targets are numbers. Of 200 and 800 rows of 3, 10 and 40 columns at epsilon 1, R^2 of five networks
spread by 0.1 and more (standard deviation) up to a signal of 26, and by 0.07 at most from 33 on."""


def few_rows_notice(
    model: Any, noise_multiplier: float, n_public: int, n_parameters: int, signal: float, least: float = LEAST_SIGNAL
) -> str:
    """Return the diagnostic of too few rows for a model, or ""; all arguments are public.

    `signal` is the number of rows over the noise of the whole fit, per coordinate (`skdp._dpsgd.defaults.signal_of`).
    """
    if signal >= least:
        return ""
    what, budget = model._units_in_words(), _budget_of(model, noise_multiplier)
    return (
        f"{n_public} {what} are too few for {n_parameters} parameters at {budget} (signal {signal:.2g}, "
        f"expected at least {least:g}). Privacy noise dominates the model, and repeated fits may differ "
        f"widely. Use more {what}, fewer columns or a larger epsilon. skdp.rehearse compares the options on "
        "simulated data."
    )


FEWEST_CASES = 50.0
"""Rows of a class times epsilon below which noise hides them. The noise of this product is about 40 where the count has
1% of mu^2, and with 84 simulated rows of 28,000 at epsilon 0.3 a model is no better than a constant."""


def rare_classes_notice(names: Any, counts: Any, epsilon: float, deviation: float) -> str:
    """Return the diagnostic of classes or labels that are not distinguishable from the noise, by noisy counts; or "".

    Counts of at least three standard deviations of their noise are distinguishable, however small epsilon is.
    """
    least = min(FEWEST_CASES / max(epsilon, 1e-300), 3.0 * deviation)
    rare = {name: count for name, count in zip(names, counts, strict=True) if count < least}
    if not rare:
        return ""
    noisy = format_names(max(round(count), 0) for count in rare.values())
    return (
        f"Classes {format_names(rare)} are not distinguishable from the noise: at least {least:.3g} rows "
        f"are required at epsilon={epsilon:.3g}, but the noisy (weighted) counts are {noisy}. Expect "
        "probabilities no better than the prevalence. Use more rows or a larger epsilon, or merge rare "
        "classes."
    )


def few_a_column_notice(model: Any, noise_multiplier: float, n_public: int, kept: float) -> str:
    """Return the diagnostic of coefficients that are shrunk by a factor below 1; all arguments are public."""
    what, budget = model._units_in_words(), _budget_of(model, noise_multiplier)
    return (
        f"{n_public} {what} are too few for this number of columns at {budget}. The coefficients are mostly "
        f"noise, so they are shrunk by a factor of {kept:.2g}, and predictions are nearly constant. Use "
        f"fewer columns, more {what} or a larger epsilon."
    )


def _budget_of(model: Any, noise_multiplier: float) -> str:
    return f"epsilon={model.epsilon!r}" if model.epsilon is not None else f"noise={noise_multiplier:.4g}"


def narrow_bounds_notice(names: Sequence[str]) -> str:
    """Return the diagnostic of columns with nearly all values near a bound, by released counts; "" for none."""
    if not names:
        return ""
    return (
        f"Nearly all values of {format_names(names)} lie within 1/32 of the range from one of the bounds, "
        "or beyond it. Set narrower bounds in `schema`. Check that the bounds and the column have the same "
        "unit."
    )


def are_nearly_all(lost: float, total: float, deviation: float) -> bool:
    """Whether a noisy count is more than 90% of a total, and not by noise alone; the deviation is of their difference.

    The second limit has a false-alarm rate of 3e-7 for up to half of the rows.
    """
    return lost > max(0.9 * total + 2.0 * deviation, 0.5 * total + 5.0 * deviation)


def lost_cells_notice(names: Sequence[str]) -> str:
    """Return the diagnostic of columns whose cells are nearly all lost, by released counts; "" for none."""
    if not names:
        return ""
    return (
        f"More than 90% of the cells of {format_names(names)} are missing, unreadable or categories that `schema` does "
        "not list, so little information is left. Compare the cells with `schema`: the 'format' of dates that are "
        "text (ISO dates without it), the spelling and case of categories (a flag is true or false, 1 or 0, yes or "
        "no), and numbers that are text."
    )


def raw_columns_notice(assumed: str) -> str:
    """Return the diagnostic of a data frame without preprocessing; `assumed` is the parameter that is not set."""
    return (
        f"X is a data frame without preprocessing and `{assumed}` was not set, so columns are assumed to "
        "lie in [-1, 1] and rows are clipped accordingly. Raw columns may lose most of their information. "
        f"Use skdp.tabular_pipeline, or add a skdp.DPTableVectorizer before the model, or set `{assumed}`."
    )
