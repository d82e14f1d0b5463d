"""Tables of customers with every kind of column, and their public schemas."""

import datetime

import numpy as np
import pandas as pd

from skdp.preprocessing import TableSchema

SCHEMA = TableSchema({
    "age": (18, 90),
    "income": {"bounds": (0, 1e6), "scale": "log", "missing_values": [-999]},
    "job": ["clerk", "nurse", "7"],
    "grade": {"kind": "ordinal", "categories": ["low", "mid", "high"]},
    "member": "flag",
    "since": ("2000-01-01", "2025-12-31"),
    "id": "drop",
})  # fmt: skip
ESTIMATED = TableSchema({
    "age": "number",
    "income": {"kind": "number", "missing_values": [-999]},
    "job": "category",
    "grade": "category",
    "member": "flag",
    "since": "date",
    "id": "drop",
})  # fmt: skip
ROWS = [
    {"age": 30, "income": 1000.5, "job": "clerk", "grade": "low", "member": True, "since": datetime.date(2010, 5, 1)},
    {"age": None, "income": -999, "job": "", "grade": None, "member": None, "since": None},
    {"age": 200, "income": -5.0, "job": "pilot", "grade": "top", "member": False, "since": datetime.date(1990, 1, 1)},
    {"age": 18, "income": 1e9, "job": "nurse", "grade": "high", "member": True, "since": datetime.date(2025, 12, 31)},
    {"age": 90, "income": None, "job": "7", "grade": "mid", "member": True, "since": datetime.date(2099, 1, 1)},
    {"age": -3, "income": 0.0, "job": "Ünïcode ✓", "grade": "mid", "member": False, "since": datetime.date(2000, 1, 2)},
]


def customers(n=200, seed=0, rows=ROWS):
    """A frame of n rows, of which the first ones are `rows`; ints with gaps are floats, as pandas has it."""
    rng = np.random.default_rng(seed)
    made = list(rows)
    for _ in range(n - len(rows)):
        age = None if rng.random() < 0.1 else int(rng.integers(18, 91))
        made.append({
            "age": age,
            "income": float(np.round(np.exp(rng.normal(9, 1)), 2)),
            "job": ["clerk", "nurse", "pilot", ""][rng.integers(4)],
            "grade": ["low", "mid", "high", None][rng.integers(4)],
            "member": bool(rng.random() < 0.5),
            "since": datetime.date(2000, 1, 1) + datetime.timedelta(days=int(rng.integers(9000))),
        })  # fmt: skip
    frame = pd.DataFrame(made)
    frame["id"] = [f"secret{i}" for i in range(len(made))]
    return frame


def labels(frame):
    """Labels that follow from the age."""
    return (frame["age"].fillna(40) > 50).to_numpy().astype(int)
