"""Frames of drawn kinds, gaps, unseen categories and extremes: served alike, or rejected in one line."""

import datetime

import numpy as np
import pandas as pd
import pytest
from serving import assert_served_alike

from skdp.ensemble import PublicTreesEmbedding
from skdp.export import to_onnx
from skdp.preprocessing import DPTableVectorizer

WORDS = ["a", "b", "a ", "A", "ü", "1", "1.0", "01", "2", "nan", "None", "yes", "NO", "True", "0", "-1", "1e3", ""]
NUMBERS = [0.0, -0.0, 1.0, 2.0, -1.0, 1.5, 1e-320, 1e300, -1e300, 2.0**53, 1e16, np.nan]
DAYS = ["1969-12-31", "2000-02-29", "2020-06-01", "2024-01-31T12:30:00", "9999-12-31"]


def cells(rng, kind, n):
    """A column of one type of pandas or of objects."""
    if kind == "float":
        return pd.Series(rng.choice([*NUMBERS, np.inf, -np.inf], n))
    if kind == "whole":
        return pd.Series(rng.integers(-3, 6, n))
    if kind == "nullable":
        return pd.Series(rng.integers(-3, 6, n)).astype("Int64").mask(rng.random(n) < 0.2)
    if kind == "truth":
        return pd.Series(rng.random(n) < 0.5)
    if kind == "truth and gaps":
        return pd.Series(rng.choice(np.array([True, False, None], object), n), dtype=object)
    if kind == "date":
        return pd.Series(pd.to_datetime(rng.choice(DAYS[:4], n), format="ISO8601")).mask(rng.random(n) < 0.2)
    if kind == "days as objects":
        return pd.Series(rng.choice(np.array([datetime.date(2020, 6, 1), "2000-02-29", "no day", None], object), n))
    if kind == "labels":
        return pd.Series(rng.choice(["a", "b", "c"], n)).astype("category")
    if kind == "mixed":
        return pd.Series(rng.choice(np.array([1, 1.0, 2.5, True, "a", "1", None, 7], object), n), dtype=object)
    return pd.Series(rng.choice(np.array([*WORDS, None], object), n), dtype=object)


KINDS = ("float", "whole", "nullable", "truth", "truth and gaps", "date", "days as objects", "labels", "mixed", "text")
WORDS_AND_GAPS = {"kind": "category", "categories": ["a", "1", "True"], "missing_values": ["nan", "01", 2]}
PUBLIC = {
    "bounds": lambda rng: {"bounds": sorted(rng.choice([-5.0, 0.0, 1.0, 2.0, 1e6], 2, replace=False))},
    "bounds and gaps": lambda rng: {"bounds": (-2, 2), "missing_values": [-1, None, "x"]},
    "log": lambda rng: {"bounds": (-1e-9, 1e9), "scale": "log"},
    "edges": lambda rng: {"edges": [-1.0, 0.0, 1.5, 3.0]},
    "dates": lambda rng: {"bounds": ("1990-01-01", "2022-01-01"), "missing_values": ["2000-02-29"]},
    "parts of dates": lambda rng: {"bounds": ("1990-01-01", "2022-01-01"), "features": ["weekday", "month"]},
    "words": lambda rng: list(rng.choice(WORDS[:-1], 4, replace=False)),
    "numbers": lambda rng: [0, 1, 2.5, 2**53],
    "words and gaps": lambda rng: {**WORDS_AND_GAPS},
    "ordinal": lambda rng: {"kind": "ordinal", "categories": ["-1", "1", "a", "2"]},
    "flag": lambda rng: {"kind": "flag", "missing_values": list(rng.choice(["yes", "0", "TRUE"], 1))},
    "drop": lambda rng: "drop",
}  # fmt: skip


def drawn(seed):
    """A step that is fitted to a drawn frame, and another frame of the same types."""
    rng = np.random.default_rng(seed)
    names = ["x", "y", "z"]
    kinds = rng.choice(KINDS, len(names))
    schema = {name: PUBLIC[rng.choice(list(PUBLIC))](rng) for name in names}
    first, other = (
        pd.DataFrame({name: cells(rng, kind, n) for name, kind in zip(names, kinds, strict=True)}) for n in (20, 60)
    )
    if rng.random() < 0.25:
        step = PublicTreesEmbedding(3, max_leaf_nodes=6, schema=schema, random_state=seed)
    else:
        numbers, dtype = rng.choice(["bins", "scale", "both", "codes"]), rng.choice(["float32", "float64"])
        step = DPTableVectorizer(schema, numbers=str(numbers), dtype=str(dtype), n_bins=int(rng.integers(1, 9)))
    return step, first, other


@pytest.mark.parametrize("n_frames", [40, pytest.param(1000, marks=pytest.mark.slow)])
def test_drawn_frames_are_served_alike(n_frames):
    """Half of them at least; all others are rejected in one line."""
    alike, rejections = 0, []
    for seed in range(n_frames):
        step, first, other = drawn(seed)
        try:
            graph = to_onnx(step.fit(first))
        except (TypeError, ValueError) as rejection:
            rejections.append(str(rejection))
            continue
        assert_served_alike(step, graph, other)
        alike += 1
    assert alike >= n_frames / 2
    assert "\n" not in "".join(rejections)
