"""The clipped gradient sums of dense networks: against the plain reading, and against the bound on one row.

What is measured here is the noiseless sum, the input of the mechanism: properties 1, 3, 4, 5, 6 and 24.
"""

import math

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from combinations import covering, over_combinations, over_rows
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp._dpsgd.models import network as network_module
from skdp._dpsgd.models.network import ACTIVATIONS, CLIPPINGS, Architecture, Clip, NetworkModel, network_scores
from skdp._dpsgd.targets import REGRESSION_LOSSES
from skdp._kernels import threads

DTYPES = [np.float32, np.float64]
TOLERANCE = {np.float32: 1e-4, np.float64: 1e-10}
OUTPUTS = {
    "binary": ("logistic", 1), "classes": ("softmax", 3), "labels": ("logistic", 3),
    **{name: (name, 1, reference.LIMITS.get(name, math.inf)) for name in REGRESSION_LOSSES},
}  # fmt: skip
RADIUS, UNIT = 1.5, 2.0


def network(hidden=(6,), d=5, loss="classes", activation="tanh"):
    name, n_outputs, *limit = OUTPUTS[loss]
    return Architecture((d, *hidden, n_outputs), activation, name, *limit)


def shares(n_layers, kind="flat"):
    """Those of layers, unequal where that says something."""
    parts = np.arange(1.0, n_layers + 1.0) if kind == "per_layer" else np.ones(n_layers)
    return tuple(parts / np.linalg.norm(parts))


def model_of(
    X, targets, weights=1.0, net=None, kind="flat", *, dtype=np.float64, radius=RADIUS, unit=UNIT, batch_size=512
):
    rows = X.astype(dtype) if sp.issparse(X) else np.ascontiguousarray(X, dtype)
    clip = Clip(kind, shares(net.n_layers, kind))
    return NetworkModel(rows, targets, weights, net, clip, radius=radius, unit=unit, dtype=dtype, batch_size=batch_size)


def people(n, net, *, dtype=np.float64, seed=0):
    """Random rows, some longer than the radius, targets, weights with zeros, and parameters, intercepts included."""
    rng = np.random.default_rng(seed)
    d, k = net.widths[0], net.widths[-1]
    X = (rng.normal(size=(n, d)) * rng.choice([0.1, 1.0, 3.0], size=(n, 1)) / np.sqrt(d)).astype(dtype)
    targets = rng.integers(0, k, n) if net.loss == "softmax" else rng.integers(0, 2, (n, k)).astype("f4")
    if net.loss not in ("softmax", "logistic"):  # from -1 to 1, or from 0 to the limit
        low, high = (0.0, net.limit) if net.loss == "poisson" else (-1.0, 1.0)
        targets = np.random.default_rng(seed + 1).uniform(low, high, (n, k)).astype(dtype)
    weights = rng.choice([0.0, 0.5, 1.0, 0.1], n, p=[0.1, 0.2, 0.5, 0.2])
    return X, targets, weights, rng.normal(size=net.n_parameters).astype(dtype)


def plain_rows(X, targets, weights, theta, net, kind, max_norm, *, radius=RADIUS, unit=UNIT):
    """The clipped gradients of the plain reading, where C leaves room for the rounding of X's dtype."""
    plain = reference.Network(net.widths, net.activation, net.loss, net.limit)
    bounds = max_norm * np.array(shares(net.n_layers, kind)) / reference.room_for_rounding(X.dtype, net.widths)
    rows = X.toarray() if sp.issparse(X) else X
    return reference.network_clipped_gradients(
        rows, targets, weights, theta, plain, kind, bounds, radius=radius, unit=unit
    )


def assert_agrees(X, targets, weights, theta, net, kind, max_norm, *, rows=None, batch_size=512):
    dtype = X.dtype.type
    picked = slice(None) if rows is None else rows
    expected = plain_rows(X[picked], targets[picked], weights[picked], theta, net, kind, max_norm)
    model = model_of(X, targets, weights, net, kind, dtype=dtype, batch_size=batch_size)
    found = model.clipped_gradient_sum(theta, rows, max_norm)
    assert (found.shape, found.dtype) == (theta.shape, np.float64)
    scale = np.linalg.norm(expected, axis=1).sum() if len(expected) else 0.0
    np.testing.assert_allclose(found, expected.sum(axis=0), rtol=0, atol=TOLERANCE[dtype] * scale)


# --- two readings of one sum ---


@over_combinations(dtype=DTYPES, kind=CLIPPINGS, loss=OUTPUTS, activation=ACTIVATIONS)
def test_sums_are_those_of_the_plain_reading(activation, loss, kind, dtype):
    """Dense and sparse, where about half of the rows are clipped and where all or none are."""
    some, net = np.array([3, 3, 17, 0, 24]), network(loss=loss, activation=activation)
    X, targets, weights, theta = people(25, net, dtype=dtype)
    sparse = sp.csr_matrix(np.where(np.abs(X) < 0.3, 0.0, X).astype(dtype))
    for max_norm in (1.0, 1e-3, 1e3):
        assert_agrees(X, targets, weights, theta, net, kind, max_norm)
    assert_agrees(sparse, targets, weights, theta, net, kind, 1.0)
    assert_agrees(sparse, targets, weights, theta, net, kind, 1.0, rows=some)
    assert_agrees(X, targets, weights, theta, net, kind, 1.0, rows=some, batch_size=2)


@over_combinations(hidden=[(), (4, 1, 7)], kind=CLIPPINGS, activation=ACTIVATIONS)
def test_sums_at_another_depth_are_those_of_the_plain_reading(activation, kind, hidden):
    """Layers are a loop within kernels, which are compiled for each number of them: one loss and one dtype suffice."""
    net = network(hidden, activation=activation)
    X, targets, weights, theta = people(25, net)
    for max_norm in (1.0, 1e-3, 1e3):
        assert_agrees(X, targets, weights, theta, net, kind, max_norm)


@over_combinations(1, activation=["identity", "logistic", "tanh", "relu"], loss=OUTPUTS)
def test_unclipped_sum_is_the_gradient_of_the_loss(activation, loss):
    """Central differences of the plain loss: error h**2 f'''/6 and eps f/h, together below 1e-8 a row at h = 1e-5."""
    net = network((4,), d=3, loss=loss, activation=activation)
    X, targets, weights, theta = people(15, net)
    plain = reference.Network(net.widths, net.activation, net.loss, net.limit)
    rows = [reference.input_row(x, RADIUS, UNIT) for x in X]
    near_kink = min(np.abs(z).min() for row in rows for z in reference.layer_values(row, plain, theta)[:-1])
    assert near_kink > 1e-3  # the derivative of relu is not asked for across its kink

    def total_loss(theta):
        return sum(
            reference.network_loss(row, y, w, plain, theta) for row, y, w in zip(rows, targets, weights, strict=True)
        )

    h = 1e-5
    slopes = [(total_loss(theta + h * e) - total_loss(theta - h * e)) / (2 * h) for e in np.eye(len(theta))]
    found = model_of(X, targets, weights, net).clipped_gradient_sum(theta, None, 1e12)
    np.testing.assert_allclose(found, slopes, rtol=0, atol=15 * 1e-8)


# --- property 3: chunks change nothing but rounding ---


@over_combinations(1, dtype=DTYPES, kind=CLIPPINGS)
def test_chunks_change_nothing_but_rounding(kind, dtype):
    """700 rows in chunks of 1, of 7, around a block of 256 and all at once: last rows in, none twice."""
    net = network(activation="relu")
    X, targets, weights, theta = people(700, net, dtype=dtype)
    lot = np.sort(np.random.default_rng(1).choice(700, 333, replace=False))
    for rows in (None, lot):
        sums = [
            model_of(X, targets, weights, net, kind, dtype=dtype, batch_size=size).clipped_gradient_sum(
                theta, rows, 0.4
            )
            for size in (1, 7, 255, 257, 10_000)
        ]
        bound = 700 * 0.4 * 300 * float(np.finfo(dtype).eps)  # 256 additions and 40 operations a row
        for other in sums[1:]:
            np.testing.assert_allclose(other, sums[0], rtol=0, atol=bound)


@over_combinations(1, dtype=DTYPES, activation=ACTIVATIONS)
def test_threads_change_no_bit(dtype, activation, monkeypatch):
    """Nor does what they are given at once, a row or a column more than a tile included, nor an earlier step."""
    net = network((40,), d=17, activation=activation)
    X, targets, weights, theta = people(500, net, dtype=dtype)
    found = set()
    for n_threads, span, rectangle in ((1, 96, 96), (2, 96, 96), (3, 6, 12), (2, 12, 6)):
        for name, value in (("_SPAN_ROWS", span), ("_SPAN_SIZE", 1), ("_RECTANGLE_ROWS", rectangle)):
            monkeypatch.setattr(network_module, name, value)
        monkeypatch.setattr(threads, "_SHARING_PAYS", 0)
        clip = Clip("flat", shares(2))
        with NetworkModel(
            X, targets, weights, net, clip, radius=RADIUS, unit=UNIT, dtype=dtype, batch_size=300, n_threads=n_threads
        ) as model:
            for each in (theta, -theta, theta):  # tables are packed in the same room in each step
                last = model.clipped_gradient_sum(each, None, 0.4)
            found.add(last.tobytes())
    assert len(found) == 1


@over_combinations(dtype=DTYPES, kind=CLIPPINGS, activation=ACTIVATIONS)
def test_what_a_row_adds_does_not_depend_on_its_place(activation, kind, dtype):
    """Bit by bit, and whoever is beside it, so that a row that is missing changes no other row's gradient."""
    net = network(activation=activation)
    X, targets, weights, theta = people(40, net, dtype=dtype)
    weights[:] = 0.0
    weights[11] = 1.0
    model = model_of(X, targets, weights, net, kind, dtype=dtype)
    lots = ([11], [3, 11], list(range(12)), [*range(11), *range(12, 40), 11], [0] * 200 + [11])
    found = {model.clipped_gradient_sum(theta, np.array(lot), 0.4).tobytes() for lot in lots}
    assert len(found) == 1


# --- properties 1, 4, 5 and 6: one row moves the sum by at most C ---


def norm_of(vector):
    top = np.max(np.abs(vector), initial=0.0)
    return float(top * np.linalg.norm(vector / top)) if 0.0 < top < np.inf else float(top)


def contribution(x, target, weight, theta, net, kind, max_norm, *, dtype=np.float64, radius=RADIUS, unit=UNIT):
    """What one row adds to the sum: the sum over that row alone."""
    targets = np.array([target]) if net.loss == "softmax" else np.full((1, net.widths[-1]), target, "f4")
    model = model_of(np.asarray(x)[None], targets, np.array([weight]), net, kind, dtype=dtype, radius=radius, unit=unit)
    return model.clipped_gradient_sum(np.asarray(theta, dtype), None, max_norm)


def assert_within_clip(g, max_norm, dtype):
    assert np.all(np.isfinite(g))
    assert norm_of(g) <= max_norm * (1 + 4 * float(np.finfo(dtype).eps))


SIZES, CLIPS = (0.0, 1.0, 1e12, 1e30, math.inf, math.nan), (0.25, 1e-30, 1e30)
LENGTHS = [0.0, 1e-45, 1e-30, 1e-3, 1.0, 1e9, 1e38]


@over_combinations(loss=OUTPUTS, kind=CLIPPINGS, dtype=DTYPES)
def test_one_row_adds_at_most_the_clip(loss, kind, dtype):
    """Any length, weight and clip; small, huge and lost parameters: finite, and at most C (1 + 4 ulp)."""
    rng = np.random.default_rng(3)
    direction = rng.normal(size=5)
    direction /= np.linalg.norm(direction)
    lengths = LENGTHS + [1e308] * (dtype == np.float64)
    grid = covering([("relu", "tanh"), lengths, SIZES, (1e-30, 0.3, 1.0), CLIPS], 2)
    for activation, length, size, weight, max_norm in grid:
        net = network(loss=loss, activation=("relu", "tanh")[activation])
        start = SIZES[size] * rng.normal(size=net.n_parameters)
        x, max_norm = (direction * lengths[length]).astype(dtype), CLIPS[max_norm]
        g = contribution(x, 1, (1e-30, 0.3, 1.0)[weight], start, net, kind, max_norm, dtype=dtype)
        assert_within_clip(g, max_norm, dtype)


@over_rows("kind", CLIPPINGS)
@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    weight=st.floats(-37, 0), size=st.floats(-37, 30), last=st.floats(-37, 30), clip=st.floats(-30, 30),
    unit=st.floats(-6, 6), loss=st.sampled_from(list(OUTPUTS)), activation=st.sampled_from(list(ACTIVATIONS)),
    seed=st.integers(0, 10**6),
)  # fmt: skip
def test_no_product_of_magnitudes_adds_more(kind, weight, size, last, clip, unit, loss, activation, seed):
    """In float32, over its whole range: tiny derivatives under huge activations and the reverse, at any clip."""
    net = network((4,), d=3, loss=loss, activation=activation)
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=net.n_parameters) * 10.0**size
    net.tables(theta)[-1][:] *= 10.0 ** min(last, 37.0 - max(size, 0.0)) / 10.0 ** max(size, -37.0)
    with np.errstate(over="ignore"):
        g = contribution(
            rng.normal(size=3), 1, 10.0**weight, theta, net, kind, 10.0**clip, dtype=np.float32, unit=10.0**unit
        )
    assert_within_clip(g, 10.0**clip, np.float32)


def test_a_derivative_whose_square_vanishes_is_clipped_too():
    """Float32 squares of 1e-24 are 0: at C = 1e-30 a derivative of 1e-24 was once seen as one of norm 0."""
    net = network((), loss="squared_error", activation="identity")
    for target in (1e-18, 1e-20, 1e-22, 1e-24, 1e-28, 1e-31):  # the derivative, at a score of 0
        g = contribution(np.full(5, 0.5), target, 1.0, np.zeros(6), net, "flat", 1e-30, dtype=np.float32)
        assert_within_clip(g, 1e-30, np.float32)


@over_rows("kind", CLIPPINGS)
def test_a_factor_above_one_makes_no_number_infinite(kind):
    """Of automatic clipping: large activations, tiny derivatives and a huge clip once added infinity in float32."""
    net = network((4, 30), d=3, loss="squared_error", activation="identity")
    theta = np.zeros(net.n_parameters)
    first, second, _ = net.tables(theta)
    for size in (1e6, 1e10, 1e15, 1e18):
        first[:], second[:] = size, 1e-15  # the narrower factor in the second layer is the large one
        for target in (1e-30, 1e-20, 1e-10, 1.0):  # the derivative, at a score of 0
            for max_norm in (1e15, 1e22, 1e30):
                g = contribution([1.0, 0.5, 0.2], target, 1.0, theta, net, kind, max_norm, dtype=np.float32)
                assert_within_clip(g, max_norm, np.float32)


@over_rows("dtype", DTYPES)
@over_rows("kind", CLIPPINGS)
def test_one_row_reaches_the_clip_less_the_room_for_rounding(kind, dtype):
    """The bound is not met by adding nothing: 0.1 % below C in float32, a part in 1e11 in float64."""
    net = network((4, 3))
    theta = np.random.default_rng(4).normal(size=net.n_parameters)
    for max_norm in (1e-30, 1e-3, 0.01):
        g = contribution([0.6, 0.8, 0.1, -0.4, 0.2], 1, 1.0, theta, net, kind, max_norm, dtype=dtype)
        room = reference.room_for_rounding(dtype, net.widths)
        least = max_norm / room * (0.99 if kind == "automatic" else 1.0)
        assert least * (1 - 32 * float(np.finfo(dtype).eps)) < norm_of(g) <= max_norm
        assert room < (1.0011 if dtype == np.float32 else 1 + 1e-11)


def test_layers_have_bounds_of_their_own_that_are_reached_together():
    """Property 4: every part at its C_k, the whole at sqrt(sum C_k**2) = C: reached, and never exceeded."""
    net, max_norm = network((4, 3), activation="relu"), 0.7
    bounds = max_norm * np.array(shares(3, "per_layer"))
    together = 0
    rng = np.random.default_rng(5)
    for length in (1.0, 1e3, 1e-3) * 100:
        x, theta = rng.normal(size=5), length * rng.normal(size=net.n_parameters)
        g = contribution(x, int(rng.integers(3)), 1.0, theta, net, "per_layer", max_norm)
        norms = np.array([np.linalg.norm(table) for table in net.tables(g)])
        assert np.all(norms <= bounds)
        assert np.linalg.norm(g) <= max_norm
        if np.all(norms > 0.999 * bounds):
            assert np.linalg.norm(g) == pytest.approx(max_norm, rel=1e-10)
            together += 1
    assert 10 < together < 290


@over_combinations(dtype=DTYPES, kind=CLIPPINGS, activation=ACTIVATIONS)
def test_a_row_that_overflows_leaves_the_others_alone(activation, kind, dtype):
    """Property 6: a row whose values in a deep layer are beyond range adds exactly zero."""
    net = network((4, 3), activation=activation)
    X, targets, _, theta = people(21, net, dtype=dtype)
    X[8] = 0.0
    tables = net.tables(theta)
    tables[1][:] = 0.0  # the others' values stay small
    top = float(np.finfo(dtype).max)
    X[:, 4] = 0.0
    X[8, 4] = 1.0
    tables[0][4] = top / 4  # only the row 8 meets it
    tables[1][:-1, 0] = 1.0
    weights = np.ones(21)
    void = weights.copy()
    void[8] = 0.0
    others, whole = (
        model_of(X, targets, w, net, kind, dtype=dtype, unit=1e3).clipped_gradient_sum(theta, None, 0.4)
        for w in (void, weights)
    )
    assert np.linalg.norm(others) > 0.1
    if activation in ("tanh", "logistic"):  # these hold an infinite value at 1: a row like any other
        assert np.linalg.norm(whole - others) <= 0.4
    else:
        np.testing.assert_array_equal(whole, others)


@over_combinations(sparse=[False, True], loss=OUTPUTS, dtype=DTYPES, kind=CLIPPINGS)
def test_null_records_change_no_bit_of_sums(kind, dtype, loss, sparse):
    """A row of weight 0, or one that holds NaN or infinity, whatever else the row holds, intercepts included."""
    net = network(loss=loss)
    X, targets, _, theta = people(30, net, dtype=dtype)
    ones, void, top = np.ones(30), np.where(np.arange(30) == 7, 0.0, 1.0), float(np.finfo(dtype).max)

    def total(X, weights):
        rows = sp.csr_matrix(X) if sparse else X
        return model_of(rows, targets, weights, net, kind, dtype=dtype).clipped_gradient_sum(theta, None, 0.4)

    others = total(X, void)
    assert np.linalg.norm(others) > 0.1
    np.testing.assert_array_equal(total(X, np.zeros(30)), 0.0)
    for columns in (slice(1), slice(1, 3), slice(None)):
        for content, weights in (
            (0.0, void),
            (1e30, void),
            (-top, void),
            (np.nan, ones),
            (np.inf, ones),
            (-np.inf, ones),
        ):
            changed = X.copy()
            changed[7, columns] = content
            np.testing.assert_array_equal(total(changed, weights), others)


# --- rounding: in float32, other rows included, the sum moves by at most C ---


def moves(residuals, places, *, n_outputs=4, max_norm=1.0, dtype=np.float32, batch_size=512):
    """How far a sum moves when one of the rows is muted, over `places`: rows of zeros, so residuals are gradients."""
    n, net = len(residuals), Architecture((3, n_outputs), "relu", "logistic")
    X, theta = np.zeros((n, 3)), np.zeros(net.n_parameters, dtype)
    targets = np.broadcast_to(np.where(np.asarray(residuals) > 0, 0.0, 1.0)[:, None], (n, n_outputs)).astype("f4")
    # |p - y| = 1/2 at theta = 0: a gradient is as long as that, or as a quarter of C; weights say what is left of it.
    whole_length, clipped = math.sqrt(n_outputs) / 2.0, max_norm / 4.0 / reference.room_for_rounding(dtype, net.widths)
    times = 4.0 if clipped < whole_length else 1.0 / whole_length
    weights = np.minimum(np.abs(residuals) / (times * min(clipped, whole_length)), 1.0)

    def total(weights):
        model = model_of(X, targets, weights, net, dtype=dtype, batch_size=batch_size)
        return times * model.clipped_gradient_sum(theta, None, max_norm / 4.0)

    whole = total(weights)
    for place in places:
        void = weights.copy()
        void[place] = 0.0
        yield float(np.linalg.norm(whole - total(void)))


def on_the_edge_of_rounding(size, half=reference.SUMMED_BLOCK // 2):
    """Half a block of rows at the clip, half of rows that are lost or doubled by which side of `half` the sum is on.

    Casacuberta et al. (2022), "Widespread underestimation of sensitivity in differentially private libraries": one
    row fewer, and each of the small ones is rounded to another number.
    """
    return size * np.concatenate([np.ones(half), np.full(half, 1.02 * half * 2.0**-24)])


@over_combinations(1, half=[32, 64, 128, 512], n_outputs=[1, 2, 4, 16])
def test_rounding_on_the_edge_moves_the_sum_by_at_most_the_clip(n_outputs, half):
    """Without room for rounding the sum moves by 1.00098 C where 256 rows are a block, by 1.00024 C where 128 are.

    Rows exactly at C, and at what C leaves them.
    """
    room = reference.room_for_rounding(np.float32, (3, n_outputs))
    for size in (1.0, 1.0 / room, 0.999 / room, 2.0):
        alone = on_the_edge_of_rounding(size, half)
        assert max(moves(alone, (0, half // 2, half - 1), n_outputs=n_outputs)) <= 1.0
        halves = np.tile(alone, 3)
        assert max(moves(halves, (0, 2 * half + half // 3, 5 * half - 1), n_outputs=n_outputs)) <= 1.0


@over_rows(
    "residuals",
    [
        np.ones(256),
        np.ones(10_000),
        np.where(np.arange(10_000) % 2, 1.0, -1.0),
        np.where(np.arange(512) < 255, 1.0, -1.0),
        np.tile([1.0, 1e-4, -0.3, 1e-7], 200),
        10.0 ** np.random.default_rng(7).uniform(-8, 0, 1000),
        np.random.default_rng(8).choice([-1.0, 1.0, 1e-3, -1e-5], 1000),
    ],
)
@over_rows("dtype", DTYPES)
def test_rounding_moves_the_sum_by_at_most_the_clip(dtype, residuals):
    """Every muted row is one of the longest; 1e-12: sums of blocks are float64."""
    longest = np.flatnonzero(np.abs(residuals) == np.abs(residuals).max())
    for max_norm in (1.0, 0.3):
        places = longest[[0, len(longest) // 2, -1]]
        assert max(moves(residuals, places, max_norm=max_norm, dtype=dtype)) <= max_norm * (1 + 1e-12)


# --- scores ---


@over_combinations(dtype=DTYPES, sparse=[False, True], hidden=[(), (6,), (4, 1, 7)], activation=ACTIVATIONS)
def test_scores_are_those_of_the_plain_reading(activation, hidden, sparse, dtype):
    """Rows longer than the radius are scaled down to it, as in training."""
    net = network(hidden, activation=activation)
    X, _, _, theta = people(30, net, dtype=dtype)
    tables = net.tables(theta)
    coefs, intercepts = [table[:-1] for table in tables], [table[-1] for table in tables]
    found = network_scores(sp.csr_matrix(X) if sparse else X, RADIUS, coefs, intercepts, activation)
    plain = reference.Network(net.widths, activation, "softmax")
    expected = [reference.layer_values(reference.input_row(x, RADIUS, 1.0), plain, theta)[-1] for x in X]
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=0, atol=200 * float(np.finfo(dtype).eps) * np.abs(expected).max())


def test_rounding_in_small_chunks_moves_the_sum_by_at_most_the_clip():
    for batch_size in (1, 3, 100, 257):
        found = moves(np.tile(on_the_edge_of_rounding(1.0), 2), (0, 127), batch_size=batch_size)
        assert max(found) <= 1.0 + 1e-12
