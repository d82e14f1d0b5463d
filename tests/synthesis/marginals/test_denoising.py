"""Interactions that are shrunk along the main directions of their columns: what goes, what stays, and when."""

from __future__ import annotations

import itertools

import numpy as np
from combinations import over_rows

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


@over_rows("shape", [(12, 10), (9, 8, 3)])
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
        columns: Interaction(centred(table + deviation * rng.normal(size=table.shape)), deviation)
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


def test_a_pair_is_no_direction_of_its_own():
    """By which directions it is shrunk does not depend on what it says itself; those of triples do."""
    exact, noisy = tables_of(0.0004, np.random.default_rng(3))
    ones, pairs = [exact[(j,)] for j in range(5)], {key: table for key, table in exact.items() if len(key) == 2}
    other = {**pairs, (0, 1): pairs[(0, 1)] + 0.1 * centred(np.random.default_rng(4).normal(size=LEVELS[:2]))}
    one, two = (denoising._MainDirections(ones, each) for each in (pairs, other))
    np.testing.assert_array_equal(one.pair((0, 1), noisy[(0, 1)]), two.pair((0, 1), noisy[(0, 1)]))
    assert np.abs(one.pair((0, 2), noisy[(0, 2)]) - two.pair((0, 2), noisy[(0, 2)])).max() > 1e-5


def test_directions_are_told_by_many_pairs_of_little_noise_alone():
    """By public sizes: three columns have too few pairs, and noise of half a table hides all directions."""
    _, noisy = tables_of(0.0004, np.random.default_rng(5))
    assert denoising._tell_directions(LEVELS, noisy)
    assert not denoising._tell_directions(LEVELS[:3], {key: each for key, each in noisy.items() if max(key) < 3})
    assert not denoising._tell_directions(LEVELS, {key: each._replace(deviation=0.02) for key, each in noisy.items()})
    exact = {key: each._replace(deviation=0.0) for key, each in noisy.items()}
    for columns, table in targets_of(LEVELS, exact).pairs.items():
        np.testing.assert_allclose(centred(table), exact[columns].values, atol=1e-12)
