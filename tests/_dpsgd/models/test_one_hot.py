"""Linear models over one-hot rows: against explicit projected rows, and against the bound on one row.

What is measured here is the noiseless sum, the input of the mechanism.
"""

import itertools
import math
import warnings

import numpy as np
import pytest
import reference
from combinations import over_combinations, over_rows
from hypothesis import example, given, settings
from hypothesis import strategies as st

from skdp._dpsgd.models.one_hot import Blocks, OneHotForm, OneHotGeometry, OneHotModel, OneHotRows, one_hot_scores
from skdp._kernels.losses import HUBER, LOGISTIC, MULTINOMIAL, POISSON, SQUARED

U = 2.0**-53
FORMS = {
    "a bit": (2,),
    "bytes of several blocks": (2, 2, 3, 16, 16, 16, 5, 1, 7),
    "blocks of one level": (1, 1, 4, 1),
    "a full byte": (256, 16, 16, 2),
    "more than a byte": (257, 3, 2, 300),
    "more codes than go together": (20, 30, 40, 50, 60, 70),
}
LOSSES = {
    "logistic": (LOGISTIC, 1, 0.0),
    "multinomial": (MULTINOMIAL, 3, 0.0),
    "squared_error": (SQUARED, 1, 0.0),
    "huber": (HUBER, 1, 0.5),
    "poisson": (POISSON, 1, 3.0),
}


def geometry_of(widths, intercept=0.2, seed=0):
    weights = np.random.default_rng(seed).uniform(0.1, 1.0, len(widths))
    return OneHotGeometry(OneHotForm(Blocks(tuple(widths)), tuple(weights.tolist()), 1), intercept)


def levels_of(widths, n, seed=0):
    rng = np.random.default_rng(seed)
    levels = [rng.integers(0, width, n) for width in widths]
    if n > 1:
        levels = [np.concatenate([[0, width - 1], each[2:]]) for width, each in zip(widths, levels, strict=True)]
    return levels


def rows_of(widths, levels):
    blocks = Blocks(tuple(widths))
    codes = blocks.empty_codes(len(levels[0]))
    blocks.encode(levels, codes)
    return OneHotRows(blocks, codes, len(widths))


def plain_rows(geometry, levels):
    rows = zip(*levels, strict=True)
    return [
        reference.one_hot_row(row, geometry.blocks.widths, geometry.form.weights, geometry.intercept) for row in rows
    ]


def targets_of(name, n, seed=0):
    rng = np.random.default_rng(seed)
    n_classes = {"logistic": 2, "multinomial": 3}.get(name)
    return rng.integers(0, n_classes, n) if n_classes else rng.uniform(0.0, 3.0, n)


def clipped_sum(geometry, levels, targets, weights, theta, max_norm, name, *, rows=None, n_threads=1):
    loss, n_outputs, limit = LOSSES[name]
    made = rows_of(geometry.blocks.widths, levels)
    model = OneHotModel(made, targets, weights, n_outputs, geometry, loss=loss, limit=limit, n_threads=n_threads)
    with model:
        return model.clipped_gradient_sum(theta, rows, max_norm)


# --- two readings ---


@over_combinations(form=FORMS, name=LOSSES, intercept=[0.0, 0.2], lots=[False, True])
def test_sums_are_those_of_the_plain_reading(form, name, intercept, lots):
    widths, n = FORMS[form], 70
    geometry, levels = geometry_of(widths, intercept), levels_of(widths, n)
    rng = np.random.default_rng(1)
    _, n_outputs, limit = LOSSES[name]
    targets, weights = targets_of(name, n), rng.choice([0.0, 0.5, 1.0, 0.1, 1e-9], n)
    theta = rng.normal(size=n_outputs * geometry.width) * 3.0
    lot = np.sort(rng.choice(n, 33, replace=False)) if lots else None
    picked = slice(None) if lot is None else lot
    found = clipped_sum(geometry, levels, targets, weights, theta, 0.4, name, rows=lot)
    plain = reference.one_hot_clipped_gradients(
        np.array(plain_rows(geometry, levels))[picked], targets[picked], weights[picked], theta, n_outputs, 0.4, name,
        limit,
    )  # fmt: skip
    # 70 gradients of norm 0.4 at most, whose directions are those of scores with errors below 100 u * 50.
    np.testing.assert_allclose(found, plain.sum(axis=0), rtol=0, atol=70 * 0.4 * 2000 * U)
    assert np.abs(found).max() > 0.1


@over_combinations(n=[0, 1, 2047, 2048, 2049, 9000], n_threads=[1, 2], name=["logistic", "multinomial"])
def test_blocks_of_rows_and_threads_change_nothing(n, n_threads, name):
    widths = (16,) * 5 + (3, 300)
    geometry, levels, targets = geometry_of(widths), levels_of(widths, 9000), targets_of(name, 9000)
    n_outputs = LOSSES[name][1]
    theta = np.random.default_rng(2).normal(size=n_outputs * geometry.width)
    weights = np.random.default_rng(3).uniform(size=9000)
    lot = np.random.default_rng(4).permutation(9000)[:n]
    found = clipped_sum(geometry, levels, targets, weights, theta, 0.3, name, rows=lot, n_threads=n_threads)
    if n == 0:
        assert not found.any()
        return
    taken = [each[lot] for each in levels]
    alone = clipped_sum(geometry, taken, targets[lot], weights[lot], theta, 0.3, name)
    np.testing.assert_array_equal(found, alone)
    table = np.array(plain_rows(geometry, taken))
    plain = reference.one_hot_clipped_gradients(table, targets[lot], weights[lot], theta, n_outputs, 0.3, name, 0.0)
    np.testing.assert_allclose(found, plain.sum(axis=0), rtol=0, atol=max(n, 70) * 0.3 * 2000 * U)


@settings(max_examples=30, deadline=None)
@given(widths=st.lists(st.integers(1, 300), min_size=1, max_size=12), seed=st.integers(0, 2**16))
@example(widths=[1, 256], seed=0)
@example(widths=[1, 257, 1], seed=0)
def test_codes_hold_levels_of_all_blocks(widths, seed):
    """In mixed radix, of which scores look up the levels' own numbers."""
    blocks, levels = Blocks(tuple(widths)), levels_of(widths, 40, seed)
    rows, first_block = rows_of(widths, levels), blocks.first_block.tolist()
    assert (first_block[0], first_block[-1]) == (0, len(widths))
    for g, (low, high) in enumerate(itertools.pairwise(first_block)):
        assert high == low + 1 or math.prod(widths[low:high]) <= 256
        expected = np.ravel_multi_index([levels[b] for b in range(low, high)], widths[low:high])
        np.testing.assert_array_equal(rows.codes[g], expected)
    numbers = np.random.default_rng(seed).integers(0, 1000, blocks.n_columns).astype(float)
    starts = np.cumsum([0, *widths[:-1]])
    expected = sum(numbers[start + each] for start, each in zip(starts, levels, strict=True))
    np.testing.assert_array_equal(one_hot_scores(rows, numbers[None])[:, 0], expected)


# --- geometry ---


@settings(max_examples=60, deadline=None)
@given(
    blocks=st.lists(st.tuples(st.integers(1, 40), st.floats(1e-3, 1e3)), min_size=1, max_size=9),
    intercept=st.one_of(st.just(0.0), st.floats(1e-3, 1e3)),
    seed=st.integers(0, 2**16),
)
def test_every_row_has_norm_1(blocks, intercept, seed):
    widths, weights = zip(*blocks, strict=True)
    if not intercept and set(widths) == {1}:
        widths = (2, *widths[1:])
    geometry = OneHotGeometry(OneHotForm(Blocks(widths), weights, 1), intercept)
    rng = np.random.default_rng(seed)
    for _ in range(4):
        e = np.zeros(geometry.blocks.n_columns)
        e[np.cumsum([0, *widths[:-1]]) + [rng.integers(0, width) for width in widths]] = 1.0
        row = geometry.centered(e)
        assert abs(math.hypot(*row, geometry.icpt) - 1.0) <= (len(row) + 16) * U
        for start, width in zip(np.cumsum([0, *widths[:-1]]), widths, strict=True):
            assert abs(row[start : start + width].sum()) <= 8 * width * U
    noise = np.random.default_rng(seed).normal(size=geometry.blocks.n_columns)
    table = np.array([geometry.centered(each) for each in np.eye(geometry.blocks.n_columns)])
    np.testing.assert_allclose(geometry.centered(noise), noise @ table, rtol=0, atol=1e-12)
    spread = np.linalg.norm(table, axis=0)
    np.testing.assert_allclose(geometry.deviations * geometry.entries_of_columns, spread, rtol=1e-12, atol=1e-15)


# --- the bound on a row ---

EXTREME = st.sampled_from([0.0, 1e-320, -1e-300, 1.0, -40.0, 800.0, 1e30, -1e200, 1e308, math.inf, math.nan])


@settings(max_examples=60, deadline=None)
@given(
    form=st.sampled_from(sorted(FORMS)),
    name=st.sampled_from(sorted(LOSSES)),
    intercept=st.sampled_from([0.0, 0.2, 3.0]),
    size=EXTREME,
    weight=st.sampled_from([1e-320, 1e-10, 0.3, 1.0]),
    max_norm=st.sampled_from([1e-30, 1e-3, 0.35, 1.0, 1e30]),
    seed=st.integers(0, 2**16),
)
def test_one_row_adds_at_most_the_clip(form, name, intercept, size, weight, max_norm, seed):
    """And nothing along the directions that the projection removes."""
    widths = FORMS[form]
    geometry, levels = geometry_of(widths, intercept, seed), levels_of(widths, 1, seed)
    rng = np.random.default_rng(seed)
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # of public parameters that overflow
        theta = rng.choice([-1.0, 0.0, 0.5, 1.0], LOSSES[name][1] * geometry.width) * size
        found = clipped_sum(geometry, levels, targets_of(name, 1, seed), [weight], theta, max_norm, name)
    assert np.isfinite(found).all()
    # The norm is of numbers that were rounded once more, and is rounded itself.
    assert math.hypot(*found) <= max_norm * (1 + 16 * U) * (1 + len(found) * U)
    table = found.reshape(LOSSES[name][1], -1)
    for start, width in zip(np.cumsum([0, *widths[:-1]]), widths, strict=True):
        assert np.abs(table[:, start : start + width].sum(axis=1)).max() <= max_norm * 8 * width * U


@over_rows("name", LOSSES)
def test_a_long_gradient_adds_exactly_the_share_of_the_clip_that_its_weight_says(name):
    """The bound is reached, of classes by one of them: a clip that is too small would pass the test above."""
    widths = (16, 16, 5, 2)
    geometry, levels = geometry_of(widths), levels_of(widths, 1)
    n_outputs = LOSSES[name][1]
    theta = np.random.default_rng(0).normal(size=n_outputs * geometry.width)
    classes = {"logistic": [0, 1], "multinomial": range(n_outputs)}.get(name)
    targets = [targets_of(name, 1)] if classes is None else [np.array([each]) for each in classes]
    for max_norm, weight in ((1e-3, 1.0), (0.01, 1.0), (0.01, 0.25), (0.01, 1e-9)):
        found = [clipped_sum(geometry, levels, each, [weight], theta, max_norm, name) for each in targets]
        assert max(math.hypot(*each) for each in found) == pytest.approx(max_norm * weight, rel=1e-12)


@over_combinations(1, name=LOSSES, form=FORMS)
def test_one_changed_row_moves_the_sum_by_its_own_gradients(name, form):
    """One row muted, or exchanged, among many: by C, or twice that, and by nothing that the projection removes."""
    widths, n, max_norm = FORMS[form], 60, 0.2
    geometry, levels = geometry_of(widths), levels_of(widths, n)
    targets, rng = targets_of(name, n), np.random.default_rng(7)
    theta = rng.normal(size=LOSSES[name][1] * geometry.width)
    without, others = np.ones(n), [each.copy() for each in levels]
    without[5] = 0.0
    for each, width in zip(others, widths, strict=True):
        each[5] = (each[5] + 1) % width
    sums = [
        clipped_sum(geometry, rows, targets, weights, theta, max_norm, name)
        for rows, weights in ((levels, np.ones(n)), (levels, without), (others, np.ones(n)))
    ]
    rounding = n * max_norm * 64 * U
    for other, bound in ((sums[1], max_norm), (sums[2], 2 * max_norm)):
        moved = (sums[0] - other).reshape(LOSSES[name][1], -1)
        assert 1e-3 < np.linalg.norm(moved) <= bound + rounding
        for start, width in zip(np.cumsum([0, *widths[:-1]]), widths, strict=True):
            assert np.abs(moved[:, start : start + width].sum(axis=1)).max() <= rounding * width


@over_rows("name", LOSSES)
def test_weight_zero_is_the_null_record(name):
    widths = (16, 16, 5, 2)
    geometry, levels, targets = geometry_of(widths), levels_of(widths, 40), targets_of(name, 40)
    theta = np.random.default_rng(0).normal(size=LOSSES[name][1] * geometry.width)
    weights = np.ones(40)
    weights[[3, 17]] = 0.0
    found = clipped_sum(geometry, levels, targets, weights, theta, 0.3, name)
    other_levels, other_targets = [each.copy() for each in levels], targets.copy()
    for each in other_levels:
        each[[3, 17]] = 0
    other_targets[[3, 17]] = 1
    np.testing.assert_array_equal(found, clipped_sum(geometry, other_levels, other_targets, weights, theta, 0.3, name))
    assert not clipped_sum(geometry, levels, targets, np.zeros(40), theta, 0.3, name).any()
