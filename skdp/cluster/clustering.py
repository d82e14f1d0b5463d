"""Which releases find clusters of rows in a cube, and with which shares of the budget."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.cluster import k_means
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from skdp._typing import Doubles
from skdp.accounting import DpEvent, GaussianDpEvent, compose
from skdp.cluster import noisy_tree
from skdp.cluster.noisy_moments import RowMoments, release_moments
from skdp.cluster.noisy_steps import STEP_RADIUS, Clusters, run_steps
from skdp.cluster.rows import SharedNoise, WeightedRows

MOMENTS, TREE, STEPS = 0.15, 0.45, 0.40
"""Shares of mu**2. Others were not tried on the tables of benchmarks/bench_clusters.py."""

_STARTS = 100  # of k-means on leaves, which are few: with 10 of them 64 clusters are often found wrong
_LEAST_SPREAD = 0.05
"""Least part of the variance that is taken to be within clusters: noise may leave no difference of two variances."""


@dataclass(frozen=True)
class Clustering:
    """How clusters are found. All of its fields are public.

    Parameters
    ----------
    n_clusters, n_steps : int
    adjacency : {"zero_out", "add_remove", "replace_one"}

    Notes
    -----
    **Guarantees.** `find` makes the releases whose event `event_at` states for their noise multiplier, or fewer. All
    that it returns is a function of these releases, of its coins and of public numbers.

    Proof. Moments, the counts of each level of the tree, the sums of its leaves and each step are one Gaussian release
    each, of a fixed part of mu**2. Which function of the rows one is of depends on earlier releases and on coins alone,
    its sensitivity holds for every such function, and its noise multiplier is fixed beforehand. So the event is their
    composition (Dong, Roth & Su 2022, corollary 2), whatever the tree is cut into.
    """

    n_clusters: int
    n_steps: int
    adjacency: str

    def event_at(self, noise_multiplier: float) -> DpEvent:
        """What the releases cost: as much as one Gaussian release of this noise."""
        levels = noisy_tree.n_levels(self.n_clusters)
        shares = [MOMENTS, *noisy_tree.shares(TREE, levels), *[STEPS / self.n_steps] * self.n_steps]
        return compose([GaussianDpEvent(noise_multiplier / math.sqrt(share)) for share in shares])

    def find(self, rows: WeightedRows, most: float, releases: SharedNoise, coins: np.random.Generator) -> Clusters:
        """Return centers of clusters; `most` is a public bound on the sum of weights."""
        levels = noisy_tree.n_levels(self.n_clusters)
        moments = release_moments(rows, self.adjacency, most, releases, MOMENTS)
        leaves = noisy_tree.grow(rows, moments, levels, self.adjacency, releases, TREE, coins)
        centers, radius = start(leaves, moments, self.n_clusters, coins)
        return run_steps(rows, centers, radius, self.n_steps, self.adjacency, releases, STEPS)


def start(leaves: noisy_tree.Leaves, moments: RowMoments, k: int, coins: np.random.Generator) -> tuple[Doubles, float]:
    """Cluster noisy leaves; return k centers in the cube, and the radius at which the first step clips offsets."""
    centers, variance = np.empty((0, len(moments.mean))), moments.variance
    if len(leaves.counts):
        seed = int(coins.integers(2**31))
        with threadpool_limits(1), warnings.catch_warnings():  # sums of several threads differ from run to run
            warnings.simplefilter("ignore", ConvergenceWarning)  # of leaves at one point
            few = min(k, len(leaves.counts))
            centers, codes, _ = k_means(
                leaves.means, few, sample_weight=leaves.counts, n_init=_STARTS, random_state=seed
            )
        distances = ((centers[codes] - moments.mean) ** 2).sum(axis=1)
        between = float(np.average(distances, weights=leaves.counts))
        variance = max(variance - between, _LEAST_SPREAD * variance)
    drawn = coins.standard_normal((k - len(centers), len(moments.mean))) @ moments.root.T
    return np.clip(np.concatenate([centers, moments.mean + drawn]), -1.0, 1.0), STEP_RADIUS * math.sqrt(variance)
