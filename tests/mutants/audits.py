"""Faults that audits detect without knowing the code, and the audits of each.

An audit fits an estimator with and without a record that is far from the others, and compares what is released with the
privacy cost that is stated. `python tests/mutants/audits.py CASE...` audits the package that is on the path, case by
case, until one finds something, and prints it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from typing import Any

DETECTED = {
    "binner": "quantile-edges-from-exact-counts",
    "classes": "kernel-softmax-clip-per-class",
    "grid search, random search": "search-scores-without-noise search-refit-not-charged",
    "inference": "inference-scores-not-charged inference-scores-half-noise",
    "isolation": "cell-counts-of-one-column",
    "isolation replace": "histogram-replace-one-single-cell",
    "isolation groups": "cell-counts-group-by-row",
    "kmeans": (
        "kmeans-offsets-not-clipped kmeans-counts-outside-sensitivity kmeans-leaf-counts-outside-sensitivity "
        "kmeans-tree-by-exact-counts kmeans-steps-share-noise"
    ),
    "logistic few": "empty-lot-without-noise",
    "logistic full, logistic lots": (
        "noise-without-sensitivity gaussian-event-of-more-noise one-normal-for-all-coordinates "
        "gaussian-noise-not-rounded kernel-linear-no-clipping kernel-clip-ignores-intercept "
        "kernel-logistic-unclipped-scale noise-repeated-each-step dpsgd-event-one-step-fewer "
        "pipeline-steps-share-stream"
    ),
    "logistic merged": "merged-rows-clip-grows-with-count merged-rows-one-lot-for-all-steps",
    "logistic long groups": "group-long-not-clipped",
    "logistic lots": "lot-size-from-private-n",
    "logistic lots, logistic full": (
        "poisson-lots-of-fixed-size poisson-lots-of-all-rows poisson-lots-at-larger-rate full-batch-event-as-sampled "
        "kernel-sampled-row-off-by-one noise-divided-by-root-of-lot divisor-realized-lot"
    ),
    "logistic lots groups": "group-rows-drawn",
    "logistic replace": "epsilon-replace-one-as-add-remove noise-calibrated-without-adjacency",
    "logistic groups": "group-clipped-to-twice-the-norm kernel-group-sum-not-clipped",
    "marginals, marginals add": "tables-sensitivity-of-one-set tables-not-centered tables-without-noise",
    "marginals estimated": "synthesizer-schema-not-charged",
    "marginals replace": "tables-replace-one-half-sensitivity",
    "marginals rounds": "pair-scores-sensitivity-of-one pair-scores-not-charged selected-tables-noise-of-whole-budget",
    "marginals groups": "tables-group-by-row synthesizer-ignores-groups",
    "marginals groups at 50": "tables-noise-ignores-reach",
    "mixture": (
        "class-mixture-count-sensitivity-of-one-table class-mixture-noise-of-whole-budget class-mixture-without-noise"
    ),
    "mixture rounds": "class-mixture-count-outside-sensitivity",
    "nb": "naive-bayes-squares-outside-sensitivity naive-bayes-values-not-clipped fit-release-without-noise",
    "nb replace": "naive-bayes-replace-one-as-removal",
    "nb groups, nb mixed groups": "vector-sum-group-by-row",
    "network, network layers": "kernel-network-clip-last-layer-only network-layer-bounds-at-full-norm",
    "network groups": "network-group-sum-not-clipped",
    "newton, poisson, ordinal": "newton-rows-not-clipped newton-steps-share-noise newton-step-without-noise",
    "newton groups": "newton-group-by-row",
    "pca": "moments-sensitivity-without-mean kernel-gram-unclipped moments-ignore-sum-of-rows",
    "pca add, pca replace": "moments-sensitivity-always-halved",
    "pca groups": "products-of-group-by-row",
    "random search lots": "search-scores-not-charged",
    "ridge": "targets-not-clipped",
    "ridge add": "least-squares-divisor-from-private-n",
    "ridge groups, pca groups": "group-average-weights-above-one group-moments-clipped-by-row",
    "ridge, ridge replace": "products-of-replace-one-for-all",
    "scaler groups, marginals groups": "histogram-group-not-clipped",
    "scaler, imputer, binner, vectorizer": "histogram-sensitivity-of-one-column column-sums-sensitivity-of-counts",
    "tree regressor, tree regressor replace": "sums-beside-steps-without-noise",
    "tree regressor groups": "intercept-means-group-by-row",
    "trees classes, classes": "kernel-loss-clip-per-output",
    "trees groups": "lookup-group-sum-not-clipped tree-cell-counts-group-by-row",
    "trees, tree regressor, trees lots": "intercept-means-not-charged",
    "trees, trees lots": "lookup-rows-half-norm lookup-residuals-not-clipped",
    "trees, trees replace": "tree-cell-counts-sensitivity-of-one",
    "vectorizer": "vectorizer-less-noise-than-charged",
    "wgan": (
        "kernel-critic-clip-per-layer kernel-critic-penalty-outside-norm gan-noise-divided-by-lot "
        "gan-class-counts-without-noise gan-class-counts-not-charged"
    ),
}
"""Cases -> names of the faults that they detect."""

CASES_OF = {name: cases.split(", ") for cases, names in DETECTED.items() for name in names.split()}
SECONDS = 300


def audited(target: Any, environment: dict[str, str], cases: list[str]) -> str:
    """Return what the audits of some cases find in a copy of the project."""
    command = [sys.executable, str(target / "tests" / "mutants" / "audits.py"), *cases]
    try:
        done = subprocess.run(
            command, cwd=target, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"not detected within {SECONDS} s"
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return next((f"detected: {each}" for each in found if each.get("findings")), f"not detected: {found}")


def audit_of(case: str) -> Any:
    """Audit a case: a name of `_makers`, and how its rows or parameters differ from the usual."""
    import numpy as np

    from skdp.audit import audit_estimator
    from skdp.audit.worst_case import worst_case

    name = max((each for each in _makers() if f"{case} ".startswith(f"{each} ")), key=len)
    words = case[len(name) :].split()
    settings: dict[str, Any] = {"epsilon": float(words.pop()) if "at" in words else 1.0}
    if "replace" in words:  # else records are added
        settings["adjacency"] = "replace_one"
    estimator, given = _makers()[name](**settings), {}
    if "groups" in words:  # groups of rows, the first with the far record several times
        X, y, _, canaries = worst_case(estimator)
        size = 2048 if "long" in words else 4
        turn = (canaries * size)[:size] if "mixed" in words else [canaries[0]] * size
        X = np.concatenate([*(each.X for each in turn), X])
        y = None if y is None else np.concatenate([*(each.y for each in turn), y])
        given = {"X": X, "y": y, "groups": np.arange(len(X)) // size, "canary": 0}
    return audit_estimator(estimator, **given, max_seconds=SECONDS)


def _makers() -> dict[str, Any]:
    """Return functions of parameters that make the estimators."""
    from functools import partial as p

    import skdp

    two, unit, y = {"classes": [0, 1]}, {"bounds": (-1.0, 1.0)}, {"y_bounds": (-1.0, 1.0)}
    three, lots = {"classes": [0, 1, 2]}, {"sampling_rate": 0.05, "max_iter": 20}
    logistic, network = p(skdp.DPLogisticRegression, **two), p(skdp.DPMLPClassifier, (16,), **two)
    trees, marginals = p(skdp.DPRandomTreesClassifier, **unit), p(skdp.DPMarginalSynthesizer, **two)
    grid = {"alpha": [0.0, 0.1]}
    return {
        "logistic full": p(logistic, sampling_rate=1.0), "logistic lots": p(logistic, **lots),
        "logistic few": p(logistic, sampling_rate=0.005, max_iter=2), "logistic": p(logistic, sampling_rate=1.0),
        "logistic merged": p(logistic, merge_equal_rows=True, **lots), "network": network,
        "network layers": p(network, clipping="per_layer"), "classes": p(skdp.DPLogisticRegression, **three),
        "newton": p(logistic, inference=True), "poisson": p(skdp.DPPoissonRegressor, y_bounds=(0.0, 10.0)),
        "ordinal": p(skdp.DPOrdinalLogisticRegression, **three), "ridge": p(skdp.DPRidge, **y),
        "inference": p(skdp.DPLinearRegression, (-1.0, 1.0), inference=True), "pca": p(skdp.DPPCA, 5),
        "nb": p(skdp.DPGaussianNB, **two, **unit), "kmeans": p(skdp.DPKMeans, 3, **unit),
        "trees": p(trees, **two), "trees classes": p(trees, **three), "trees lots": p(trees, **two, sampling_rate=0.05),
        "tree regressor": p(skdp.DPRandomTreesRegressor, **y, **unit), "isolation": p(skdp.DPIsolationForest, **unit),
        "scaler": p(skdp.DPStandardScaler, **unit), "binner": p(skdp.DPQuantileBinner, 4, **unit),
        "imputer": p(skdp.DPSimpleImputer, "mean", **unit), "vectorizer": skdp.DPTableVectorizer,
        "marginals": p(marginals, **unit), "marginals rounds": p(marginals, **unit, pairs="select"),
        "marginals estimated": marginals,
        "mixture": p(skdp.DPClassMixtureGenerator, **two, **unit),
        "mixture rounds": p(skdp.DPClassMixtureGenerator, 4, **two, **unit),
        "wgan": p(
            skdp.DPWGAN, critic_layer_sizes=16, generator_layer_sizes=16, max_iter=10, **two, **unit
        ),
        "grid search": p(skdp.DPGridSearchCV, logistic(), grid, strategy="compose"),
        "random search": p(skdp.DPRandomizedSearchCV, logistic(), grid, n_iter=2),
        "random search lots": p(skdp.DPRandomizedSearchCV, logistic(**lots), grid, n_iter=2),
    }  # fmt: skip


def main() -> None:
    from skdp.audit import replay

    replay._ENOUGH, replay._PATIENCE = 8_000, 60.0  # normals, and seconds for further canaries: machines are busy
    warnings.simplefilter("ignore")
    for case in sys.argv[1:]:
        try:
            found = audit_of(case)
        except Exception as error:
            print(json.dumps({"case": case, "error": f"{type(error).__name__}: {error}"[:300]}), flush=True)
            continue
        kinds = sorted({each.kind for each in found.findings})
        print(json.dumps({"case": case, "findings": kinds}), flush=True)
        if kinds:
            break


if __name__ == "__main__":
    main()
