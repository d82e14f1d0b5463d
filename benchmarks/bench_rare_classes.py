"""Log loss, calibration and ROC AUC of classifiers with a rare class.

    python benchmarks/bench_rare_classes.py [--models trees,logistic,network] [--epsilons 0.3,1,4] [--seeds 5]
        [--cells 0.003x28000,...] [--label after] [--out FILE]

A cell is a prevalence and a number of records. Tables have eight columns from -1 to 1, of which two and a product of
two others matter, and a schema. Each seed draws a table, 40,000 other records for the scores, and the noise. The
prevalence "classes" stands for four classes, the rarest of about 3%. The log loss is divided by that of the exact
prevalence in the table, and the mean probability of the last class by its prevalence among the other records. One line
of JSON for each cell, model and epsilon is appended to FILE, with means and standard errors over the seeds; lines of
the label that are there already are kept. No rule was chosen on these tables.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import warnings

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.metrics import log_loss, roc_auc_score

import skdp
from skdp.linear_model import DPLogisticRegression
from skdp.neural_network import DPMLPClassifier

MODELS = {"trees": lambda: "classifier", "logistic": DPLogisticRegression, "network": DPMLPClassifier}
CELLS = ("0.003x28000", "0.01x28000", "0.05x28000", "0.5x28000", "0.003x140000")
COLUMNS = [f"x{j}" for j in range(8)]
N_TEST = 40_000


def draw(prevalence, n, rng):
    """A table and its classes."""
    X = rng.uniform(-1.0, 1.0, (n, 8))
    signal = 1.4 * X[:, 0] - X[:, 1] + 1.6 * X[:, 2] * X[:, 3]
    if prevalence == "classes":
        scores = np.c_[signal, 0.8 * X[:, 4], -signal, X[:, 5] - X[:, 0]] + [1.5, 1.0, 0.0, -1.7]
        return pd.DataFrame(X, columns=COLUMNS), (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    sample = draw("classes", 100_000, np.random.default_rng(0))[0].to_numpy()
    fixed = 1.4 * sample[:, 0] - sample[:, 1] + 1.6 * sample[:, 2] * sample[:, 3]
    intercept = brentq(lambda b: expit(fixed + b).mean() - float(prevalence), -20.0, 20.0)
    return pd.DataFrame(X, columns=COLUMNS), (rng.random(n) < expit(signal + intercept)).astype(int)


def scores(model, epsilon, prevalence, n, seed):
    """Log loss over that of a constant, mean probability over prevalence, and AUROC, of the rarest class."""
    rng = np.random.default_rng([100 + seed, n])
    (X, y), (X_test, y_test) = draw(prevalence, n, rng), draw(prevalence, N_TEST, rng)
    classes = range(4 if prevalence == "classes" else 2)
    pipeline = skdp.tabular_pipeline(
        MODELS[model](), schema=dict.fromkeys(COLUMNS, (-1, 1)), epsilon=epsilon, delta=1e-6, classes=classes
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = pipeline.fit(X, y).predict_proba(X_test).astype(float)
    found /= found.sum(axis=1, keepdims=True)  # of networks, single precision
    constant = np.bincount(y, minlength=len(classes)) / n
    relative = log_loss(y_test, found, labels=list(classes)) / log_loss(
        y_test, np.tile(constant, (N_TEST, 1)), labels=list(classes)
    )
    rare = (y_test == classes[-1]).astype(int)
    return relative, found[:, -1].mean() / rare.mean(), roc_auc_score(rare, found[:, -1])


def measure(model, epsilon, prevalence, n, n_seeds):
    found = np.array([scores(model, epsilon, prevalence, n, seed) for seed in range(n_seeds)])
    means, errors = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(n_seeds)
    names = ("log loss over constant", "mean probability over prevalence", "AUROC")
    return {name: [round(float(each), 4) for each in pair] for name, *pair in zip(names, means, errors, strict=True)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--epsilons", default="0.3,1,4")
    parser.add_argument("--cells", default=",".join(CELLS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--label", default="")
    parser.add_argument("--out", type=pathlib.Path)
    given = parser.parse_args()
    lines = given.out.read_text().splitlines() if given.out and given.out.exists() else []
    there = {tuple(json.loads(line)[name] for name in ("label", "cell", "model", "epsilon")) for line in lines}
    for cell in given.cells.split(","):
        prevalence, n = cell.split("x")
        for model in given.models.split(","):
            for epsilon in map(float, given.epsilons.split(",")):
                if (key := (given.label, cell, model, epsilon)) in there:
                    continue
                line = dict(zip(("label", "cell", "model", "epsilon"), key, strict=True))
                line |= measure(model, epsilon, prevalence, int(n), given.seeds)
                print(json.dumps(line), flush=True)
                if given.out:
                    with given.out.open("a") as file:
                        file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
