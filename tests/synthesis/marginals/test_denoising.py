"""Interactions that are shrunk along the main directions of their columns: what goes, what stays, and when."""

import itertools

import numpy as np

from skdp.mechanisms.bounded_sum import centered
from skdp.synthesis.marginals import denoising
from skdp.synthesis.marginals.contingency_tables import Interaction
from skdp.synthesis.marginals.denoising import targets_of

LEVELS = (12, 10, 9, 8, 2)


def tables_of(deviation, rng):
    """Exact and noisy tables of columns that depend on one hidden variable of six values, as shares of the rows."""
    components = [rng.dirichlet(np.ones(size), 6) for size in LEVELS]
    sets = [*itertools.combinations(range(5), 1), *itertools.combinations(range(5), 2)]
    sets += [(i, j, 4) for i, j in itertools.combinations(range(4), 2)]
    letters = "abc"
    exact = {
        columns: np.einsum(
            ",".join("k" + letters[t] for t in range(len(columns))) + "->" + letters[: len(columns)],
            *(components[j] for j in columns),
        )
        / 6
        for columns in sets
    }
    noisy = {
        columns: Interaction(centered(table + deviation * rng.normal(size=table.shape)), deviation)
        for columns, table in exact.items()
    }
    return exact, noisy


def squared_error(exact, found):
    return float(np.sum([((exact[columns] - table) ** 2).sum() for columns, table in found.items()]))


def test_pairs_and_triples_are_nearer_to_the_truth_than_by_themselves(monkeypatch):
    """In squared error, by a tenth at least, over five draws of the noise."""
    errors = {"pairs": [], "triples": []}
    for limit in (denoising.LARGEST_NOISE_OF_PAIRS, 0.0):
        monkeypatch.setattr(denoising, "LARGEST_NOISE_OF_PAIRS", limit)
        made = [tables_of(0.0006, np.random.default_rng(seed)) for seed in range(5)]
        for name, found in errors.items():
            found.append(sum(squared_error(exact, getattr(targets_of(LEVELS, noisy), name)) for exact, noisy in made))
    for by_directions, alone in errors.values():
        assert by_directions < 0.9 * alone
