#!/usr/bin/env python3
"""Tables with undeclared column types: loss of accuracy, warnings, and results with declared types.

    python benchmarks/bench_raw_columns.py --data FOLDER [--splits 3] [--epsilon 1]
    python benchmarks/bench_raw_columns.py --limits [--splits 3]    # wide bounds, few rows, many columns: simulated

The amounts of credit default are written as text, as decimals and as objects, the birthdays that its ages stand for as
text and as dates, codes as words, and an ID is added. Each frame is fitted by the one-liner, with nothing said and with
the kinds that its notice asks for, beside the same frame cleaned by hand: numbers, moments, words, no ID. Splits and
noise are the same for all, so frames that are read alike give equal figures.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import os
import sys
import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

LABEL = "default_payment_next_month"
SEXES, SCHOOLS = {1: "male", 2: "female"}, {1: "graduate", 2: "university", 3: "high school"}


def cleaned(folder: Path) -> tuple[pd.DataFrame, Any, list[str]]:
    """The table as a careful user hands it over, its label, and the names of its amounts."""
    table = pd.read_csv(folder / "credit_default.csv.gz")
    y = table.pop(LABEL).to_numpy()
    table = table.drop(columns="ID")
    names = {name.upper(): name for name in table.columns}
    sex, school, age = names["SEX"], names["EDUCATION"], names["AGE"]
    table[sex], table[school] = table[sex].map(SEXES), table[school].map(SCHOOLS).fillna("other school")
    days = np.random.default_rng(0).integers(0, 365, len(table))
    born = pd.to_datetime((2005 - table.pop(age)).astype(str) + "-01-01") + pd.to_timedelta(days, "D")
    table.insert(0, "born", born)
    return table, y, [name for name in table.columns if "AMT" in name.upper() or name.upper() == "LIMIT_BAL"]


def raw_frames(table: pd.DataFrame, amounts: list[str]) -> dict[str, tuple[pd.DataFrame, dict[str, Any]]]:
    """Frames of the same cells in other forms, and what their columns have to be said to be."""

    def written(amount: Any, birthday: Any, **kinds: Any) -> tuple[pd.DataFrame, dict[str, Any]]:
        frame = table.assign(**{name: table[name].map(amount).astype(object) for name in amounts})
        frame["born"] = table["born"].map(birthday).astype(object)
        frame["ID"] = [f"client {i}" for i in range(len(frame))]
        return frame, {"ID": "drop", "born": "date", **dict.fromkeys(amounts, "number"), **kinds}

    def day(moment: Any) -> datetime.date:
        return moment.date()

    arrow = table.convert_dtypes(dtype_backend="pyarrow")
    decimals = pd.ArrowDtype(pa.decimal128(24, 2))
    arrow = arrow.astype(dict.fromkeys(amounts, decimals) | {"born": "date32[day][pyarrow]"})
    return {
        "text, ISO dates": written(lambda v: f"{v:,}", lambda v: str(day(v))),
        "dollars, German dates": written(
            lambda v: f"${v:,.2f}".replace("$-", "-$"),
            lambda v: day(v).strftime("%d.%m.%Y"),
            born={"kind": "date", "format": "%d.%m.%Y"},
        ),
        "decimals, dates": written(lambda v: Decimal(v).scaleb(0), day),
        "objects, SQL text": written(lambda v: v, lambda v: f"{day(v)} 00:00:00"),
        "array of objects": (
            pd.DataFrame(table.to_numpy(), columns=table.columns),
            {
                **dict.fromkeys(table.columns, "number"),
                "born": "date",
                **{name: "category" for name in table.columns if table[name].dtype.kind not in "iufM"},
            },
        ),
        "Arrow's types": (arrow, {}),
    }


def fitted(X: Any, t: Any, schema: Any, epsilon: float, seed: int) -> tuple[Any, list[str]]:
    """The pipeline of one line, and the notices of its fit."""
    import skdp

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = skdp.tabular_pipeline(schema=schema, epsilon=epsilon, classes=[0, 1], random_state=seed).fit(X, t)
    return model, [str(each.message) for each in caught if issubclass(each.category, skdp.exceptions.QualityWarning)]


def measure(X: Any, y: Any, schema: Any, splits: int, epsilon: float) -> tuple[list[float], set[str], list[str]]:
    """AUROC of each split, the columns of which most is lost, and those that the notices name."""
    found, lost, told = [], set[str](), []
    for seed in range(splits):
        train, test = train_test_split(np.arange(len(y)), test_size=0.2, random_state=seed)
        model, notices = fitted(X.iloc[train], y[train], schema, epsilon, seed)
        found.append(float(roc_auc_score(y[test], model.predict_proba(X.iloc[test])[:, 1])))
        remains = vars(model[0]).get("_fitted_remains", {})
        lost |= {name for name, each in remains.items() if each.share + 2.0 * each.deviation < 0.5}
        told += notices
    return found, lost, told


def limits(splits: int) -> None:
    """AUROC and log loss on simulated rows: wide bounds with and without bins that are estimated, few rows, columns."""
    import skdp

    def row(name: str, X: Any, y: Any, n: int, epsilon: float, model: Any, schema: Any, **given: Any) -> None:
        found = []
        for seed in range(splits):
            train, test = train_test_split(np.arange(len(y)), train_size=n, random_state=seed)
            fit = skdp.tabular_pipeline(model, schema=schema, epsilon=epsilon, classes=[0, 1]).set_params(**given)
            p = fit.fit(X.iloc[train], y[train]).predict_proba(X.iloc[test])[:, 1]
            found.append((roc_auc_score(y[test], p), log_loss(y[test], p)))
        auroc, loss = np.mean(found, axis=0)
        print(f"{name:60} AUROC {auroc:.3f} log loss {loss:.3f}", flush=True)

    rng = np.random.default_rng(0)
    amounts = pd.DataFrame(np.exp(rng.normal(8.0, 1.0, (30_000, 3))), columns=["a", "b", "c"])
    y = (np.log(amounts).sum(axis=1) + rng.normal(0.0, 2.0, len(amounts)) > 24.0).astype(int).to_numpy()
    for top, epsilon in itertools.product((1e5, 1e7), (0.3, 1.0, 4.0)):
        for fits in (False, True):
            name = f"log-normal, bounds (0, {top:g}), epsilon {epsilon:g}, fit_bins={fits}"
            schema = dict.fromkeys(amounts, (0, top))
            row(name, amounts, y, 22_500, epsilon, skdp.DPLogisticRegression(), schema, vectorizer__fit_bins=fits)
    words = {f"w{j}": rng.choice(list("abcdefgh"), len(y)) for j in range(16)}
    row("16 columns of words beside, no schema, 560 rows", amounts.assign(**words), y, 560, 1.0, "classifier", None)
    many = pd.DataFrame(rng.uniform(-1.0, 1.0, (20_000, 600)), columns=[f"c{j}" for j in range(600)])
    y = (many["c0"] + many["c1"] + rng.normal(0.0, 0.5, len(many)) > 0.0).astype(int).to_numpy()
    for name in ("classifier", "logistic"):
        model = name if name == "classifier" else skdp.DPLogisticRegression()
        row(f"600 columns, 10,500 rows, {name}", many, y, 10_500, 1.0, model, dict.fromkeys(many, (-1, 1)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("SKDP_DATA"), help="folder of the tables")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--limits", action="store_true", help="simulated rows with wide bounds, few rows, many columns")
    arguments = parser.parse_args()
    if arguments.limits:
        warnings.simplefilter("ignore")
        return limits(arguments.splits)
    if arguments.data is None:
        sys.exit("SKDP_DATA is not set: name the folder of the tables with --data or SKDP_DATA.")
    from skdp import TableSchema

    table, y, amounts = cleaned(Path(arguments.data))
    by_hand, _, _ = measure(table, y, None, arguments.splits, arguments.epsilon)
    print(f"credit default, epsilon {arguments.epsilon:g}, {arguments.splits} splits")
    print(f"{'cleaned by hand':24} AUROC {np.mean(by_hand):.4f} +- {np.std(by_hand, ddof=1):.4f}")
    for name, (frame, kinds) in raw_frames(table, amounts).items():
        nothing, lost, told = measure(frame, y, None, arguments.splits, arguments.epsilon)
        unnamed = sorted(each for each in lost if not any(repr(each) in text for text in told))
        said = nothing
        if kinds:
            said, _, _ = measure(frame, y, TableSchema(kinds, others="estimate"), arguments.splits, arguments.epsilon)
        print(
            f"{name:24} nothing said {np.mean(nothing):.4f}, {len(lost)} columns lost, not named: {unnamed or 'none'}; "
            f"kinds said {np.mean(said):.4f}, to the cleaned one {np.mean(said) - np.mean(by_hand):+.4f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
