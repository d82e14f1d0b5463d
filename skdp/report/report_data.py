"""All facts of a report, as plain data read from the attributes of a fitted object, skdp or third-party."""

from __future__ import annotations

import math
import platform
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import sklearn

import skdp
from skdp._checks.leaks import CLASSES, SEED, UNKNOWN, Leak, leaks_of
from skdp._checks.notices import notices_of
from skdp._checks.parameters import is_private
from skdp.accounting import DpEvent, RepeatAndSelectDpEvent, WorstOfDpEvent, flatten, get_epsilon
from skdp.accounting.events.kinds import kind_of, law_of
from skdp.accounting.formulas.gaussian import gaussian_mu
from skdp.accounting.ledger.report import describe
from skdp.report import sentences
from skdp.report.sentences import StatedGuarantee, number, one_line

SCHEMA, SCHEMA_VERSION = "skdp.privacy_report", 4
_MOST_NAMES, _MOST_ROWS = 50, 60
_HIDDEN = {"accountant", "checkpoint", "memory", "n_jobs", "random_state", "seed", "verbose"}
"""Parameters that are seeds, paths or irrelevant to the results."""
_MOST_ENTRIES, _LONGEST = 20, 240
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def gather(model: Any, evaluation: Any = None) -> dict[str, Any]:
    """The facts about a fitted private estimator, pipeline or search, and the metrics of an evaluation.

    Keys and their order are the same for all models. A change of keys changes the version of the schema.
    """
    guarantee = sentences.guarantee_of(model)
    # Private parts, and their unaccounted reads.
    leaks, parts = leaks_of(model), _parts(model)
    kinds = {leak.kind for leak in leaks}
    rows, n_rows = mechanism_rows(guarantee.event)
    if not rows:
        raise ValueError(
            f"`model` must have read private rows, got a {type(model).__name__} that was fitted without any. Pass the "
            "private model that follows it."
        )
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "model": {
            "class": one_line(type(model).__name__),
            "kind": _kind(model),
            "private_parts": [_named(*each) for each in parts],
            "public_steps": [_named(*each) for each in _steps(model) if each not in parts],
            "has_accountant": any(getattr(part, "accountant", None) is not None for _, part in parts),
        },
        "guarantee": _guarantee(model, guarantee),
        "accounting": _accounting(guarantee),
        "noise": {"source": "seeded" if SEED in kinds else "not recorded" if UNKNOWN in kinds else "secret"},
        "mechanisms": {"rows": rows, "number": n_rows},
        "constants": [
            {"part": one_line(name), "rows": _constant_rows(part)}
            for name, part in [*parts, *([("search", model)] if _kind(model) == "search" else [])]
        ],
        "fractions": _shares(model, parts, guarantee),
        "tuning": _tuning(model, guarantee),
        "quality": _quality(model, evaluation),
        "effects": _effects(model),
        "public": _public(model, parts, guarantee, leaks),
        "unaccounted": {
            "recorded": UNKNOWN not in kinds,
            "reads": [leak._asdict() for leak in leaks if leak.kind not in (SEED, UNKNOWN)],
        },
        "notices": [one_line(text) for text in notices_of(model)],
        "versions": {"skdp": skdp.__version__, "numpy": np.__version__}
        | {"scikit-learn": sklearn.__version__, "python": platform.python_version()},
    }


# --- parts of the model ---


def _kind(model: Any) -> str:
    if hasattr(model, "best_estimator_"):
        return "search"
    if hasattr(model, "evaluation_"):
        return "estimator and table"
    return "pipeline" if hasattr(model, "steps") else "estimator"


def _steps(model: Any) -> list[tuple[str, Any]]:
    """Steps of a pipeline, or of the pipeline that a search chose; a lone estimator has the empty name."""
    model = getattr(model, "best_estimator_", model)
    return list(model.steps) if hasattr(model, "steps") else [("", model)]


def _parts(model: Any) -> list[tuple[str, Any]]:
    steps = _steps(model)
    return [(name, step) for name, step in steps if is_private(step)] or steps[
        -1:
    ]  # it may have estimated nothing privately


def _named(name: str, part: Any) -> dict[str, str]:
    package = str(type(part).__module__).partition(".")[0]
    return {"part": one_line(name), "class": one_line(type(part).__name__), "package": one_line(package)}


# --- the guarantee ---


def _guarantee(model: Any, guarantee: StatedGuarantee) -> dict[str, Any]:
    groups, n_public = (model.__dict__.get(name) for name in ("_fitted_group_name", "_fitted_n_public"))
    return {
        "unit": getattr(model, "privacy_unit_", "row"),
        "accountant_unit": _unit(model),
        "groups": None if groups is None else one_line(groups),
        **_partition(model),
        "adjacency": guarantee.adjacency,
        "epsilon": number(guarantee.epsilon),
        "delta": guarantee.delta,
        "attacker_accuracy": sentences.guess_at(guarantee.epsilon, guarantee.delta),
        "attacker_accuracy_by_profile": sentences.attacker_accuracy_by_profile(guarantee),
        **sentences.attack_risks(guarantee),
        "n_units_public": None if n_public is None else int(n_public),
    }


def _unit(model: Any) -> str | None:
    """The privacy unit of the accountant of the fit; a path is not opened."""
    units = (getattr(getattr(part, "accountant", None), "unit", None) for _, part in _parts(model))
    return next((one_line(unit) for unit in units if isinstance(unit, str)), None)


def _partition(model: Any) -> dict[str, str | None]:
    """The partition of the accountant that the rows belong to, and its rule; a path is not opened.

    None without partitions, and for an accountant of all units.
    """
    ledgers = [getattr(part, "accountant", None) for _, part in _parts(model)]
    found = next((each for each in ledgers if getattr(each, "partition_name", None) is not None), None)
    names = ("partition_name", "partition_rule")
    name, rule = (None if found is None else one_line(str(getattr(found, each))) for each in names)
    return {"partition": name, "partition_rule": rule}


def _accounting(guarantee: StatedGuarantee) -> dict[str, Any]:
    bounds = guarantee.bounds
    return {
        "method": guarantee.method,
        "epsilon_at_least": None if bounds is None else number(bounds[0]),
        "epsilon_at_most": None if bounds is None else number(bounds[1]),
        "event": describe(guarantee.event),
        "sampling": sorted({row["rows"] for row in mechanism_rows(guarantee.event)[0] if row["noise_multiplier"]}),
    }


# --- noisy releases: from the event, and from the fitted constants of each part ---


def mechanism_rows(event: DpEvent) -> tuple[list[dict[str, Any]], int]:
    """The first rows of the table of releases, and the number of all."""
    rows = list(_rows(event, ""))
    return rows[:_MOST_ROWS], len(rows)


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
    "noise_multiplier_": "standard deviation of the noise, divided by the sensitivity{of_all}",
    "max_grad_norm_": "clipping norm: largest Euclidean norm of the contribution of one row to the sum of a step",
    "data_norm_": "bound on the Euclidean norm of a row; longer rows are clipped to it",
    "sampling_rate_": "probability that a row is sampled in a step",
    "n_steps_": "number of noisy steps over all runs",
    "noise_scale_": "standard deviation of the noise in the variance of a single column",
    "score_noise_": "standard deviation of the noise in a score",
}
_OF_ALL = "; of constant noise with the same privacy cost, because early steps have less noise and late steps more"


def _constant_rows(part: Any) -> list[dict[str, Any]]:
    """Public constants of the last run of an estimator: noise, clipping, sampling, and the noise in coefficients."""
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
    meaning = "expected standard deviation of a coefficient due to noise, if no row had an effect; usually less"
    largest, middle = float(sizes.max()), float(np.median(sizes))
    if math.isclose(largest, middle):
        return [{"name": "coef_noise_", "value": largest, "meaning": meaning}]
    return [
        {"name": "coef_noise_ (median)", "value": middle, "meaning": meaning},
        {"name": "coef_noise_ (largest)", "value": largest, "meaning": meaning},
    ]


# --- fractions and tuning ---


def _shares(model: Any, parts: list[tuple[str, Any]], guarantee: StatedGuarantee) -> list[dict[str, Any]]:
    """Epsilon of each private step alone, and its fraction of mu**2, by Gaussian mechanisms of the same epsilon."""
    if len(parts) < 2:
        return []
    alone = [_epsilon(part.privacy_event_, guarantee) for _, part in parts]
    if not all(each is not None and 0.0 < each < math.inf for each in alone):
        return []
    squares = [gaussian_mu(each, guarantee.delta) ** 2 for each in alone if each is not None]
    whole = sum(squares)
    return [
        {"part": one_line(name), "epsilon_alone": number(epsilon or 0.0), "fraction": square / whole}
        for (name, _), epsilon, square in zip(parts, alone, squares, strict=True)
    ]


def _epsilon(event: DpEvent, guarantee: StatedGuarantee) -> float | None:
    try:
        return get_epsilon(event, guarantee.delta, adjacency=guarantee.adjacency)
    except (TypeError, ValueError):
        return None


def _tuning(model: Any, guarantee: StatedGuarantee) -> dict[str, Any] | None:
    """The cost of a selection, by a search or, for the model that it selected, by its event; None without one."""
    law = next((each for each in flatten(guarantee.event) if isinstance(each, RepeatAndSelectDpEvent)), None)
    search, parts = _kind(model) == "search", _kind(model) == "estimator and table"  # parts of rows, not possibilities
    worst = not parts and any(isinstance(each, WorstOfDpEvent) for each in flatten(guarantee.event))
    if not (search or law or worst):
        return None
    events = model.__dict__.get("_fitted_tuning", {}) if search else {}
    costs = {name: _epsilon(event, guarantee) for name, event in events.items()}
    return {
        "candidates": len(model.cv_results_["params"]) if search else None,
        "trials": None if law is None else law_of(law),
        "trials_on_average": None if law is None else number(law.mean),
        "worst_of_possibilities": worst,
        "scoring": one_line(getattr(model.scorer_, "name", type(model.scorer_).__name__)) if search else None,
        "epsilon_of_choice": None if costs.get("choice") is None else number(costs["choice"]),
        "epsilon_of_refit": None if costs.get("refit") is None else number(costs["refit"]),
    }


def _quality(model: Any, evaluation: Any) -> dict[str, Any] | None:
    """Metrics of an evaluation, or of the noisy histogram of the model; None without either."""
    inside = evaluation is None
    found = getattr(model, "evaluation_", None) if inside else evaluation
    if found is None:
        return None
    if not callable(getattr(found, "summary", None)) or not hasattr(found, "privacy_event_"):
        raise TypeError(f"`evaluation` must be a result of skdp.evaluate, got {type(found).__name__}.")
    return {
        "within": inside,
        "epsilon": number(float(found.epsilon_)),
        "delta": float(found.delta_),
        "unit": found.privacy_unit_,
        "adjacency": found.adjacency_,
        "level": float(found.level),
        "figures": [
            {"name": one_line(name.replace("_", " "))}
            | {end: number(float(getattr(each, end))) for end in ("value", "low", "high")}
            for name, each in found.summary().items()
        ],
    }


def _effects(model: Any) -> list[dict[str, Any]]:
    """Effect of each column on the score, the largest first; empty for models without such curves."""
    whole, (_, last) = getattr(model, "best_estimator_", model), _steps(model)[-1]
    rows: list[dict[str, Any]] = last._effect_rows(whole) if hasattr(last, "_effect_rows") else []
    return [
        {
            **{key: one_line(each[key]) for key in ("column", "low", "high", "unit")},
            "difference": number(each["difference"]),
            "noise": None if each["noise"] is None else number(each["noise"]),
        }
        for each in rows[:_MOST_NAMES]
    ]


# --- public information ---


def _public(
    model: Any, parts: list[tuple[str, Any]], guarantee: StatedGuarantee, leaks: tuple[Leak, ...]
) -> dict[str, Any]:
    names, width = getattr(model, "feature_names_in_", None), getattr(model, "n_features_in_", None)
    read = any(leak.kind == CLASSES for leak in leaks)
    classes = None if read else getattr(parts[-1][1], "classes_", None)
    return {
        "parameters": _parameters(model, {"classes"} if read else set()),
        "n_units": "public" if guarantee.adjacency != "add_remove" else "private",
        "n_features": int(width) if isinstance(width, int | np.integer) else None,
        "feature_names": None if names is None else [one_line(name) for name in list(names)[:_MOST_NAMES]],
        "columns": _columns(model),
        "classes": None if classes is None else [one_line(each) for each in np.asarray(classes).tolist()[:_MOST_NAMES]],
        "classes_read_from_labels": read,
    }


def _columns(model: Any) -> list[dict[str, str]]:
    """Public information on each column, by the schemas of the steps: declared or privately estimated."""
    found: list[dict[str, str]] = []
    for part, step in _steps(model):
        schema: Any = getattr(step, "schema_", None)
        if not hasattr(schema, "describe"):
            continue
        estimates = vars(step).get("_fitted_estimated", ())
        remains = vars(step).get("_fitted_remains", {})
        for name, kind, text in schema.describe()[: _MOST_NAMES - len(found)]:
            source = "" if kind == "drop" else "estimated" if name in estimates else "given"
            left = "" if name not in remains else remains[name].describe()
            values = {"part": part, "name": name, "kind": kind, "known": text, "source": source, "lost": left}
            found.append({key: one_line(value) for key, value in values.items()})
    return found


def _parameters(model: Any, private: set[str]) -> list[dict[str, str]]:
    """Constructor parameters, except `private` ones, seeds, paths, and the noise that a whole allots to its parts."""
    given = model.get_params(deep=True)
    whole = _kind(model) != "estimator"
    found = []
    for name, value in sorted(given.items()):
        owner, _, last = name.rpartition("__")
        allotted = whole and owner and last in ("epsilon", "delta", "noise_multiplier", "fractions")
        if not (allotted or last == "steps" or last in private or last in _HIDDEN):
            found.append({"name": one_line(name), "value": shown(value)})
    return found


def shown(value: Any) -> str:
    """Return a constructor parameter as text; large arrays and frames are shown by their shape."""
    text = one_line(_ADDRESS.sub("", _text_of(value)))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _text_of(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.size <= _MOST_ENTRIES:
        return _text_of(value.tolist())
    if hasattr(value, "shape") and not isinstance(value, np.generic):
        return f"{type(value).__name__} of shape {tuple(value.shape)}"
    if isinstance(value, np.generic):
        return repr(value.item())
    if isinstance(value, type):
        return value.__qualname__
    if hasattr(value, "get_params"):  # its parameters may hold a seed
        return type(value).__name__
    if isinstance(value, Mapping):
        return _entries("{}", [f"{_text_of(key)}: {_text_of(each)}" for key, each in _first(value.items())], len(value))
    if isinstance(value, list | tuple | set | frozenset):
        return _entries("()" if isinstance(value, tuple) else "[]", list(map(_text_of, _first(value))), len(value))
    if callable(value):
        return str(getattr(value, "__qualname__", type(value).__name__))
    try:
        return repr(value)
    except Exception:  # a class of the user
        return type(value).__name__


def _first(values: Any) -> list[Any]:
    return [each for _, each in zip(range(_MOST_ENTRIES), values, strict=False)]


def _entries(brackets: str, texts: list[str], number: int) -> str:
    if number > len(texts):
        texts = [*texts, f"... ({number} in all)"]
    return brackets[0] + ", ".join(texts) + brackets[1]
