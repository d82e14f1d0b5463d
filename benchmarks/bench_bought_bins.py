"""Privately estimated bins compared with bins between the true bounds, before logistic regression.

    SKDP_DATA=... python benchmarks/bench_bought_bins.py [--seeds 6]

The purchase takes 15 % of mu^2, and the regression the rest; bins between true bounds cost nothing there. Columns are
the numeric ones of Adult (eight columns of words are counted in the same release) and of credit default.
"""

from __future__ import annotations

import argparse
import math
import os
import pathlib
import warnings

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from skdp import DPLogisticRegression
from skdp.accounting.formulas.gaussian import gaussian_mu
from skdp.mechanisms.streams import SecretStream
from skdp.preprocessing.histogram_query import Purchase

SHARE, DELTA, BINS = 0.15, 1e-6, 16


def tables():
    """Rows, labels and the number of columns of words, by name."""
    place = pathlib.Path(os.environ["SKDP_DATA"])
    adult = pd.read_csv(place / "adult_train.csv.gz")
    credit = pd.read_csv(place / "credit_default.csv.gz").drop(columns="ID", errors="ignore")
    label = "default_payment_next_month"
    numbers = adult.drop(columns="income").select_dtypes("number").to_numpy(float)
    yield "Adult", numbers, (adult["income"] == ">50K").to_numpy().astype(int), 8
    yield "credit default", credit.drop(columns=label).to_numpy(float), credit[label].to_numpy(), 0


def one_hot(X, edges):
    """One column for each bin of each column."""
    return np.hstack([np.eye(len(e) + 1)[np.searchsorted(e, x, side="right")] for x, e in zip(X.T, edges, strict=True)])


def auroc(X, y, edges, epsilon, seed, train, test):
    rows = one_hot(X, edges)
    norm = math.sqrt(X.shape[1])
    model = DPLogisticRegression(classes=[0, 1], epsilon=epsilon, delta=DELTA, data_norm=norm, random_state=seed)
    return roc_auc_score(y[test], model.fit(rows[train], y[train]).decision_function(rows[test]))


def buy(X, n_words, mu, seed):
    """Edges of all columns."""
    purchase = Purchase(X.shape[1], n_words, BINS, 30, "zero_out", 0.01 * DELTA if n_words else 0.0)
    words = [(np.zeros(len(X), int), ["a"])] * n_words
    noise = 1.0 / (mu * math.sqrt(SHARE))
    return purchase.release(list(X.T), words, noise, len(X), SecretStream.from_random_state(seed, "benchmark")).edges


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=6)
    seeds = parser.parse_args().seeds
    warnings.simplefilter("ignore")
    print("table            epsilon  bought  true bounds  bins a column")
    for name, X, y, n_words in tables():
        for epsilon in (1.0, 0.1):
            found = []
            for seed in range(seeds):
                places = np.random.default_rng(seed).permutation(len(X))
                train, test = np.split(places, [int(0.8 * len(X))])
                bought = buy(X[train], n_words, gaussian_mu(epsilon, DELTA), seed)
                even = [np.linspace(x.min(), x.max(), BINS + 1)[1:-1] for x in X.T]
                left = epsilon * math.sqrt(1.0 - SHARE)
                found.append(
                    (
                        auroc(X, y, bought, left, seed, train, test),
                        auroc(X, y, even, epsilon, seed, train, test),
                        np.mean([len(edges) + 1 for edges in bought]),
                    )
                )
            figures = np.mean(found, axis=0)
            print(f"{name:15}  {epsilon:7}  {figures[0]:.4f}  {figures[1]:11.4f}  {figures[2]:.1f}")


if __name__ == "__main__":
    main()
