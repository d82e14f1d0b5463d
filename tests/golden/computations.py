"""Seeded computations of public results: at least three of each estimator, and one of each public function.

Each is a function of an accountant that returns results by name. `NAMES` lists them.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from golden.facts import attributes_of, outputs_of
from golden.names import made, public
from sklearn.pipeline import make_pipeline

Run = Callable[[Any], dict[str, Any]]
RUNS: dict[str, Run] = {}

_RNG = np.random.default_rng(0)
N = 600
X = _RNG.uniform(-1.0, 1.0, (N, 4))
Y = (X[:, 0] + 0.3 * _RNG.standard_normal(N) > 0.0).astype(int)
Y3 = np.digitize(X[:, 0], [-0.3, 0.3])
TARGET = np.clip(X[:, 0] - 0.5 * X[:, 1] + 0.1 * _RNG.standard_normal(N), -2.0, 2.0)
COUNTS = np.minimum(_RNG.poisson(np.exp(X[:, 0])), 8)
WEIGHTS = _RNG.uniform(0.2, 1.0, N)
GROUPS = np.arange(N) // 2
SPARSE = sp.csr_matrix(np.where(_RNG.random(X.shape) < 0.4, X, 0.0))
TABLE = pd.DataFrame({
    "age": _RNG.integers(18, 90, N), "pay": np.round(_RNG.lognormal(3.0, 0.8, N), 1),
    "job": _RNG.choice(["a", "b", "c"], N, p=[0.5, 0.3, 0.2]), "day": pd.to_datetime("2020-01-01")
    + pd.to_timedelta(_RNG.integers(0, 300, N), "D"),
})  # fmt: skip
TABLE.loc[::37, "pay"] = np.nan
LABELS = (TABLE["age"] + 5 * (TABLE["job"] == "a") > 55).astype(int).to_numpy()
SCHEMA = {
    "age": (18, 90), "pay": {"bounds": [0.0, 200.0], "missing_values": [None]}, "job": ["a", "b", "c"],
    "day": {"kind": "date", "bounds": ["2020-01-01", "2020-12-31"]},
}  # fmt: skip
IMAGES = _RNG.uniform(0.0, 1.0, (40, 64)).astype(np.float32)

WAYS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({}, {}),
    "groups": ({}, {"groups": GROUPS}),
    "add_remove": ({"adjacency": "add_remove", "n_samples_public": N}, {}),
    "weights": ({"weight_bound": 1.0}, {"sample_weight": WEIGHTS}),
    "noise": ({"epsilon": None, "noise_multiplier": 20.0}, {}),
}


def _add(name: str, run: Run) -> None:
    assert name not in RUNS, name
    RUNS[name] = run


def _fit(accountant: Any, path: str, given: tuple[Any, ...], parameters: dict[str, Any], rows: Any, y: Any, **fit: Any):
    shared = {"random_state": 1, "delta": 1e-5, "accountant": accountant}
    if "groups" in fit:
        shared["accountant"] = None  # the accountant composes fits for rows
    model = made(path, *given, **{**shared, **parameters})
    model.fit(rows, **fit) if y is None else model.fit(rows, y, **fit)
    return model


def _estimator(
    path: str, rows: Any, y: Any, *given: Any, ways: tuple[str, ...] = tuple(WAYS), shown: Any = None, **own: Any
) -> None:
    """Add the computations of an estimator: one for each way of fitting."""

    def run(accountant: Any, way: str) -> dict[str, Any]:
        parameters, fit = WAYS[way]
        model = _fit(accountant, path, given, {**own, **parameters}, rows, y, **fit)
        seen = rows if shown is None else shown
        return {**attributes_of(model), **outputs_of(model, seen[:20])}

    for way in ways:
        _add(f"{path.rpartition('.')[2]} {way}", functools.partial(run, way=way))


OF_ROWS = "plain", "groups", "add_remove", "noise"
_estimator("skdp.DPLogisticRegression", X, Y, classes=[0, 1], data_norm=2.0)
_estimator("skdp.DPMLPClassifier", X, Y3, (6,), classes=[0, 1, 2], max_iter=3)
_estimator("skdp.DPMLPRegressor", X, TARGET, (6,), y_bounds=(-2, 2), max_iter=3)
_estimator("skdp.DPLinearRegression", X, TARGET, (-2, 2), data_norm=2.0)
_estimator("skdp.DPRidge", X, TARGET, 0.1, y_bounds=(-2, 2), data_norm=2.0)
_estimator("skdp.DPPoissonRegressor", X, COUNTS, (0, 8), data_norm=2.0, ways=("plain", "groups", "weights", "noise"))
_estimator("skdp.DPOrdinalLogisticRegression", X, Y3, [0, 1, 2], data_norm=2.0, ways=("plain", "groups", "noise"))
_estimator("skdp.DPGaussianNB", X, Y3, [0, 1, 2])
_estimator("skdp.DPKMeans", X, None, 3, bounds=(-1, 1))
_estimator("skdp.DPIsolationForest", X, None, 20, bounds=(-1, 1))
_estimator("skdp.DPRandomTreesClassifier", X, Y, 20, classes=[0, 1], bounds=(-1, 1))
_estimator("skdp.DPRandomTreesRegressor", X, TARGET, 20, y_bounds=(-2, 2), bounds=(-1, 1))
_estimator("skdp.DPPCA", X, None, 2, data_norm=2.0)
_estimator("skdp.DPStandardScaler", X, None, (-1, 1))
_estimator("skdp.DPQuantileBinner", X, None, 8, bounds=(-1, 1))
_estimator("skdp.DPSimpleImputer", np.where(X > 0.9, np.nan, X), None, bounds=(-1, 1), ways=OF_ROWS)
_estimator("skdp.DPOneHotEncoder", TABLE[["job"]], None, ways=OF_ROWS, sparse_output=False)
_estimator("skdp.DPTableVectorizer", TABLE, None, ways=OF_ROWS, sparse_output=False)
# Without "noise": directions of components are of noise alone there, and other processors turn them.
_estimator(
    "skdp.DPClassMixtureGenerator", X, Y, 3, bounds=(-1, 1), classes=[0, 1],
    ways=("plain", "groups", "add_remove", "weights"),
)  # fmt: skip
_estimator("skdp.DPMarginalSynthesizer", TABLE, LABELS, SCHEMA, classes=[0, 1], ways=OF_ROWS)
_estimator(
    "skdp.DPWGAN", X, Y, (-1, 1), classes=[0, 1], critic_layer_sizes=(8,), generator_layer_sizes=(8,), n_latent=4,
    max_iter=3, ways=("plain", "add_remove", "noise"),
)  # fmt: skip

MORE: dict[str, tuple[str, Any, Any, tuple[Any, ...], dict[str, Any]]] = {
    "DPLogisticRegression sparse": ("skdp.DPLogisticRegression", SPARSE, Y, (), {"classes": [0, 1]}),
    "DPLogisticRegression three classes": ("skdp.DPLogisticRegression", X, Y3, (), {"classes": [0, 1, 2]}),
    "DPLogisticRegression float32": ("skdp.DPLogisticRegression", X.astype(np.float32), Y, (), {"classes": [0, 1]}),
    "DPLogisticRegression lots": (
        "skdp.DPLogisticRegression", X, Y, (), {"classes": [0, 1], "lot_size": 60, "max_iter": 3},
    ),
    "DPLogisticRegression replace_one": (
        "skdp.DPLogisticRegression", X, Y, (), {"classes": [0, 1], "adjacency": "replace_one"},
    ),
    "DPLogisticRegression inference": (
        "skdp.DPLogisticRegression", X, Y, (), {"classes": [0, 1], "data_norm": 2.0, "inference": True, "epsilon": 8.0},
    ),
    "DPLogisticRegression risk": (
        "skdp.DPLogisticRegression", X, Y, (), {"classes": [0, 1], "epsilon": None, "risk": {"advantage": 0.2}},
    ),
    "DPLogisticRegression class weights": (
        "skdp.DPLogisticRegression", X, Y, (), {"classes": [0, 1], "class_weight": {0: 1, 1: 3}},
    ),
    "DPLinearRegression inference": (
        "skdp.DPLinearRegression", X, TARGET, ((-2, 2),), {"data_norm": 2.0, "inference": True, "epsilon": 8.0},
    ),
    "DPMLPClassifier lots": ("skdp.DPMLPClassifier", X, Y, ((6,),), {"classes": [0, 1], "lot_size": 60, "max_iter": 3}),
    "DPRandomTreesClassifier table": ("skdp.DPRandomTreesClassifier", TABLE, LABELS, (20,), {"schema": SCHEMA}),
    "DPStandardScaler estimated bounds": ("skdp.DPStandardScaler", X, None, (), {}),
    "DPTableVectorizer schema": ("skdp.DPTableVectorizer", TABLE, None, (SCHEMA,), {}),
    "DPMarginalSynthesizer without a schema": ("skdp.DPMarginalSynthesizer", TABLE, None, (), {"epsilon": 8.0}),
    "DPPCA whiten": ("skdp.DPPCA", X, None, (2,), {"data_norm": 2.0, "whiten": True}),
}  # fmt: skip
for _name, (_path, _rows, _y, _given, _own) in MORE.items():

    def _more(accountant: Any, path=_path, rows=_rows, y=_y, given=_given, own=_own) -> dict[str, Any]:
        model = _fit(accountant, path, given, own, rows, y)
        found = {**attributes_of(model), **outputs_of(model, rows[:20])}
        return {**found, "table": model.summary().to_frame()} if own.get("inference") else found

    _add(_name, _more)


def _computation(run: Run) -> Run:
    _add(run.__name__.strip("_").replace("_", " "), run)
    return run


def _logistic(accountant: Any = None, **parameters: Any) -> Any:
    own = {"classes": [0, 1], "data_norm": 2.0, "random_state": 1, "delta": 1e-5, "accountant": accountant}
    return made("skdp.DPLogisticRegression", **{**own, **parameters})


# --- compositions ---


@_computation
def pipeline_with_a_budget(accountant: Any) -> dict[str, Any]:
    steps = made("skdp.DPStandardScaler", (-1, 1), random_state=1), _logistic(data_norm=None)
    model = public("skdp.allocate_budget")(make_pipeline(*steps), epsilon=1.0).fit(X, Y)
    return {"scaler": attributes_of(model[0]), "model": attributes_of(model[1]), "p": model.predict_proba(X[:20])}


def _tabular(kind: str, y: Any, **parameters: Any) -> Run:
    def run(accountant: Any) -> dict[str, Any]:
        model = made("skdp.tabular_pipeline", kind, delta=1e-5, **parameters)
        model.set_params(**{name: 1 for name in model.get_params() if name.endswith("random_state")}).fit(TABLE, y)
        method = model.predict_proba if kind == "classifier" else model.predict
        return {"model": attributes_of(model[-1]), "outputs": method(TABLE[:20])}

    return run


_add("tabular pipeline with a schema", _tabular("classifier", LABELS, schema=SCHEMA, classes=[0, 1]))
_add("tabular pipeline without a schema", _tabular("classifier", LABELS, epsilon=8.0, classes=[0, 1]))
_add("tabular pipeline regressor", _tabular("regressor", TARGET, schema=SCHEMA, y_bounds=(-2, 2)))


def _search(path: str, **parameters: Any) -> Run:
    def run(accountant: Any) -> dict[str, Any]:
        model = made(path, _logistic(max_iter=5), {"alpha": [0.0, 0.1]}, random_state=1, **parameters).fit(X, Y)
        return attributes_of(model)

    return run


_add("DPGridSearchCV random stopping", _search("skdp.DPGridSearchCV"))
_add("DPGridSearchCV compose", _search("skdp.DPGridSearchCV", strategy="compose", epsilon=8.0))
_add("DPGridSearchCV log loss", _search("skdp.DPGridSearchCV", scoring="neg_log_loss", epsilon=8.0))
_add("DPRandomizedSearchCV", _search("skdp.DPRandomizedSearchCV", n_iter=2))
_add("DPRandomizedSearchCV compose", _search("skdp.DPRandomizedSearchCV", n_iter=2, strategy="compose", epsilon=8.0))
_add("DPRandomizedSearchCV without a refit", _search("skdp.DPRandomizedSearchCV", n_iter=2, refit=False))


def _around(path: str, **parameters: Any) -> Run:
    def run(accountant: Any) -> dict[str, Any]:
        fit = {"groups": GROUPS} if parameters.get("by_groups") else {}
        own = {name: each for name, each in parameters.items() if name != "by_groups"}
        model = made(path, _logistic(), random_state=1, **own).fit(X, Y, **fit)
        return {**attributes_of(model), **outputs_of(model, X[:20])}

    return run


for _method in ("sigmoid", "isotonic", "temperature"):
    _add(f"DPCalibratedClassifier {_method}", _around("skdp.DPCalibratedClassifier", method=_method, classes=[0, 1]))
_add("DPCalibratedClassifier groups", _around("skdp.DPCalibratedClassifier", classes=[0, 1], by_groups=True))
_add("DPThresholdClassifier cost", _around("skdp.DPThresholdClassifier", cost=[[0, 1], [3, 0]]))
_add("DPThresholdClassifier precision", _around("skdp.DPThresholdClassifier", min_precision=0.8))
_add("DPThresholdClassifier recall", _around("skdp.DPThresholdClassifier", min_recall=0.8))


@_computation
def cross_validate(accountant: Any) -> dict[str, Any]:
    found = public("skdp.model_selection.cross_validate")(_logistic(epsilon=None), X, Y, epsilon=8.0, cv=3)
    return {"found": str(type(found).__name__), "names": sorted(found) if isinstance(found, dict) else ""}


# --- refits, checkpoints, rows elsewhere ---


@_computation
def logistic_partial_fit_twice(accountant: Any) -> dict[str, Any]:
    return attributes_of(_logistic(accountant).partial_fit(X, Y).partial_fit(X, Y))


@_computation
def logistic_warm_start(accountant: Any) -> dict[str, Any]:
    model = _logistic(accountant, warm_start=True).fit(X, Y)
    return attributes_of(model.set_params(random_state=2).fit(X, Y))


@_computation
def logistic_checkpoint(accountant: Any) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        return attributes_of(_logistic(accountant, checkpoint=str(Path(folder) / "run")).fit(X, Y))


@_computation
def logistic_memory_map(accountant: Any) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "rows.npy", X)
        return attributes_of(_logistic(accountant).fit(np.load(Path(folder) / "rows.npy", mmap_mode="r"), Y))


@_computation
def logistic_parquet(accountant: Any) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        pd.DataFrame(X, columns=list("abcd")).assign(y=Y).to_parquet(path)
        return attributes_of(_logistic(accountant).fit(public("skdp.datasets.TableRows")(path), "y"))


@_computation
def logistic_dask(accountant: Any) -> dict[str, Any]:
    import dask.dataframe

    frame = dask.dataframe.from_pandas(pd.DataFrame(X, columns=list("abcd")).assign(y=Y), npartitions=3)
    return attributes_of(_logistic(accountant).fit(frame, "y"))


# --- evaluation ---

_SCORES = np.clip(0.5 + 0.4 * X[:, 0] + 0.05 * X[:, 1], 0.0, 1.0)


def _evaluation(score: Any, y: Any, *methods: str, **given: Any) -> Run:
    def run(accountant: Any) -> dict[str, Any]:
        ledger = None if "groups" in given else accountant
        found = public("skdp.evaluate")(None, score, y, epsilon=1.0, random_state=1, accountant=ledger, **given)
        more = {name: getattr(found, name)() for name in methods}
        return {"summary": {name: list(each) for name, each in found.summary().items()}, **attributes_of(found)} | {
            name: list(each)[:3] for name, each in more.items()
        }

    return run


_add("evaluate two classes", _evaluation(_SCORES, Y, "recall", "f1", "roc_curve"))
_add("evaluate groups", _evaluation(_SCORES, Y, groups=GROUPS))
_add("evaluate weights", _evaluation(_SCORES, Y, sample_weight=WEIGHTS, weight_bound=1.0))
_add("evaluate subgroups", _evaluation(_SCORES, Y, by=TABLE["job"], categories=["a", "b", "c"]))
_add("evaluate several classes", _evaluation(np.roll(Y3, 1), Y3, classes=[0, 1, 2]))
_add("evaluate one against the rest", _evaluation(np.eye(3)[Y3] * 0.7 + 0.1, Y3, classes=[0, 1, 2], one_vs_rest=True))
_add("evaluate regression", _evaluation(X[:, 0], TARGET, y_bounds=(-2, 2)))

_OF_SCORES = [
    "accuracy_score", "average_precision_score", "brier_score_loss", "calibration_curve", "confusion_matrix",
    "f1_score", "log_loss", "precision_recall_curve", "precision_score", "recall_score", "roc_auc_score", "roc_curve",
]  # fmt: skip
_OF_ERRORS = ["mean_absolute_error", "mean_squared_error", "r2_score"]


def _metric(name: str, *given: Any, **own: Any) -> None:
    def run(accountant: Any) -> dict[str, Any]:
        path = f"skdp.metrics.private_{name}"
        found = public(path)(*given, epsilon=1.0, random_state=1, accountant=accountant, **own)
        return {"found": [np.asarray(each) for each in list(found)[:4]]}

    _add(f"private {name}", run)


for _name in _OF_SCORES:
    _metric(_name, Y, _SCORES)
for _name in _OF_ERRORS:
    _metric(_name, TARGET, X[:, 0], y_bounds=(-2, 2))

# --- statistics and synthesis ---


def _description(**given: Any) -> Run:
    def run(accountant: Any) -> dict[str, Any]:
        ledger = None if "groups" in given else accountant
        found = public("skdp.describe")(TABLE, delta=1e-5, random_state=1, accountant=ledger, **given)
        return {"frame": found.to_frame().reset_index(), "epsilon": found.epsilon_}

    return run


_add("describe", _description(schema=SCHEMA))
_add("describe without a schema", _description(epsilon=8.0))
_add("describe groups", _description(schema=SCHEMA, groups=GROUPS))
_add("describe weights", _description(schema=SCHEMA, sample_weight=WEIGHTS, weight_bound=1.0))
_add("describe subgroups", _description(schema=SCHEMA, by="job"))


def _statistic(name: str, *given: Any, **own: Any) -> None:
    def run(accountant: Any) -> dict[str, Any]:
        settings = {"epsilon": 1.0, "random_state": 1, "accountant": accountant, **own}
        found = public(f"skdp.statistics.private_{name}")(*given, **settings)
        return {"found": str(found) if not isinstance(found, tuple) else list(found)[:4]}

    _add(f"private {name}", run)


_statistic("count", Y == 1)
_statistic("mean", TARGET, bounds=(-2, 2))
_statistic("sum", TARGET, bounds=(-2, 2))
_statistic("quantile", TARGET, 0.5, bounds=(-2, 2))
_statistic("histogram", TARGET, bounds=(-2, 2))
_statistic("top_k", TABLE["job"], 2, categories=["a", "b", "c"])
_statistic("correlation", X[:, 0], TARGET, bounds=((-1, 1), (-2, 2)))
_statistic("crosstab", TABLE["job"], Y, categories=(["a", "b", "c"], [0, 1]))
_statistic("chi2_test", TABLE["job"], Y, categories=(["a", "b", "c"], [0, 1]))
_statistic("mean_difference", TARGET, Y, bounds=(-2, 2), categories=[0, 1])
_statistic("two_sample_test", TARGET, Y, bounds=(-2, 2), categories=[0, 1])


@_computation
def synthesize(accountant: Any) -> dict[str, Any]:
    rows = made("skdp.synthesize", TABLE, schema=SCHEMA, n_samples=80, random_state=1, accountant=accountant)
    return {"shape": list(rows.shape), "types": rows.dtypes.astype(str).to_dict()}  # rows are drawn anew each time


@_computation
def dp_bounds(accountant: Any) -> dict[str, Any]:
    found = public("skdp.preprocessing.dp_bounds")(
        TABLE[["age"]].to_numpy(float), epsilon=1.0, random_state=1, accountant=accountant
    )
    return {"found": list(found)}


# --- public transformers and accounting ---


@_computation
def public_trees_embedding(accountant: Any) -> dict[str, Any]:
    return {"rows": made("skdp.PublicTreesEmbedding", 10, bounds=(-1, 1), random_state=0).fit(X).transform(X[:20])}


@_computation
def scattering_transformer(accountant: Any) -> dict[str, Any]:
    return {"rows": made("skdp.ScatteringTransformer", (8, 8), J=1, L=4).fit(IMAGES).transform(IMAGES[:5])}


@_computation
def patch_transformer(accountant: Any) -> dict[str, Any]:
    return {"rows": made("skdp.PatchTransformer", (8, 8), n_filters=16, patch_size=3).fit(IMAGES).transform(IMAGES[:5])}


@_computation
def rehearse(accountant: Any) -> dict[str, Any]:
    found = made("skdp.rehearse", _logistic(accountant=None), 4, n=500, epsilons=[1.0, 8.0], n_repeats=1)
    return {"found": [line for line in str(found).splitlines() if not line.startswith("A fit takes")]}


_EVENTS = {
    "gaussian": lambda a: a.GaussianDpEvent(2.0),
    "subsampled": lambda a: a.SelfComposedDpEvent(a.PoissonSampledDpEvent(0.01, a.GaussianDpEvent(1.0)), 500),
    "laplace": lambda a: a.LaplaceDpEvent(1.5),
    "discrete gaussian": lambda a: a.DiscreteGaussianDpEvent(3.0),
}
for _kind, _event in _EVENTS.items():

    def _epsilon(accountant: Any, event=_event) -> dict[str, Any]:
        import skdp.accounting as a

        found = {method: a.get_epsilon(event(a), 1e-5, method=method) for method in ("pld", "rdp")}
        return {**found, "delta": a.get_delta(event(a), 1.0)}

    _add(f"get_epsilon {_kind}", _epsilon)


@_computation
def calibrate_noise_multiplier(accountant: Any) -> dict[str, Any]:
    from skdp import accounting

    def event(noise: float) -> Any:
        return accounting.SelfComposedDpEvent(
            accounting.PoissonSampledDpEvent(0.02, accounting.GaussianDpEvent(noise)), 200
        )

    return {"noise": accounting.calibrate_noise_multiplier(event, 1.0, 1e-5)}
