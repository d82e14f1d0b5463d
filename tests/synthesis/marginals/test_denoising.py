"""Interactions that are shrunk along the main directions of their columns: what goes, what stays, and when."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from skdp.synthesis.marginals import denoising
from skdp.synthesis.marginals.contingency_tables import Interaction, centred
from skdp.synthesis.marginals.denoising import main_directions, shrunk, shrunk_blocks, targets_of

LEVELS = (12, 10, 9, 8, 2)


def test_directions_are_an_ordered_basis_of_centred_vectors():
    rng = np.random.default_rng(0)
    first, second = centred(rng.normal(size=7)), centred(rng.normal(size=7))
    square = 9.0 * np.outer(first, first) + np.outer(second, second)
    found = main_directions(square)
    np.testing.assert_allclose(found @ found.T, np.eye(6), atol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 0.0, atol=1e-12)
    along = np.einsum("ij,jk,ik->i", found, square, found)
    assert (np.diff(along) <= 1e-9).all()
    np.testing.assert_allclose(found[:2].T @ found[:2] @ first, first, atol=1e-9)
    assert main_directions(np.zeros((1, 1))).shape == (0, 1)
    assert main_directions(np.zeros((3, 3))).shape == (2, 3)


@pytest.mark.parametrize("shape", [(12, 10), (9, 8, 3)])
def test_blocks_take_more_of_the_noise_and_less_of_the_signal_than_one_factor(shape):
    """The signal lies in the first direction of each column; 100 draws. Noise alone is next to nothing afterwards."""
    rng = np.random.default_rng(1)
    directions = [main_directions(np.diag(np.arange(size, 0.0, -1.0))) for size in shape]
    signal = np.ones(())
    for each in directions:
        signal = np.multiply.outer(signal, each[0])
    signal = signal * 9.0
    errors = {name: [] for name in ("raw", "whole", "blocks", "noise")}
    for _ in range(100):
        noise = centred(rng.normal(size=shape))
        errors["raw"].append(((noise) ** 2).sum())
        errors["whole"].append(((shrunk(signal + noise, 1.0) - signal) ** 2).sum())
        errors["blocks"].append(((shrunk_blocks(signal + noise, 1.0, directions) - signal) ** 2).sum())
        errors["noise"].append((shrunk_blocks(noise, 1.0, directions) ** 2).sum())
    raw, whole, blocks, noise = (np.mean(errors[name]) for name in ("raw", "whole", "blocks", "noise"))
    assert blocks < 0.5 * whole < 0.5 * raw
    assert noise < 0.1 * raw
    np.testing.assert_allclose(shrunk_blocks(1e6 * signal, 1.0, directions), 1e6 * signal, rtol=1e-6, atol=1e-2)
    assert shrunk_blocks(signal, 0.0, directions) is signal
    np.testing.assert_array_equal(shrunk_blocks(np.zeros(shape), 1.0, directions), np.zeros(shape))


def tables_of(deviation, rng):
    """Exact and noisy interactions of columns each of whose levels has one place on a line, and a label that they tell.

    Returns the exact pairs and triples, as shares of the rows, and the noisy interactions of all sets.
    """
    shares = [rng.dirichlet(np.full(size, 5.0), 6) for size in LEVELS]
    line = np.linspace(-1.0, 1.0, 6)
    components = [
        onto_rows(share.mean(axis=0) * (1.0 + 0.8 * np.outer(line, place_of(len(share[0]))))) for share in shares
    ]
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
        columns: Interaction(centred(table + deviation * rng.normal(size=table.shape)), deviation)
        for columns, table in exact.items()
    }
    return exact, noisy


def place_of(size):
    return np.linspace(-1.0, 1.0, size)


def onto_rows(table):
    return table / table.sum(axis=1, keepdims=True)


def distance(exact, found):
    return float(np.mean([np.abs(exact[columns] - table).sum() for columns, table in found.items()]))


def test_pairs_and_triples_are_nearer_to_the_truth_than_by_themselves(monkeypatch):
    exact, noisy = tables_of(0.0004, np.random.default_rng(2))
    by_directions = targets_of(LEVELS, noisy)
    monkeypatch.setattr(denoising, "LARGEST_NOISE_OF_PAIRS", 0.0)
    alone = targets_of(LEVELS, noisy)
    assert distance(exact, by_directions.pairs) < 0.9 * distance(exact, alone.pairs)
    assert distance(exact, by_directions.triples) < 0.9 * distance(exact, alone.triples)


def test_a_pair_is_no_direction_of_its_own():
    """What one pair alone has, strong as it is, does not turn the directions by which it is shrunk."""
    _, noisy = tables_of(0.0004, np.random.default_rng(3))
    spoilt = noisy[(0, 1)].values + 0.1 * centred(np.random.default_rng(4).normal(size=LEVELS[:2]))
    seen = []
    for values in (noisy[(0, 1)].values, spoilt):
        found = targets_of(LEVELS, {**noisy, (0, 1): Interaction(values, 0.0004)})
        main = denoising._MainDirections(found.ones, found.pairs)
        square = main._squares[0] - main._own[(0, 1)][0]
        seen.append(main_directions(square)[:1])
    np.testing.assert_allclose(np.abs(seen[0] @ seen[1].T), 1.0, atol=0.05)


def test_directions_are_told_by_many_pairs_of_little_noise_alone():
    """By public sizes: three columns have too few pairs, and noise of half a table hides all directions."""
    _, noisy = tables_of(0.0004, np.random.default_rng(5))
    assert denoising._tell_directions(LEVELS, noisy)
    assert not denoising._tell_directions(LEVELS[:3], {key: each for key, each in noisy.items() if max(key) < 3})
    assert not denoising._tell_directions(LEVELS, {key: each._replace(deviation=0.02) for key, each in noisy.items()})
    exact = {key: each._replace(deviation=0.0) for key, each in noisy.items()}
    for columns, table in targets_of(LEVELS, exact).pairs.items():
        np.testing.assert_allclose(centred(table), exact[columns].values, atol=1e-12)
