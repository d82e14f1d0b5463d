"""Parities of many columns: what one row can move, the plain reading, and what is kept and made of them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from combinations import over_rows
from reference import slopes
from replay import recording
from scipy import stats

from skdp._checks.units import read_units
from skdp.synthesis import DPMarginalSynthesizer
from skdp.synthesis.marginals import noisy_tables as measurement
from skdp.synthesis.marginals.parities import (
    FALSE_ALARMS,
    LARGEST_ORDER,
    MOST_HALVES,
    MOST_PARITIES,
    Parities,
    ParitySums,
    halves_of,
    parity_sets,
    worth_their_noise,
)
from skdp.synthesis.marginals.product_mixture import PARITIES, Mixture, _Parities

pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyLeakWarning")  # seeds make a test repeatable

FALSE_ALARM = 1e-6
LEVELS = (2, 3, 4, 2)


def sums_of(n_classes, with_total=False, levels=LEVELS, least=2):
    rng = np.random.default_rng(0)
    halves = halves_of([rng.dirichlet(np.ones(size)) for size in levels])
    return ParitySums(halves, tuple(parity_sets(levels, n_classes, least)), n_classes, with_total)


def rows_of(levels):
    return [[np.array([a], np.int32) for a in row] for row in itertools.product(*map(range, levels))]


@over_rows("with_total", [False, True])
@over_rows("n_classes", [1, 2, 3])
def test_every_row_reaches_the_sensitivity_and_no_exchange_exceeds_it(n_classes, with_total):
    """All rows that there are, and all pairs of them; weights scale what a row adds."""
    sums = sums_of(n_classes, with_total)
    rows = rows_of(LEVELS if n_classes == 1 else (*LEVELS, n_classes))
    added = np.array([sums.vector(row) for row in rows])
    np.testing.assert_allclose(np.linalg.norm(added, axis=1), sums.sensitivity(), rtol=1e-12)
    moved = max(np.linalg.norm(added - one, axis=1).max() for one in added) / 2
    assert 0.5 * sums.sensitivity() < moved <= sums.sensitivity() * (1 + 1e-12)
    for share in (0.0, 0.5):
        np.testing.assert_array_equal(sums.vector(rows[5], np.array([share])), share * added[5])


@over_rows("n_classes", [1, 3])
def test_the_release_is_that_of_the_plain_reading(n_classes, monkeypatch):
    """Products of signs, row by row, summed by class and centred over the classes."""
    monkeypatch.setattr("skdp.synthesis.marginals.parities._ROWS", 7)
    rng, sums = np.random.default_rng(1), sums_of(n_classes, with_total=True)
    codes = [rng.integers(0, size, 40).astype(np.int32) for size in LEVELS]
    label = rng.integers(0, n_classes, 40).astype(np.int32)
    weights = rng.integers(0, 9, 40) / 8.0
    plain = [[weights.sum()]]
    for columns in itertools.chain.from_iterable(map(np.ndarray.tolist, sums.sets)):
        products = weights * math.prod(sums.signs[j][codes[j]] for j in columns)
        by_class = np.bincount(label, products, minlength=n_classes)
        plain.append(by_class - (by_class.mean() if n_classes > 1 else 0.0))
    found = sums.vector([*codes, label] if n_classes > 1 else codes, weights)
    np.testing.assert_allclose(found, np.concatenate(plain), atol=1e-12)


@over_rows("n_classes", [1, 3])
def test_parities_of_a_mixture_are_those_of_its_table(n_classes):
    rng, sums = np.random.default_rng(2), sums_of(n_classes)
    sizes = [*LEVELS, n_classes]
    columns = [rng.dirichlet(np.ones(size), 3) for size in sizes]
    table = np.einsum("ka,kb,kc,kd,ke->abcde", *columns) / 3
    rows = [np.array(row, np.int32) for row in zip(*np.ndindex(*sizes), strict=True)]
    found = sums.expected(columns if n_classes > 1 else columns[:-1])
    exact = sums.vector(rows if n_classes > 1 else rows[:-1], table.ravel())
    np.testing.assert_allclose(found.ravel(), exact, atol=1e-12)


@over_rows("n_classes", [1, 3])
def test_the_gradient_is_that_of_the_plain_reading(n_classes):
    """By central differences of half the sum of squared errors, times the number of components and the weight."""
    rng, levels = np.random.default_rng(3), [2, 3, 2, n_classes] if n_classes > 1 else [2, 3, 2]
    sums = sums_of(n_classes, levels=(2, 3, 2))
    sets = [(0, 1), (0, 1, 2)]
    values = rng.normal(size=(2, n_classes))
    wanted = Parities(sums.signs, sets, values - (values.mean(axis=1, keepdims=True) if n_classes > 1 else 0.0))
    components = rng.dirichlet(np.ones(sum(levels)), size=4).astype(np.float32)
    gradient = np.zeros_like(components)
    _Parities(levels, wanted).add_gradient(components, gradient)
    some = sums._replace(sets=tuple(np.array([each]) for each in sets))

    def plain(moved):
        columns = np.split(moved, np.cumsum(levels)[:-1], axis=1)
        return 0.5 * PARITIES * len(moved) * float(((some.expected(columns) - wanted.values) ** 2).sum())

    np.testing.assert_allclose(gradient, slopes(plain, components), rtol=0.0, atol=5e-6)


def test_noise_is_taken_for_nothing_and_what_exceeds_it_is_kept():
    """In 300 releases of noise alone, more than 6 with a parity have a probability of 1e-7 at the stated rate."""
    rng, sums = np.random.default_rng(4), sums_of(3)
    expected = np.zeros((sum(map(len, sums.sets)), 3))
    deviation, n = 50.0, 10_000.0
    total = np.hypot(deviation, np.sqrt(n / 3))  # rows that are drawn from what is expected are not just that
    kept = [sums.unexpected(total * rng.standard_normal(expected.size), n, deviation, expected) for _ in range(300)]
    assert stats.binom.sf(sum(bool(each.sets) for each in kept), 300, FALSE_ALARMS) > FALSE_ALARM
    there = np.zeros_like(expected)
    there[4], there[1] = [2000.0, -1000.0, -1000.0], [800.0, 0.0, -800.0]
    found = sums.unexpected(there.ravel() + deviation * rng.standard_normal(expected.size), n, deviation, expected)
    listed = [tuple(each) for group in sums.sets for each in group.tolist()]
    assert found.sets == [listed[4], listed[1]]
    assert np.abs(found.values - there[[4, 1]] / n).max() < 6 * deviation / n
    assert not sums.unexpected(there.ravel(), n, deviation, there / n).sets
    weighted = sums._replace(with_total=True).unexpected(np.r_[5000.0, there.ravel()], n, deviation, expected)
    np.testing.assert_allclose(weighted.values[0], there[4] / 5000)
    many = sums_of(1, levels=(2,) * 9, least=3)
    all_of_them = np.ones((sum(map(len, many.sets)), 1))
    assert len(many.unexpected(all_of_them.ravel() * n, n, deviation, 0.0 * all_of_them).sets) == MOST_PARITIES


def test_halves_are_cut_at_half_of_the_rows():
    found = halves_of([np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.9, 0.1]), np.ones(1), np.array([0.0, 0.0, 1.0])])
    assert [each.tolist() for each in found] == [[1, 1, 1, -1], [1, -1], [1], [1, -1, -1]]


def test_sets_are_chosen_by_public_numbers():
    """All sizes where there is little noise, the smaller ones where there is more, none of too many columns."""
    sets = parity_sets([2] * 8 + [1], 2, 3)
    assert [len(each) for each in sets] == [56, 70, 56]
    assert sets[-1].shape[1] == LARGEST_ORDER - 1
    assert 8 not in np.unique(sets[0])
    assert [len(worth_their_noise(sets, 2, noise)) for noise in (0.0, 0.007, 0.009, 0.011, 1.0)] == [3, 3, 2, 1, 0]
    assert parity_sets([2] * 40, 2, 3) == []
    assert parity_sets([2] * 22, 1, 3)
    assert MOST_HALVES == 2**22
    assert measurement.parities_worth_it([2] * 5, True, False, 1e9, 1.0)[0].shape[1] == 2
    assert measurement.parities_worth_it([2] * 5, True, True, 1e9, 1.0)[0].shape[1] == 3
    assert measurement.parities_worth_it([2] * 5 + [2], True, True, 100, 1.0) == ()
    sizes = [
        [each.shape[1] for each in measurement.parities_worth_it([2] * 11, True, False, n, 4.0)]
        for n in (2500, 4000, 10_000)
    ]
    assert sizes == [[], [2, 3], [2, 3, 4, 5]]  # pairs alone would be worth their noise


@over_rows("with_label", [False, True])
def test_a_label_that_is_a_parity_is_learned(with_label):
    """Pairs and triples tell nothing of it: without parities the label of a sample is right half of the time."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (8000, 6))
    y = X[:, :4].sum(axis=1) % 2
    right = {}
    for parities in (False, "auto"):
        schema = {f"x{j}": [0, 1] for j in range(7 - with_label)}
        model = DPMarginalSynthesizer(
            schema, classes=[0, 1], epsilon=4.0, parities=parities, n_components=64, max_iter=300, random_state=0
        )
        if with_label:
            made, label = model.fit(X, y).sample(4000, random_state=0)
        else:
            made = model.fit(np.column_stack([X, y])).sample(4000, random_state=0)
            label = made[:, 6]
        right[parities] = float(np.mean(made[:, :4].sum(axis=1) % 2 == label))
        assert model.parities_ == ([("x0", "x1", "x2", "x3", "y" if with_label else "x6")] if parities else [])
    assert right[False] < 0.6
    assert right["auto"] > 0.9


def test_parities_of_units_are_relative_to_the_sum_of_their_weights():
    """Next to no noise: units of two like rows have the parities of the rows, though they count once."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.integers(0, 2, (500, 4)), 2, axis=0).astype(np.int32)
    codes = [*X.T, (X[:, :3].sum(axis=1) % 2).astype(np.int32)]
    units = read_units(np.repeat(np.arange(500), 2), 1000)
    given = measurement.LevelRows(codes, np.ones(1000), units)
    sets = tuple(parity_sets([2] * 4, 2, 3))
    terms = measurement.ModelTerms([2] * 5, True, False, (), 8, 2, sets)
    how = measurement.Measurement(1e-6, 0, "zero_out", 500.0)
    ones, even = [np.full(2, 0.5)] * 5, Mixture((2,) * 5, np.full((1, 10), 0.5, np.float32))
    stream = measurement.SecretStream(bytes(32))
    found = how._parities(given, terms, measurement.TargetTables(ones, {}, {}), even, stream)
    assert found.sets[0] == (0, 1, 2)
    np.testing.assert_allclose(np.abs(found.values[0]), 0.5, atol=1e-3)


@pytest.mark.parametrize("adjacency", ["zero_out", "add_remove", "replace_one"])
def test_what_is_kept_of_parities_follows_from_the_releases(adjacency):
    """A row less, or another one, and the same noisy values: the same parities are kept, and the model is the same."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (300, 5))
    y = X[:, :4].sum(axis=1) % 2
    other, other_y = (np.delete(X, 3, axis=0), np.delete(y, 3)) if adjacency != "replace_one" else (X.copy(), y.copy())
    if adjacency == "replace_one":
        other[3, 0], other_y[3] = 1 - other[3, 0], y[3]
    models, runs = [], [[]]
    for rows, label in ((X, y), (other, other_y)):
        model = DPMarginalSynthesizer(
            {f"x{j}": [0, 1] for j in range(5)}, classes=[0, 1], n_samples_public=300, epsilon=50.0, triples=False,
            adjacency=adjacency, n_components=4, max_iter=3, random_state=0,
        )  # fmt: skip
        with recording(runs[-1]) as seen:
            models.append(model.fit(rows, label))
        runs.append(seen)
    _, first, second = runs
    factor = 2.0 if adjacency == "replace_one" else 1.0
    assert len(first) == len(second) == 2
    for one, moved in zip(first, second, strict=True):
        distance = np.linalg.norm(one.exact - moved.exact) / one.sensitivity
        assert 0.5 < distance <= factor * (1 + 1e-12)
    assert models[0].parities_ == models[1].parities_
    assert models[0].parities_[0] == ("x0", "x1", "x2", "x3", "y")
    np.testing.assert_array_equal(models[0].components_, models[1].components_)
