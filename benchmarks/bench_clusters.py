#!/usr/bin/env python3
"""Inertia of DPKMeans, scikit-learn's k-means and diffprivlib's k-means.

Reads adult_train.csv.gz, pums_fulton_ga.csv.gz, mnist.npz and others from the folder that SKDP_DATA names. A cost is
the sum of squared distances to the nearest center, of columns scaled to [-1, 1] by public bounds, divided by that of
the best of three runs of scikit-learn. Settings were chosen by looking at Adult, Fulton, MNIST and blobs; Colorado,
credit default and California housing were looked at afterwards. The 50 components of MNIST are taken as public; with
`--estimated-basis` a pipeline estimates them, and its centers are compared in the public ones.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from environments import default_folder, python_of
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline

from skdp import DPPCA, DPKMeans, allocate_budget

DELTA = 1e-6
NORM = 10.0  # of an image, whose pixels are in [0, 1]
EPSILONS = (0.5, 1.0, 4.0)
Rows = tuple[np.ndarray, int]

PEER = """
import json, sys, time, warnings
import numpy as np
from diffprivlib.models import KMeans
warnings.simplefilter("ignore")
path, k, epsilon, seeds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
X, found = np.load(path), []
for seed in range(seeds):
    start = time.perf_counter()
    model = KMeans(k, epsilon=epsilon, bounds=(-1.0, 1.0), random_state=seed).fit(X)
    found.append((model.cluster_centers_.tolist(), time.perf_counter() - start))
print(json.dumps(found))
"""


def table(file: str, bounds: dict[str, tuple[float, float]]) -> Callable[[Path], Rows]:
    def read(folder: Path) -> Rows:
        rows = pd.read_csv(folder / file, usecols=list(bounds))[list(bounds)].dropna().to_numpy(float)
        low, high = np.array(list(bounds.values()), float).T
        return np.clip(2.0 * (rows - low) / (high - low) - 1.0, -1.0, 1.0), 10

    return read


def blobs(k: int) -> Callable[[Path], Rows]:
    def draw(_: Path) -> Rows:
        centers = np.random.default_rng(0).uniform(-0.8, 0.8, (k, 10))
        return np.clip(make_blobs(100_000, centers=centers, cluster_std=0.08, random_state=0)[0], -1.0, 1.0), k

    return draw


def pixels(folder: Path) -> np.ndarray:
    return np.load(folder / "mnist.npz")["x_train"].reshape(-1, 784) / 255.0


def public_basis() -> PCA:
    return PCA(50, svd_solver="covariance_eigh")


def mnist(folder: Path) -> Rows:
    Z = public_basis().fit_transform(pixels(folder))
    return Z / np.abs(Z).max(), 10


TABLES: dict[str, Callable[[Path], Rows]] = {
    "Adult": table("adult_train.csv.gz", {"age": (17, 90), "education-num": (1, 16), "hours-per-week": (1, 99)}),
    "Fulton": table(
        "pums_fulton_ga.csv.gz",
        {
            "age": (18, 93), "educ": (1, 16), "income": (0, 200_000), "sex": (0, 1), "married": (0, 1),
            "children": (0, 1),
        },
    ),
    "MNIST": mnist,
    "16 blobs": blobs(16),
    "64 blobs": blobs(64),
    "Colorado": table(
        "acsincome_2018_colorado.csv.gz", {"AGEP": (17, 94), "SCHL": (1, 24), "WKHP": (1, 99), "SEX": (1, 2)}
    ),
    "credit default": table(
        "credit_default.csv.gz",
        {"AGE": (18, 80), "LIMIT_BAL": (0, 800_000), "BILL_AMT1": (-10_000, 400_000), "PAY_AMT1": (0, 50_000)},
    ),
    "housing": table(
        "california_housing.csv.gz",
        {
            "longitude": (-124.5, -114), "latitude": (32.5, 42), "housing_median_age": (0, 52),
            "median_income": (0, 15),
        },
    ),
}  # fmt: skip


def cost(X: np.ndarray, centers: np.ndarray) -> float:
    return sum(
        float(((part[:, None] - centers) ** 2).sum(axis=2).min(axis=1).sum())
        for part in np.array_split(X, max(1, len(X) // 2000))
    )


def ours(X: np.ndarray, k: int, epsilon: float, seeds: int) -> list[tuple[np.ndarray, float]]:
    found = []
    for seed in range(seeds):
        start = time.perf_counter()
        model = DPKMeans(k, bounds=(-1, 1), epsilon=epsilon, delta=DELTA, random_state=seed).fit(X)
        found.append((model.cluster_centers_, time.perf_counter() - start))
    return found


def with_estimated_basis(folder: Path, seeds: int, out: Path | None) -> None:
    """Costs in the 50 public components of MNIST, of centers that a pipeline finds in 50 private ones."""
    X = pixels(folder)
    basis = public_basis().fit(X)
    Z = basis.transform(X)
    best = KMeans(10, n_init=3, random_state=0).fit(Z).inertia_
    for epsilon in EPSILONS:
        ratios, seconds = [], []
        for seed in range(seeds):
            start = time.perf_counter()
            steps = make_pipeline(
                DPPCA(50, data_norm=NORM, random_state=seed), DPKMeans(10, bounds=(-NORM, NORM), random_state=seed)
            )
            components, clusters = (each for _, each in allocate_budget(steps, epsilon, DELTA).fit(X).steps)
            seconds.append(time.perf_counter() - start)
            centers = components.inverse_transform(clusters.cluster_centers_)
            ratios.append(cost(Z, basis.transform(centers)) / best)
        told(line_of("MNIST, estimated basis", X, 10, epsilon, "skdp", ratios, seconds), out)


def theirs(python: Path, X: np.ndarray, k: int, epsilon: float, seeds: int) -> list[tuple[np.ndarray, float]]:
    with tempfile.TemporaryDirectory() as folder:
        np.save(path := Path(folder) / "rows.npy", X)
        command = [str(python), "-c", PEER, str(path), str(k), str(epsilon), str(seeds)]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [(np.array(centers), seconds) for centers, seconds in json.loads(said)]


def line_of(
    name: str, X: np.ndarray, k: int, epsilon: float, who: str, ratios: list[float], seconds: list[float]
) -> dict[str, object]:
    return {
        "table": name, "n": len(X), "d": X.shape[1], "k": k, "epsilon": epsilon, "who": who,
        "mean": round(float(np.mean(ratios)), 4), "worst": round(max(ratios), 4), "fits": len(ratios),
        "seconds": round(float(np.median(seconds)), 2),
    }  # fmt: skip


def told(line: dict[str, object], out: Path | None) -> None:
    print(json.dumps(line), flush=True)
    if out is not None:
        with out.open("a") as file:
            file.write(json.dumps(line) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("SKDP_DATA"), help="folder of the tables")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--tables", nargs="*", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--estimated-basis", action="store_true", help="MNIST alone, with estimated components")
    parser.add_argument("--peer", help="Python with diffprivlib; by default that of environments.py")
    parser.add_argument("--out", type=Path, help="file to which each result is added as a line of JSON")
    arguments = parser.parse_args()
    if arguments.data is None:
        sys.exit("SKDP_DATA is not set: name the folder of the tables with --data or SKDP_DATA.")
    warnings.simplefilter("ignore")  # seeds are told of, and meant here
    if arguments.estimated_basis:
        with_estimated_basis(Path(arguments.data), arguments.seeds, arguments.out)
        return
    peer = Path(arguments.peer) if arguments.peer else python_of("diffprivlib", default_folder())
    for name in arguments.tables:
        X, k = TABLES[name](Path(arguments.data))
        best = KMeans(k, n_init=3, random_state=0).fit(X).inertia_
        for epsilon in EPSILONS:
            fits = {"skdp": ours(X, k, epsilon, arguments.seeds)}
            if peer is not None:
                fits["diffprivlib"] = theirs(peer, X, k, epsilon, min(3, arguments.seeds))
            for who, found in fits.items():
                ratios = [cost(X, centers) / best for centers, _ in found]
                told(line_of(name, X, k, epsilon, who, ratios, [seconds for _, seconds in found]), arguments.out)


if __name__ == "__main__":
    main()
