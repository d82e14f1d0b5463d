"""Models of bench_tables.py, and the process that fits them in the environment of their library.

A worker reads requests from standard input, one JSON object a line, and answers each with a line: the score on the test
rows, for classes what their probabilities are worth, CPU seconds of the fit and, of the first one, CPU seconds with
what is imported for it.
"""

from __future__ import annotations

import functools
import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from benchmark_tables import Table, held_out, load, read_entry
from numpy.typing import NDArray
from sklearn.metrics import log_loss, r2_score, roc_auc_score
from sklearn.pipeline import Pipeline, make_pipeline

Rows = NDArray[np.int64]


class Model(NamedTuple):
    """A contestant.

    `make` takes the table and epsilon. `home` is the environment with its library. `is_encoded` ones are given
    what `DPTableVectorizer` makes, numbers scaled to [-1, 1] or as `numbers` says; the others take the raw table.
    `weighs` are those that take weights of rows.
    """

    make: Callable[[Table, float], Any]
    home: str = "here"
    tasks: str = "both"
    is_private: bool = True
    is_encoded: bool = False
    numbers: str = "scale"
    weighs: bool = True
    most_classes: int = 100

    def takes(self, table: Table) -> bool:
        """Whether this model is for the label of the table, and for its weights."""
        fits = self.tasks in ("both", "numbers" if table.is_regression else "classes")
        return fits and (self.weighs or table.weights is None) and len(table.classes or ()) <= self.most_classes


# --- Ours -------------------------------------------------------------------------------------------------------------


def _ours(table: Table, epsilon: float, estimator: Any = None) -> Any:
    """The pipeline of one line, with its own choice of an estimator or with another one."""
    return _told(table, epsilon, table.schema, estimator)


def _told(table: Table, epsilon: float, schema: dict[str, Any] | None, estimator: Any = None) -> Any:
    """The pipeline of one line, told this of the columns. It estimates what it is not told."""
    from skdp import tabular_pipeline

    label = {"y_bounds": table.y_bounds} if table.is_regression else {"classes": table.classes}
    default = "regressor" if table.is_regression else "classifier"
    given = {"schema": schema, "epsilon": epsilon, "delta": table.delta, "weight_bound": table.weight_bound}
    return tabular_pipeline(default if estimator is None else estimator, **given, **label)


def _ours_untold(table: Table, epsilon: float) -> Any:
    """Told no schema: names and types of the columns are all that it takes as public."""
    return _told(table, epsilon, None)


def _ours_without_lists(table: Table, epsilon: float) -> Any:
    """Told what DP-EBM is told by `_ebm`: kinds, and bounds of numbers and ordinals."""
    entries = {name: read_entry(entry) for name, entry in table.schema.items()}
    told = {name: kind if kind == "category" else (v[0], v[-1]) for name, (kind, v) in entries.items()}
    return _told(table, epsilon, told)


def _trees(table: Table, epsilon: float) -> Any:
    from skdp.ensemble import DPRandomTreesRegressor

    return _ours(table, epsilon, DPRandomTreesRegressor())


def _logistic(table: Table, epsilon: float) -> Any:
    from skdp import DPLogisticRegression

    return _ours(table, epsilon, DPLogisticRegression())


def _network(table: Table, epsilon: float) -> Any:
    from skdp import DPMLPClassifier, DPMLPRegressor

    return _ours(table, epsilon, DPMLPRegressor() if table.is_regression else DPMLPClassifier())


def _ridge(table: Table, epsilon: float) -> Any:
    from skdp import DPRidge

    return _ours(table, epsilon, DPRidge())


# --- Peers ------------------------------------------------------------------------------------------------------------


def _ebm(table: Table, epsilon: float, with_lists: bool = False, **parameters: Any) -> Any:
    """DP-EBM, told kinds and bounds of the columns, or lists of categories too.

    It takes no gaps: those of numbers are moved to the middle of the bounds. Its lists are of ordinals, in their order;
    it has no other way to be told categories, and pays for their bins all the same.
    """
    from interpret import privacy
    from sklearn.preprocessing import FunctionTransformer

    entries = {name: read_entry(entry) for name, entry in table.schema.items()}
    types = {name: "nominal" if kind == "category" else "continuous" for name, (kind, _) in entries.items()}
    if with_lists:
        types |= {name: listed(table.schema[name]) for name, (kind, _) in entries.items() if kind != "number"}
    bounds = {name: (v[0], v[-1]) for name, (_, v) in entries.items() if types[name] == "continuous"}
    given = {
        "feature_names": list(entries),
        "feature_types": list(types.values()),
        "privacy_bounds": bounds,
        "epsilon": epsilon,
        "delta": table.delta,
        "n_jobs": 1,
    } | parameters
    if table.is_regression:
        low, high = table.y_bounds
        model = privacy.DPExplainableBoostingRegressor(**given, privacy_target_min=low, privacy_target_max=high)
    else:
        model = privacy.DPExplainableBoostingClassifier(**given)
    middle = {name: sum(ends) / 2 for name, ends in bounds.items()}
    return make_pipeline(FunctionTransformer(pd.DataFrame.fillna, kw_args={"value": middle}), model)


def listed(entry: Any) -> list[str]:
    """Every value of a category or an ordinal, in order, with those that stand for a missing value."""
    missing = entry.get("missing_values", []) if isinstance(entry, dict) else []
    return [str(value) for value in (*read_entry(entry)[1], *missing)]


def _diffprivlib(table: Table, epsilon: float) -> Any:
    """Pure epsilon. Categories are one-hot and numbers scaled, which suits its noise better than bins."""
    from diffprivlib import models

    if not table.is_regression:
        return models.LogisticRegression(epsilon=epsilon, data_norm=len(table.schema) ** 0.5)
    return models.LinearRegression(epsilon=epsilon, bounds_X=(-1, 1), bounds_y=table.y_bounds)


def _dp_xgboost(table: Table, epsilon: float) -> Any:
    """DP-XGBoost, which is pure epsilon, with the settings of its authors' examples; classes are fitted as numbers."""
    from sklearn.preprocessing import FunctionTransformer

    codes = FunctionTransformer(functools.partial(_codes, schema=table.schema))
    return make_pipeline(codes, _SarusTrees(epsilon, table))


def _codes(X: pd.DataFrame, schema: dict[str, Any]) -> NDArray[np.float64]:
    """Numbers, moved into their bounds, and the place of each category in its list; a gap is one place before."""
    columns = []
    for name, entry in schema.items():
        kind, values = read_entry(entry)
        numbers = X[name].astype(float).clip(values[0], values[-1]) if kind == "number" else pd.Index(values)
        columns.append(numbers.fillna(values[0]) if kind == "number" else numbers.get_indexer(X[name]))
    return np.column_stack(columns).astype(float)


class _SarusTrees:
    """What the examples in the repository of dp-xgboost do, with public bounds of columns and target."""

    settings: ClassVar[dict[str, Any]] = {
        "objective": "reg:squarederror", "tree_method": "approxDP", "max_depth": 6, "learning_rate": 0.3,
        "lambda": 0.1, "subsample": 0.2, "min_child_weight": 500, "nthread": 1,
    }  # fmt: skip
    trees = 20

    def __init__(self, epsilon: float, table: Table):
        entries = [read_entry(entry) for entry in table.schema.values()]
        ends = [(v[0], v[-1]) if kind == "number" else (-1, len(v) - 1) for kind, v in entries]
        self.bounds = {
            f"feature_{name}": list(each) for name, each in zip(("min", "max"), zip(*ends, strict=True), strict=True)
        }
        self.epsilon = epsilon
        # classes stay 0 and 1, and trees start from 1/2; numbers are moved from their bounds to [-1, 1], around 0
        self.middle, self.half = (np.mean(table.y_bounds), np.ptp(table.y_bounds) / 2) if table.y_bounds else (0.0, 1.0)
        self.start = 0.0 if table.is_regression else 0.5

    def fit(self, X: NDArray[np.float64], y: NDArray[Any]) -> Any:
        """Train with a fresh seed. A tree of epsilon e on a share s of the rows costs log(1 + s (exp(e) - 1))."""
        import secrets

        import dp_xgboost

        each = np.log1p(np.expm1(self.epsilon / self.trees) / self.settings["subsample"])
        given = {"dp_epsilon_per_tree": float(each), "base_score": self.start, "seed": secrets.randbelow(2**31)}
        rows = dp_xgboost.DMatrix(X, label=(y - self.middle) / self.half, **self.bounds)
        self.model = dp_xgboost.train(self.settings | given, rows, num_boost_round=self.trees)
        return self

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Targets."""
        import dp_xgboost

        return self.middle + self.half * self.model.predict(dp_xgboost.DMatrix(X, **self.bounds))

    def predict_proba(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Predictions of 0 and 1, moved into [0, 1]."""
        p = np.clip(self.predict(X), 0.0, 1.0)
        return np.column_stack([1.0 - p, p])


def _reference(table: Table, epsilon: float, name: str) -> Any:
    """A regression of references.py, at the norm of scaled rows."""
    import references

    given = {"epsilon": epsilon, "delta": table.delta, "norm": len(table.schema) ** 0.5}
    return getattr(references, name)(**given, **({"y_bounds": table.y_bounds} if table.is_regression else {}))


def _referring(name: str, tasks: str, **more: str) -> Model:
    made = functools.partial(_reference, name=name)
    return Model(made, tasks=tasks, is_encoded=True, weighs=False, most_classes=2, **more)


# --- Without privacy --------------------------------------------------------------------------------------------------


def _share(table: Table, _: float) -> Any:
    """The share of each class, for all rows alike."""
    from sklearn.dummy import DummyClassifier

    return DummyClassifier(strategy="prior")


def _linear(table: Table, _: float) -> Any:
    """Logistic regression on bins, ridge regression on bins and scaled numbers."""
    from sklearn.linear_model import LogisticRegression, Ridge

    from skdp.preprocessing import DPTableVectorizer

    if table.is_regression:
        return make_pipeline(DPTableVectorizer(table.schema, numbers="both", sparse_output=False), Ridge(0.1))
    return make_pipeline(DPTableVectorizer(table.schema), LogisticRegression(max_iter=1000))


def _typed(X: pd.DataFrame, schema: dict[str, Any]) -> pd.DataFrame:
    columns = {name: read_entry(entry) for name, entry in schema.items()}
    made = {
        name: pd.Categorical(X[name], categories=values) if kind == "category" else X[name].astype(float)
        for name, (kind, values) in columns.items()
    }
    return pd.DataFrame(made, index=X.index)


def _boosted(table: Table, _: float) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.preprocessing import FunctionTransformer

    kind = HistGradientBoostingRegressor if table.is_regression else HistGradientBoostingClassifier
    typed = FunctionTransformer(functools.partial(_typed, schema=table.schema))
    return make_pipeline(typed, kind(categorical_features="from_dtype", random_state=0))


MODELS: dict[str, Model] = {
    "default": Model(_ours),
    "default, no lists": Model(_ours_without_lists),
    "default, no schema": Model(_ours_untold),
    "trees": Model(_trees, tasks="numbers"),
    "logistic": Model(_logistic, tasks="classes"),
    "network": Model(_network),
    "ridge": Model(_ridge, tasks="numbers"),
    "DP-EBM": Model(_ebm, home="ebm", most_classes=2),
    "DP-EBM, lists": Model(functools.partial(_ebm, with_lists=True), home="ebm", most_classes=2),
    "DP-EBM, lists, .01": Model(
        functools.partial(_ebm, with_lists=True, bin_budget_frac=0.01), home="ebm", most_classes=2
    ),
    "DP-EBM, lists, .3": Model(
        functools.partial(_ebm, with_lists=True, bin_budget_frac=0.3), home="ebm", most_classes=2
    ),
    "diffprivlib": Model(_diffprivlib, home="diffprivlib", is_encoded=True, weighs=False),
    "dp-xgboost": Model(_dp_xgboost, home="dp-xgboost", weighs=False, most_classes=2),
    "ObjectivePerturbation": _referring("ObjectivePerturbation", "classes"),
    "ObjectivePerturbation, bins": _referring("ObjectivePerturbation", "classes", numbers="bins"),
    "DoubleNoiseNewton": _referring("DoubleNoiseNewton", "classes"),
    "BoostedAdaSSP": _referring("BoostedAdaSSP", "numbers"),
    "share": Model(_share, tasks="classes", is_private=False),
    "linear, not private": Model(_linear, is_private=False),
    "boosted trees, not private": Model(_boosted, is_private=False),
}


# --- The worker -------------------------------------------------------------------------------------------------------


def split(name: str, n: int, protocol: str, seed: int) -> tuple[Rows, Rows]:
    """Rows to train on and to test on.

    ``"splits"``: a random fifth of all rows is tested; ``"dev"``: of those that are not held out; ``"held-out"``: the
    held-out fifth, whatever the seed.
    """
    rows = np.arange(n)
    if protocol != "splits":
        rows = np.setdiff1d(rows, held_out(name))
    if protocol == "held-out":
        return rows, held_out(name)
    rows = np.random.default_rng(seed).permutation(rows)
    return rows[len(rows) // 5 :], rows[: len(rows) // 5]


def thinned(rows: Rows, y: NDArray[Any], share: float, seed: int) -> Rows:
    """Rows without some of the second class, of which this share is left."""
    others, second = rows[y[rows] == 0], rows[y[rows] == 1]
    kept = np.random.default_rng(seed).permutation(second)[: round(share / (1 - share) * len(others))]
    return np.sort(np.concatenate([others, kept]))


def score(
    table: Table, model: Any, X: Any, y: NDArray[Any], weights: NDArray[np.float64] | None = None
) -> dict[str, Any]:
    """AUROC and what probabilities are worth, or R squared. Predictions are moved into the bounds of the target.

    Of several classes it is the mean AUROC of each against the others, and what the probability of the rarest is worth.
    """
    if table.is_regression:
        return {"score": float(r2_score(y, np.clip(model.predict(X), *table.y_bounds), sample_weight=weights))}
    probabilities = np.asarray(model.predict_proba(X), np.float64)
    if len(table.classes or ()) == 2:
        probability = probabilities[:, 1]
        auroc = roc_auc_score(y, probability, sample_weight=weights)
        return {"score": float(auroc), **beliefs(y, probability, weights)}
    rarest = np.bincount(y, weights).argmin()
    found = beliefs((y == rarest).astype(int), probabilities[:, rarest], weights)
    errors = ((probabilities - np.eye(probabilities.shape[1])[y]) ** 2).sum(axis=1)
    kept = np.maximum(probabilities, 1e-12)
    found["log_loss"] = float(log_loss(y, kept / kept.sum(axis=1, keepdims=True), sample_weight=weights))
    found["brier"] = float(np.average(errors, weights=weights))
    auroc = roc_auc_score(y, probabilities, sample_weight=weights, multi_class="ovr")
    return {**found, "score": float(auroc)}


def beliefs(
    y: NDArray[Any], probability: NDArray[np.float64], weights: NDArray[np.float64] | None = None
) -> dict[str, Any]:
    """Log loss, Brier score, mean probability over share of the class, calibration error, and its curve.

    The expected calibration error is over ten bins of as many rows, less what calibrated probabilities would show on
    the same rows (the mean of 50 draws of labels). The curve has the mean probability and the share of the class of
    each. All means are of weighted rows, where there are weights.
    """
    weights = np.ones(len(y)) if weights is None else weights
    order, draws = np.argsort(probability, kind="stable"), np.random.default_rng(0)
    bins = np.array_split(order, 10)

    def mean(values: NDArray[Any], rows: Any = slice(None)) -> float:
        return float(np.average(values[rows], weights=weights[rows]))

    def error(labels: NDArray[Any]) -> float:
        gaps = [weights[each].sum() * abs(mean(labels, each) - mean(probability, each)) for each in bins]
        return float(sum(gaps) / weights.sum())

    calibrated = [error(draws.random(len(y)) < probability) for _ in range(50)]
    return {
        "log_loss": float(log_loss(y, np.clip(probability, 1e-12, 1 - 1e-12), sample_weight=weights)),
        "brier": mean((probability - y) ** 2),
        "ratio": mean(probability) / mean(y),
        "ece": error(y) - float(np.mean(calibrated)),
        "curve": [[mean(values, each) for each in bins] for values in (probability, y)],
    }


class Worker:
    """One model on one table, trained on all training rows or on as many as are asked for."""

    def __init__(
        self,
        table: str,
        model: str,
        folder: str,
        rows: int | None = None,
        share: float | None = None,
        encoded: str | None = None,
    ):
        self.name, self.model, self.rows, self.share = table, MODELS[model], rows, share
        self.table, self.first = load(table, folder), True
        self.X = self.table.X if encoded is None else sp.load_npz(encoded).toarray()

    def fit(self, protocol: str, epsilon: float, seed: int) -> dict[str, Any]:
        """Fit once and score."""
        train, test = split(self.name, len(self.table.y), protocol, seed)
        if self.share is not None:
            train, test = (thinned(rows, self.table.y, self.share, seed) for rows in (train, test))
        train = train if self.rows is None else np.random.default_rng(seed).permutation(train)[: self.rows]
        take = self.X.iloc if isinstance(self.X, pd.DataFrame) else self.X
        X, X_test = take[train], take[test]
        begin = time.process_time()
        model = self.model.make(self.table, epsilon)
        start = time.process_time()
        model.fit(X, self.table.y[train], **self._weights_of(model, train))
        end = time.process_time()
        first, self.first = {"first": end - begin} if self.first else {}, False
        weights = None if self.table.weights is None else self.table.weights[test]
        return {**score(self.table, model, X_test, self.table.y[test], weights), "seconds": end - start, **first}

    def _weights_of(self, model: Any, rows: Rows) -> dict[str, Any]:
        """Weights as `fit` takes them: pipelines of scikit-learn hand them to the step that is named."""
        if self.table.weights is None:
            return {}
        of_step = f"{model.steps[-1][0]}__" if type(model) is Pipeline else ""
        return {f"{of_step}sample_weight": self.table.weights[rows]}


def main() -> None:
    warnings.simplefilter("ignore")
    worker = Worker(**json.loads(sys.stdin.readline()))
    for line in sys.stdin:
        print(json.dumps(worker.fit(**json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
