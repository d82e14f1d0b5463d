"""Data sets of the benchmarks: records, targets, schemas, and the held-out fifth.

Bounds and categories are written from code books and from what a column is, not from the rows. Neither scikit-learn nor
skdp is needed, so that peers can read the same tables in environments of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

HELD_OUT = Path(__file__).parent / "held_out"
HELD_OUT_SEED = 12
ELEVATORS_PUBLIC_ROWS = 100
"""Elevators has no code book: its first rows are taken as public, and are left out of the table."""


class Table(NamedTuple):
    """A table and what is public of it.

    `schema` is what `skdp.preprocessing.TableSchema` takes, and complete. One of `classes` and `y_bounds` is None.
    Where rows stand for others, `weights` says for how many, and `weight_bound` for how many at most.
    """

    X: pd.DataFrame
    y: NDArray[Any]
    schema: dict[str, Any]
    classes: list[int] | None
    y_bounds: tuple[float, float] | None
    delta: float
    weights: NDArray[np.float64] | None = None
    weight_bound: float | None = None

    @property
    def is_regression(self) -> bool:
        """Whether the label is a number."""
        return self.classes is None


def load(name: str, folder: str | Path) -> Table:
    """Read a table of `TABLES` from the folder of the data sets."""
    return TABLES[name](Path(folder))


def read_entry(entry: Any) -> tuple[str, list[Any]]:
    """Kind of a column of a schema, and its values or, of a number, its bounds."""
    if entry == "flag":
        return "category", [0, 1]
    if isinstance(entry, list):
        return "category", entry
    if isinstance(entry, tuple):
        return "number", list(entry)
    if "categories" in entry:
        return entry.get("kind", "category"), entry["categories"]
    ends = entry.get("edges", entry.get("bounds"))
    return "number", [ends[0], ends[-1]]


def held_out(name: str) -> NDArray[np.int64]:
    """Row numbers of the fifth of a table on which no default is chosen, in order."""
    return np.load(_held_out_path(name))["rows"].astype(np.int64)


def draw_held_out(n: int) -> NDArray[np.uint16]:
    """Draw the row numbers that `held_out` has on file."""
    return np.sort(np.random.default_rng(HELD_OUT_SEED).permutation(n)[: n // 5]).astype(np.uint16)


def _held_out_path(name: str) -> Path:
    return HELD_OUT / f"{_ROWS_OF.get(name, name)}.npz"


def _labelled(table: pd.DataFrame, y: NDArray[Any], schema: dict[str, Any], delta: float = 1e-5) -> Table:
    return Table(table[list(schema)], y.astype(int), schema, [0, 1], None, delta)


def _classified(table: pd.DataFrame, y: NDArray[Any], schema: dict[str, Any], n_classes: int) -> Table:
    return Table(table[list(schema)], y.astype(int), schema, list(range(n_classes)), None, 1e-5)


def _log(low: float, high: float) -> dict[str, Any]:
    return {"bounds": (low, high), "scale": "log"}


def _ordinal(first: int, last: int) -> dict[str, Any]:
    return {"kind": "ordinal", "categories": list(range(first, last + 1))}


# --- Adult ------------------------------------------------------------------------------------------------------------

_ADULT_WORDS = {
    "workclass": "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay Never-worked",
    "education": (
        "Bachelors Some-college 11th HS-grad Prof-school Assoc-acdm Assoc-voc 9th 7th-8th 12th Masters 1st-4th 10th "
        "Doctorate 5th-6th Preschool"
    ),
    "marital-status": (
        "Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent Married-AF-spouse"
    ),
    "occupation": (
        "Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty Handlers-cleaners "
        "Machine-op-inspct Adm-clerical Farming-fishing Transport-moving Priv-house-serv Protective-serv Armed-Forces"
    ),
    "relationship": "Wife Own-child Husband Not-in-family Other-relative Unmarried",
    "race": "White Asian-Pac-Islander Amer-Indian-Eskimo Other Black",
    "sex": "Female Male",
    "native-country": (
        "United-States Cambodia England Puerto-Rico Canada Germany Outlying-US(Guam-USVI-etc) India Japan Greece South "
        "China Cuba Iran Honduras Philippines Italy Poland Jamaica Vietnam Mexico Portugal Ireland France "
        "Dominican-Republic Laos Ecuador Taiwan Haiti Columbia Hungary Guatemala Nicaragua Scotland Thailand "
        "Yugoslavia El-Salvador Trinadad&Tobago Peru Hong Holand-Netherlands"
    ),
}
"""The values of ``adult.names``."""
_ADULT_NUMBERS = {
    "age": (17, 90), "fnlwgt": (0, 1_500_000), "education-num": (1, 16), "capital-gain": (0, 99_999),
    "capital-loss": (0, 5_000), "hours-per-week": (1, 99),
}  # fmt: skip


def _adult(folder: Path) -> Table:
    """The training file: income above 50,000 dollars."""
    table = pd.read_csv(folder / "adult_train.csv.gz")
    schema: dict[str, Any] = {name: _ADULT_NUMBERS.get(name) for name in table.columns.drop("income")}
    schema |= {name: words.split() for name, words in _ADULT_WORDS.items()}
    for name in ("workclass", "occupation", "native-country"):
        schema[name] = {"categories": schema[name], "missing_values": ["?"]}
    return _labelled(table, (table["income"] == ">50K").to_numpy(), schema, 1e-6)


def _adult_weighted(folder: Path) -> Table:
    """The same people, each of whom stands for as many as the survey says: one in 90 for more than half a million."""
    table = _adult(folder)
    schema = {name: entry for name, entry in table.schema.items() if name != "fnlwgt"}
    weights = table.X["fnlwgt"].to_numpy(float)
    return table._replace(X=table.X[list(schema)], schema=schema, weights=weights, weight_bound=500_000.0)


# --- Census -----------------------------------------------------------------------------------------------------------

_FULTON: dict[str, Any] = {
    "puma": list(range(1101, 1108)),
    "age": (18, 93),
    "educ": _ordinal(1, 16),
    "income": (0, 150_000),
}
_FULTON_FLAGS = (
    "sex latino black asian married divorced uscitizen children disability militaryservice employed englishability"
)


def _fulton(folder: Path, label: str = "married", without: tuple[str, ...] = ("divorced",)) -> Table:
    """Who is married, from all that varies but `divorced`, which says who is not."""
    table = pd.read_csv(folder / "pums_fulton_ga.csv.gz")
    schema = _FULTON | dict.fromkeys(_FULTON_FLAGS.split(), "flag")
    kept = {name: entry for name, entry in schema.items() if name not in (label, *without)}
    return _labelled(table, table[label].to_numpy(), kept)


def _fulton_employed(folder: Path) -> Table:
    """Who is employed, from all that `skdp.datasets.load_pums` has: without income, which says it, and area."""
    return _fulton(folder, "employed", ("income", "puma"))


def _fulton_status(folder: Path) -> Table:
    """Married, divorced or neither."""
    table = pd.read_csv(folder / "pums_fulton_ga.csv.gz")
    schema = _FULTON | dict.fromkeys(_FULTON_FLAGS.split(), "flag")
    kept = {name: entry for name, entry in schema.items() if name not in ("married", "divorced")}
    y = np.where(table["married"] == 1, 0, np.where(table["divorced"] == 1, 1, 2))
    return _classified(table, y, kept, 3)


def _colorado_status(folder: Path) -> Table:
    """Married, widowed, divorced, separated (one in 60) or never married."""
    table = _colorado(folder)
    schema = {name: entry for name, entry in table.schema.items() if name != "MAR"}
    return _classified(table.X, table.X["MAR"].to_numpy() - 1, schema, 5)


def _colorado(folder: Path) -> Table:
    """ACSIncome: income above 50,000 dollars."""
    table = pd.read_csv(folder / "acsincome_2018_colorado.csv.gz")
    schema = {
        "AGEP": (17, 99),
        "COW": list(range(1, 10)),
        "SCHL": _ordinal(1, 24),
        "MAR": list(range(1, 6)),
        "OCCP": {"edges": list(range(0, 10_001, 200))},  # neighbors in the code list are alike, here and below
        "POBP": (0, 560),
        "RELP": list(range(18)),
        "WKHP": (1, 99),
        "SEX": [1, 2],
        "RAC1P": list(range(1, 10)),
    }
    return _labelled(table, table["PINCP"].to_numpy(), schema)


_CENSUS_TARGETS: dict[str, tuple[float, float]] = {
    "income": (0, 150_000),
    "log_income": (0, float(np.log1p(150_000))),
    "age": (18, 93),
    "educ": (1, 16),
}
"""Numbers of a person, and their bounds. Nobody lost money on the scale of logarithms, where zeros are frequent."""
_CALIFORNIA_FLAGS = "sex latino black asian married"


def _census_number(table: pd.DataFrame, target: str, schema: dict[str, Any]) -> Table:
    """One number of a person, from all that else is known."""
    label = target.removeprefix("log_")
    kept = {name: entry for name, entry in schema.items() if name != label}
    y = np.log1p(np.maximum(table[label], 0.0)) if label != target else table[label]
    ends = _CENSUS_TARGETS[target]
    return Table(table[list(kept)], np.clip(y.to_numpy(float), *ends), kept, None, ends, 1e-5)


def _fulton_number(folder: Path, target: str) -> Table:
    schema = _FULTON | dict.fromkeys(_FULTON_FLAGS.split(), "flag")
    return _census_number(pd.read_csv(folder / "pums_fulton_ga.csv.gz"), target, schema)


def _california_number(folder: Path, target: str) -> Table:
    """10,000 adults. Areas are left out: there are more than a hundred."""
    schema = {name: entry for name, entry in _FULTON.items() if name != "puma"}
    schema |= dict.fromkeys(_CALIFORNIA_FLAGS.split(), "flag")
    return _census_number(pd.read_csv(folder / "pums_california_10000.csv.gz"), target, schema)


# --- Credit default ---------------------------------------------------------------------------------------------------

_CREDIT: dict[str, Any] = {
    "LIMIT_BAL": (10_000, 800_000), "SEX": [1, 2], "EDUCATION": list(range(7)), "MARRIAGE": list(range(4)),
    "AGE": (20, 80),
}  # fmt: skip


def _credit(folder: Path) -> Table:
    """Who does not pay next month; amounts are in dollars, a payment is late by -2 (nothing due) to 8 months."""
    table = pd.read_csv(folder / "credit_default.csv.gz")
    schema = dict(_CREDIT)
    schema |= {f"PAY_{month}": _ordinal(-2, 8) for month in (0, 2, 3, 4, 5, 6)}
    schema |= {f"BILL_AMT{month}": (-100_000, 600_000) for month in range(1, 7)}
    schema |= {f"PAY_AMT{month}": _log(0, 1_000_000) for month in range(1, 7)}
    return _labelled(table, table["default_payment_next_month"].to_numpy(), schema)


# --- Regression -------------------------------------------------------------------------------------------------------


def _measured(table: pd.DataFrame, label: str, schema: dict[str, Any], y_bounds: tuple[float, float]) -> Table:
    return Table(table[list(schema)], table[label].to_numpy(float), schema, None, y_bounds, 1e-5)


def _housing(folder: Path) -> Table:
    """Median value of a block group of the census of 1990: some 600 to 3,000 people; the value is capped at 500,001."""
    schema = {
        "longitude": (-125, -114),
        "latitude": (32, 42),
        "housing_median_age": (0, 55),
        "total_rooms": _log(100, 20_000),
        "total_bedrooms": _log(20, 4_000),
        "population": _log(50, 10_000),
        "households": _log(20, 4_000),
        "median_income": (0, 15),
        "ocean_proximity": ["<1H OCEAN", "INLAND", "ISLAND", "NEAR BAY", "NEAR OCEAN"],
    }
    return _measured(pd.read_csv(folder / "california_housing.csv.gz"), "median_house_value", schema, (0, 500_000))


def _wine(folder: Path) -> Table:
    """Red and white together, with the color as a column: a score from 0 to 10, from what a laboratory measures."""
    parts = [pd.read_csv(folder / f"wine_quality_{color}.csv.gz").assign(color=color) for color in ("red", "white")]
    schema = {
        "color": ["red", "white"],
        "fixed_acidity": (4, 12),
        "volatile_acidity": (0, 1.2),
        "citric_acid": (0, 1),
        "residual_sugar": _log(0, 50),
        "chlorides": _log(0, 0.3),
        "free_sulfur_dioxide": (0, 100),
        "total_sulfur_dioxide": (0, 300),
        "density": (0.985, 1.005),
        "pH": (2.7, 4.0),
        "sulphates": (0.2, 1.2),
        "alcohol": (8, 15),
    }
    return _measured(pd.concat(parts, ignore_index=True), "quality", schema, (0, 10))


def _elevators(folder: Path) -> Table:
    """Elevator of an F-16; bounds are about twice what the public rows span."""
    schema: dict[str, Any] = {
        "climbRate": (-1_000, 1_000), "Sgz": (-150, 150), "p": (-1, 1), "q": (-0.5, 0.5), "curRoll": (-3, 3),
        "absRoll": (-20, 0), "diffClb": (-40, 40), "diffRollRate": (-0.05, 0.05), "diffDiffClb": (-5, 5),
    }  # fmt: skip
    schema |= {f"SaTime{lag}": (-0.002, 0) for lag in range(1, 5)}
    schema |= {f"diffSaTime{lag}": (-0.0005, 0.0005) for lag in range(1, 5)}
    schema["Sa"] = (-0.002, 0)
    table = pd.read_csv(folder / "elevators.csv.gz").iloc[ELEVATORS_PUBLIC_ROWS:].reset_index(drop=True)
    return _measured(table, "Goal", schema, (0, 0.06))


TABLES: dict[str, Callable[[Path], Table]] = {
    "adult": _adult,
    "fulton": _fulton,
    "fulton_employed": _fulton_employed,
    "colorado": _colorado,
    "credit": _credit,
    "adult_weighted": _adult_weighted,
    "fulton_status": _fulton_status,
    "colorado_status": _colorado_status,
    "housing": _housing,
    "wine": _wine,
    "elevators": _elevators,
    **{f"fulton_{target}": partial(_fulton_number, target=target) for target in _CENSUS_TARGETS},
    **{f"california_{target}": partial(_california_number, target=target) for target in _CENSUS_TARGETS},
}
_ROWS_OF = {
    "adult_weighted": "adult",
    "fulton_employed": "fulton",
    "fulton_status": "fulton",
    "colorado_status": "colorado",
    **{f"fulton_{target}": "fulton" for target in _CENSUS_TARGETS},
    **{f"california_{target}": "california" for target in _CENSUS_TARGETS},
}
"""Tasks on rows of another one, whose held-out fifth is theirs."""
