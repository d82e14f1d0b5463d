"""The losses: derivatives against differences of the plain losses, and the clip of what they give."""

import math
from fractions import Fraction

import numpy as np
import pytest
import reference
from combinations import over_rows
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp._kernels import linear as _linear
from skdp._kernels import losses as _losses

DTYPES = [np.float32, np.float64]
ROWS = np.array([4, 4, 0, 7, 2])
LOSSES = {
    name: (code, reference.LIMITS.get(name, math.inf)) for name, code in _losses.LOSSES.items() if name != "softmax"
}
EXTREME = [0.0, 40.0, 710.0, -710.0, -1e308, math.inf, -math.inf, math.nan]


def targets_of(name, n, rng):
    if name == "logistic":
        return rng.integers(0, 2, n).astype(float)
    return rng.uniform(0.0, 3.0, n) if name == "poisson" else rng.uniform(-1.0, 1.0, n)


def residuals_of(loss, scores, targets, limit=math.inf):
    """A copy of `scores`, of shape (n_outputs, m), made residuals."""
    found = np.array(scores, float)
    if loss == _losses.MULTINOMIAL:
        _losses.multinomial_residuals(found, np.asarray(targets, float))
    else:
        _losses.residuals(loss, found, np.asarray(targets, float), limit)
    return found


# --- derivatives ---


@over_rows("name", LOSSES)
def test_residuals_are_slopes_of_the_loss(name):
    """Central differences, off by h**2 |f'''| / 6 + eps |f| / h < 1e-8 for |f'''| < 10 and |f| < 40 at h = 1e-5."""
    code, limit = LOSSES[name]
    rng = np.random.default_rng(0)
    z = rng.uniform(-4.0, 4.0, 300)
    t = targets_of(name, 300, rng)
    h = 1e-5
    kinks = {"huber": np.abs(np.abs(z - t) - limit), "poisson": np.abs(z - math.log(limit))}
    away = kinks.get(name, np.ones(300)) > 2 * h  # the second derivative jumps there
    assert away.sum() > 290
    slopes = [
        (reference.loss_of_score(name, a + h, b, limit) - reference.loss_of_score(name, a - h, b, limit)) / (2 * h)
        for a, b in zip(z, t, strict=True)
    ]
    found = residuals_of(code, z[None], t, limit)[0]
    np.testing.assert_allclose(found[away], np.array(slopes)[away], rtol=0, atol=3e-8)


@over_rows("name", LOSSES)
@over_rows("score", EXTREME)
def test_extreme_scores_are_seen_by_the_clip(name, score):
    """NaN stays NaN, and every other residual is the limit of the derivative: no overflow is made up for."""
    code, limit = LOSSES[name]
    found = residuals_of(code, [[score]], [0.25], limit)[0, 0]
    if math.isnan(score):
        assert math.isnan(found)
    elif math.isinf(score) and name == "squared_error":
        assert found == score
    else:
        held = max(-1e308, min(1e308, score))
        assert found == pytest.approx(reference.residual(name, held, 0.25, limit), abs=1e-15)


@over_rows("score", [math.nan, math.inf])
def test_lost_scores_of_classes_are_not_finite(score):
    assert not np.isfinite(residuals_of(_losses.MULTINOMIAL, [[score], [0.0], [1.0]], [0])).all()


def test_residuals_have_the_bounds_that_are_promised():
    z = np.concatenate([np.linspace(-50.0, 50.0, 1001), [-1e300, 1e300]])[None]
    for name, low, high in (("logistic", -1.0, 1.0), ("huber", -0.5, 0.5), ("poisson", -3.0, 3.0)):
        code, limit = LOSSES[name]
        for target in (0.0, 1.0, 3.0):
            found = residuals_of(code, z, np.full(z.size, min(target, 1.0) if name == "logistic" else target), limit)
            assert low <= found.min() <= found.max() <= high
    rng = np.random.default_rng(2)
    found = residuals_of(_losses.MULTINOMIAL, rng.normal(size=(4, 500)) * 100.0, rng.integers(0, 4, 500))
    assert np.linalg.norm(found, axis=0).max() <= math.sqrt(2.0) * (1 + 1e-15)


# --- one reading of each loss ---


@over_rows("dtype", DTYPES)
@over_rows("name", [*LOSSES, "softmax"])
@over_rows(("rows", "start"), [(None, 2), (ROWS, 0), (ROWS, 1)])
def test_residuals_of_networks_are_those_of_the_plain_losses(rows, start, name, dtype):
    rng = np.random.default_rng(3)
    m = 4
    scores = (rng.normal(size=(m, 3)) * 5).astype(dtype)
    picked = np.arange(start, start + m) if rows is None else rows[start : start + m]
    found = scores.copy()
    if name == "softmax":
        labels = rng.integers(0, 3, 8)
        _losses.multinomial_row_residuals(found, labels, rows, start)
        expected = [reference.probabilities(z) - np.eye(3)[labels[row]] for z, row in zip(scores, picked, strict=True)]
        largest = 1.0
    else:
        code, limit = LOSSES[name]
        targets = targets_of(name, 24, rng).reshape(8, 3).astype(dtype)
        _losses.row_residuals(code, found, targets, rows, start, limit)
        expected = [
            [reference.residual(name, float(a), float(b), limit) for a, b in zip(z, targets[row], strict=True)]
            for z, row in zip(scores, picked, strict=True)
        ]
        largest = float(np.abs(scores).max()) + 3.0
    tolerance = 64 * float(np.finfo(dtype).eps) * largest
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


@over_rows("score", [np.nan, np.inf])
def test_lost_scores_of_networks_are_not_finite(score):
    """The guard of the clip must see them: a softmax of NaN, or of infinity less infinity, is not made up."""
    softmax = np.array([[score, 0.0, 1.0]])
    _losses.multinomial_row_residuals(softmax, np.zeros(1, np.int64), None, 0)
    assert not np.all(np.isfinite(softmax))
    for code, limit in LOSSES.values():
        found = np.array([[np.nan]])
        _losses.row_residuals(code, found, np.zeros((1, 1), np.float32), None, 0, limit)
        assert np.isnan(found[0, 0])


@over_rows("n_outputs", [1, 4])
def test_the_linear_kernel_has_the_same_residuals_and_the_same_clip(n_outputs):
    """Within the error of its exponential, 4e-13, also where one reading is clipped to C and the other as well."""
    rng = np.random.default_rng(4)
    m, max_norm = 400, 0.3
    z, labels = rng.normal(size=(n_outputs, m)) * 3.0, rng.integers(0, max(2, n_outputs), m).astype(float)
    weights, lengths = rng.choice([0.0, 1e-9, 0.3, 1.0], m), rng.uniform(0.1, 2.0, m)
    code = _losses.LOGISTIC if n_outputs == 1 else _losses.MULTINOMIAL
    found = residuals_of(code, z, labels)
    _losses.clip_residuals(code, found, lengths, weights, max_norm)
    ones, part, unused = np.ones(m), np.empty((n_outputs, m)), np.zeros((n_outputs, m))
    several = n_outputs > 1 or None
    _linear.residuals(several, z.copy(), labels, weights, ones, lengths, max_norm, 1.0, part, unused)
    np.testing.assert_allclose(found, part, rtol=0, atol=1e-12 * 3.0)
    clipped = np.linalg.norm(found, axis=0) * lengths > 0.999 * weights * max_norm
    assert 50 < clipped[weights > 0.0].sum() < m - 50


# --- the clip ---


@pytest.mark.parametrize("n_outputs", [1, 3])
@settings(max_examples=100, deadline=None, derandomize=True)
@given(size=st.floats(-320, 308), length=st.floats(-300, 300), clip=st.floats(-30, 30), seed=st.integers(0, 10**6))
def test_no_residual_passes_the_clip(n_outputs, size, length, clip, seed):
    """Over the range of doubles: |r| |u| <= C (1 + 8 u), computed in logarithms of exact ratios; nothing is NaN."""
    rng = np.random.default_rng(seed)
    lengths = np.full(5, 10.0**length)
    with np.errstate(over="ignore"):
        given_ = rng.normal(size=(n_outputs, 5)) * 10.0**size
    found = given_.copy()
    _losses.clip_residuals(_losses.SQUARED, found, lengths, np.ones(5), 10.0**clip)
    assert np.isfinite(found).all()
    norms = np.array([math.hypot(*column) for column in found.T])
    some = norms > 0.0
    assert (np.log2(norms[some]) + np.log2(lengths[some]) <= math.log2(10.0**clip) + 1e-12).all()
    kept = np.abs(given_) >= 1e-300
    with np.errstate(over="ignore"):
        short = (np.array([math.hypot(*column) for column in given_.T]) * lengths < 0.999 * 10.0**clip) & kept.all(0)
    np.testing.assert_array_equal(found[:, short], given_[:, short])


@over_rows("name", ["squared_error", "logistic"])
@over_rows("n_outputs", [1, 2, 40])
def test_no_residual_passes_the_clip_in_exact_arithmetic(n_outputs, name):
    """|r| |u| <= C (1 + 8 u) in fractions, for residuals that end on the clip or are just as long, whatever w is."""
    rng, most = np.random.default_rng(8), Fraction(0)
    code, edge = LOSSES[name][0], 1 + 8 * Fraction(1, 2**53)
    for clip in (0.1, 1 / 3, 1e-30, 7e29):
        lengths, weights = 10.0 ** rng.uniform(-9, 9, 100), rng.choice([1.0, 1.0 - 2**-53, 0.3], 100)
        directions = rng.normal(size=(n_outputs, 100))
        directions *= clip / lengths / np.linalg.norm(directions, axis=0)
        found = directions * rng.choice([1.0, 1.0 + 1e-15, 1.0 - 1e-15, 1.7, 1e9], 100)
        _losses.clip_residuals(code, found, lengths, weights, clip)
        for column, length in zip(found.T.tolist(), lengths.tolist(), strict=True):
            square = sum(Fraction(each) ** 2 for each in column) * Fraction(length) ** 2 / Fraction(clip) ** 2
            assert square <= edge**2
            most = max(most, square)
    assert most > 1 - Fraction(1, 10**10)  # the clip is reached


@over_rows("lost", [np.nan, np.inf, -np.inf])
@over_rows("others", [[], [0.0, 0.0], [1e9, 0.0], [1e9, 1e9]])
def test_lost_residuals_become_null_rows_and_leave_others_alone(others, lost):
    for place in range(len(others) + 1):
        found = np.full((len(others) + 1, 3), 0.5)
        found[:, 1] = np.insert(others, place, lost)
        _losses.clip_residuals(_losses.SQUARED, found, np.ones(3), np.ones(3), 1.0)
        np.testing.assert_array_equal(found[:, 1], 0.0)
        np.testing.assert_array_equal(found[:, [0, 2]], 0.5)


def test_weights_act_after_the_clip():
    """A gradient that was cut to C has the share w of C, and a weight of 0 makes a null row."""
    for name, (code, limit) in LOSSES.items():
        target = {"logistic": 1.0, "poisson": 2.5}.get(name, 0.0)  # of two labels, the one that is farther away
        before = residuals_of(code, np.full((1, 4), -2.0), np.full(4, target), limit)
        assert abs(before[0, 0]) > 0.1
        _losses.clip_residuals(code, before, np.ones(4), np.array([1.0, 0.25, 1e-9, 0.0]), 0.1)
        np.testing.assert_allclose(np.abs(before[0]), [0.1, 0.025, 1e-10, 0.0], rtol=1e-12)


def test_two_labels_of_a_row_have_one_factor():
    """That of the longer of both gradients, so that the clip is a weight of the row, whatever its label is."""
    scores, max_norm = np.random.default_rng(6).normal(size=(1, 200)) * 3.0, 0.1
    before = [residuals_of(_losses.LOGISTIC, scores, np.full(200, label)) for label in (0.0, 1.0)]
    after = [each.copy() for each in before]
    for each in after:
        _losses.clip_residuals(_losses.LOGISTIC, each, np.ones(200), np.ones(200), max_norm)
    expected = max_norm / np.max(np.abs(before), axis=(0, 1))
    for found, given_ in zip(after, before, strict=True):
        np.testing.assert_allclose(found, given_ * expected, rtol=1e-12)
