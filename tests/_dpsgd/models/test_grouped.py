"""Models of rows that repeat: the sums, the lots and the fits of all rows, from the distinct ones."""

import json
import math
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from combinations import combined, over_rows
from guarantee_cases import ESTIMATORS, FULL, POISSON, assert_same_value, seeded
from interrupts import StopAfter
from linear_rows import n_parameters_of
from replay import assert_all_else_is_equal, moves, replay
from scipy.stats import ks_2samp
from test_one_hot import geometry_of, rows_of

from skdp import AddRemove, DPLogisticRegression, PrivacyAccountant
from skdp._dpsgd import solver
from skdp._dpsgd.loop import constant, last_iterate, momentum_sgd, run_dpsgd
from skdp._dpsgd.models.duplicate_rows import GroupedModel, Groups, find_groups, taken
from skdp._dpsgd.models.linear import LinearGeometry, LinearModel
from skdp._dpsgd.models.linear_layouts import WideLinearModel
from skdp._dpsgd.models.network import Architecture, Clip, NetworkModel
from skdp._dpsgd.models.one_hot import OneHotModel
from skdp._dpsgd.plan import DPSGDPlan
from skdp._kernels.losses import LOGISTIC, MULTINOMIAL
from skdp.mechanisms import GaussianMechanism
from skdp.mechanisms.sampling import FullBatch, PoissonSampling, sampling_at
from skdp.mechanisms.streams import SecretStream

FALSE_ALARM = 1e-6
U = 2.0**-53
N, N_DISTINCT, CLIP = 900, 60, 0.3
WIDTHS = (3, 2, 4, 300)


def stream(seed=0):
    return SecretStream.from_random_state(seed, "test")


class Table:
    """Rows of which each repeats one of `N_DISTINCT`, their targets and weights, and which group each row is in."""

    def __init__(self, form, n_classes, seed=0):
        rng = np.random.default_rng(seed)
        self.group = np.concatenate([np.arange(N_DISTINCT), rng.integers(0, N_DISTINCT, N - N_DISTINCT)])
        base = rng.integers(-2, 3, (N_DISTINCT, 6)) / 2.0
        base[:, 0] = np.arange(N_DISTINCT) / 30.0
        self.values = rng.integers(0, n_classes, N_DISTINCT)[self.group]
        self.weights = rng.choice([0.0, 0.5, 1.0, 1e-6], N_DISTINCT)[self.group]
        if form == "codes":
            levels = [rng.integers(0, width, N_DISTINCT) for width in WIDTHS]
            levels[3] = np.arange(N_DISTINCT)
            self.rows = rows_of(WIDTHS, [each[self.group] for each in levels])
        else:
            dtype = np.float32 if "float32" in form else np.float64
            base = base.astype(dtype)[self.group]
            self.rows = sp.csr_matrix(base) if "sparse" in form else base
            self.weights = self.weights.astype(dtype)


def linear(form, n_outputs, *, by_lot):
    def make(rows, values, weights):
        return LinearModel(rows, values, weights, n_outputs, LinearGeometry(1.5, True), by_lot=by_lot)

    return form, max(2, n_outputs), make


def wide(form, n_outputs):
    def make(rows, values, weights):
        return WideLinearModel(rows, values, weights, n_outputs, LinearGeometry(1.5, True), dtype=np.float64)

    return form, n_outputs, make


def of_codes(n_outputs):
    def make(rows, values, weights):
        loss = MULTINOMIAL if n_outputs > 1 else LOGISTIC
        return OneHotModel(rows, values, weights, n_outputs, geometry_of(WIDTHS), loss=loss)

    return "codes", max(2, n_outputs), make


def network(form, clipping, n_outputs, loss="softmax", activation="tanh"):
    architecture = Architecture((6, 5, n_outputs), activation, loss)

    def make(rows, values, weights):
        return NetworkModel(
            rows, values, weights, architecture, Clip(clipping, (1 / np.sqrt(2),) * 2), radius=1.5, unit=1.0,
            dtype=np.float64, batch_size=41, target_dtype=np.float32,
        )  # fmt: skip

    return form, max(2, n_outputs), make


CASES = {
    **{
        f"{form}, {n_outputs} outputs, {'lots' if by_lot else 'all'}": linear(form, n_outputs, by_lot=by_lot)
        for form, n_outputs in (("float32", 3), ("float64", 1), ("sparse float32", 1), ("sparse float64", 3))
        for by_lot in (False, True)
    },
    "wide float64": wide("float64", 7),
    "wide sparse": wide("sparse float64", 7),
    "codes, 3 outputs": of_codes(3), "codes, 1 output": of_codes(1),
    "network": network("float64", "flat", 3), "sparse network": network("sparse float64", "per_layer", 3),
    "one output": network("float64", "automatic", 1, "logistic", activation="relu"),
}  # fmt: skip


SUMS_OF_NO_BLAS = ("float32,", "float64,", "sparse float", "codes,")


def models_of(name):
    """The table of a case, its model of all rows, and that of its distinct rows."""
    form, n_classes, make = CASES[name]
    data = Table(form, n_classes)
    groups = find_groups(data.rows, data.values, data.weights, math.inf)
    assert groups.first.tolist() == list(range(N_DISTINCT))
    np.testing.assert_array_equal(groups.copies, np.bincount(data.group))
    distinct = taken(data.rows, groups.first, data.rows.dtype)
    grouped = GroupedModel(make, groups, distinct, data.values, data.weights)
    return data, make(data.rows, data.values, data.weights), grouped


def theta_of(model, seed=1):
    return np.random.default_rng(seed).normal(size=n_parameters_of(model))


@over_rows("name", CASES)
def test_a_full_batch_has_the_sum_of_all_rows(name):
    """To the rounding of float64 sums, n C of which are at most 2 n u wrong, and of products (property 3)."""
    data, plain, grouped = models_of(name)
    assert grouped.n_rows == plain.n_rows == N
    theta = theta_of(plain)
    lots = "lots" in name
    lot = (np.arange(N_DISTINCT), np.bincount(data.group).astype(float)) if lots else None
    found = grouped.clipped_gradient_sum(theta, lot or grouped.draw_lot(FullBatch(), stream(), 0), CLIP)
    expected = plain.clipped_gradient_sum(theta, np.arange(N) if lots else None, CLIP)
    np.testing.assert_allclose(found, expected, rtol=0, atol=4 * N * N * CLIP * U)
    assert np.linalg.norm(expected) > 10 * CLIP


@over_rows("name", [name for name in CASES if "all" not in name])
def test_a_lot_has_the_sum_of_its_rows(name):
    data, plain, grouped = models_of(name)
    theta = theta_of(plain)
    for rate in (0.5, 0.02):
        lot = PoissonSampling(rate).rows(N, stream(3))
        counts = np.bincount(data.group[lot], minlength=N_DISTINCT)
        rows = np.flatnonzero(counts)
        found = grouped.clipped_gradient_sum(theta, (rows, counts[rows].astype(float)), CLIP)
        expected = plain.clipped_gradient_sum(theta, lot, CLIP)
        np.testing.assert_allclose(found, expected, rtol=0, atol=4 * N * N * CLIP * U)


@over_rows("name", [name for name in CASES if name.startswith(SUMS_OF_NO_BLAS)])
def test_the_gradient_of_a_row_does_not_depend_on_its_place(name):
    """Bit by bit: each of 10**9 copies would repeat a difference, and a row that is one less shifts the others.

    Rows are equal, and all but one have weight 0, so that a sum is the gradient of that one.
    """
    form, n_classes, make = CASES[name]
    data, n = Table(form, n_classes), 1100
    for row in (3, 17):
        rows, values = taken(data.rows, np.full(n, row), data.rows.dtype), data.values[[row] * n]
        sums = []
        for place in [0, 1, 3, 8, 255, 256, 511, 512, 1097, 1099]:
            weights = np.zeros(n, data.weights.dtype)
            weights[place] = 1.0
            model = make(rows, values, weights)
            sums.append(model.clipped_gradient_sum(theta_of(model), np.arange(n) if "lots" in name else None, CLIP))
        assert np.linalg.norm(sums[0]) > 0.01
        assert all((each == sums[0]).all() for each in sums)


# --- sampling ---


def test_lots_have_the_sums_of_poisson_lots():
    """Two samples of the first step's sum along a direction, by Kolmogorov and Smirnov, at a false alarm of 1e-6."""
    _, plain, grouped = models_of("float64, 1 outputs, lots")
    theta, direction = theta_of(plain), theta_of(plain, 2)
    sampling, sums = PoissonSampling(0.05), []
    for seed, model in enumerate((plain, grouped)):
        source = stream(seed)
        lots = (model.draw_lot(sampling, source, step) for step in range(3000))
        sums.append([model.clipped_gradient_sum(theta, lot, CLIP) @ direction for lot in lots])
    assert len(set(sums[0])) > 2900
    assert len(set(sums[1])) > 2900
    assert ks_2samp(*sums).pvalue > FALSE_ALARM


def test_lots_come_from_streams_of_their_steps():
    """Nothing is drawn from the stream of sampling, whose position is in checkpoints; a step's lot is its own."""
    _, _, grouped = models_of("float64, 1 outputs, lots")
    source, sampling = stream(), PoissonSampling(0.3)
    lots = [grouped.draw_lot(sampling, source, step) for step in (0, 1, 0)]
    assert source.position == (0, 0)
    np.testing.assert_array_equal(lots[0][1], lots[2][1])
    assert lots[0][1].tolist() != lots[1][1].tolist()
    assert all((counts > 0).all() for _, counts in lots)


@over_rows("rate", [1.0, 0.1])
def test_noise_and_divisor_are_those_of_all_rows(rate):
    """Null records: what is left of a run is noise over the public lot size, the same number for number."""
    X, y = np.ones((500, 3)), np.zeros(500, int)
    groups = Groups(np.array([0]), np.array([500]))

    def make(rows, values, weights):
        return LinearModel(rows, values, weights, 1, LinearGeometry(2.0, True), by_lot=rate < 1.0)

    plan = DPSGDPlan(sampling_at(rate), 0.5, 1.0, 20, 500 * rate)
    results = [
        run_dpsgd(
            model, plan, momentum_sgd(constant(1.0), 0.9, 0.0), np.zeros(4), stream(5), averaging=last_iterate(),
            on_step=lambda step: None,
        )[0]
        for model in (make(X, y, 0.0), GroupedModel(make, groups, X[:1], y, 0.0))
    ]  # fmt: skip
    np.testing.assert_array_equal(*results)


# --- fits ---


def repeated(draw, n=320, n_distinct=20, n_classes=2, dtype=np.float64):
    X, y = draw(n_distinct, n_classes=n_classes)
    pick = np.random.default_rng(0).integers(0, n_distinct, n)
    return X[pick].astype(dtype), y[pick]


@pytest.fixture
def grouped_fits(monkeypatch):
    """Numbers of groups of the fits so far."""
    found, init = [], GroupedModel.__init__

    def recorded(self, make, groups, *arguments):
        found.append(len(groups.first))
        init(self, make, groups, *arguments)

    monkeypatch.setattr(GroupedModel, "__init__", recorded)
    return found


@combined(1, kind=ESTIMATORS, n_classes=[2, 3], dtype=[np.float64, np.float32])
def test_a_full_batch_fit_is_the_same_but_for_rounding(draw, kind, n_classes, dtype, grouped_fits):
    """A network for float32 rows has products and the clip of one for float64 rows, and float32 parameters."""
    X, y = repeated(draw, n_classes=n_classes, dtype=dtype)
    weights = np.where(X[:, 0] > 0, 1.0, 0.25)
    single = dtype == np.float32 and kind in ("network", "regression")
    one = seeded(n_classes, kind, merge_equal_rows=True, **FULL).fit(X, y, weights)
    plain = X.astype(np.float64) if single else X
    other = seeded(n_classes, kind, merge_equal_rows=False, **FULL).fit(plain, y, weights)
    assert grouped_fits == [20]
    for name in vars(one).keys() - {"merge_equal_rows"}:
        if name in ("coef_", "coefs_", "intercept_", "intercepts_"):
            for a, b in zip(getattr(one, name), getattr(other, name), strict=True):
                assert a.dtype == (np.float32 if single else np.float64)
                np.testing.assert_allclose(a, b, rtol=0, atol=1e-4 if single else 1e-9)
        else:
            assert_same_value(name, getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("kind", ["linear", "network"])
def test_nothing_tells_how_many_groups_there_were(draw, kind, grouped_fits, monkeypatch):
    """With the noise alone released: models, files and warnings are the same, full batch or sampled."""
    monkeypatch.setattr(GaussianMechanism, "release", lambda self, value, source: self._add_noise(0.0 * value, source))
    for parameters in (FULL, POISSON):
        grouped_fits.clear()
        pickles = []
        for n_distinct in (1, 300):
            X, y = repeated(draw, n_distinct=n_distinct)
            y[0], y[1] = 0, 1
            with warnings.catch_warnings(record=True, action="always") as caught:
                model = seeded(kind=kind, merge_equal_rows=True, **parameters).fit(X, y)
            model.__dict__.pop("_fitted_releases")  # each has a random id
            pickles.append((pickle.dumps(model), repr(model), [str(each.message) for each in caught]))
        assert len(set(grouped_fits)) == 2
        assert pickles[0] == pickles[1]


# --- the choice ---


@over_rows(
    ("kind", "dtype", "parameters", "grouped"),
    [
        ("linear", np.float64, FULL, True),
        ("trees", np.float32, FULL, True),
        ("linear", np.float64, {"sampling_rate": 0.5, "max_iter": 2}, True),
        ("linear", np.float64, {"sampling_rate": 0.49, "max_iter": 2}, False),
        ("linear", np.float64, {**FULL, "merge_equal_rows": False}, False),
        ("linear", np.float64, {"sampling_rate": 0.1, "max_iter": 2, "merge_equal_rows": True}, True),
        ("network", np.float32, FULL, False),
        ("network", np.float32, {**FULL, "adjacency": AddRemove(300)}, True),
    ],
)
def test_auto_groups_where_it_pays_and_rounding_is_that_of_float64(
    draw, kind, dtype, parameters, grouped, grouped_fits, monkeypatch
):
    grouped_fits.clear()
    monkeypatch.setattr(solver, "_LEAST_LOT", 16)
    X, y = repeated(draw, dtype=dtype)
    seeded(kind=kind, **parameters).fit(X, y)
    assert grouped_fits == ([20] if grouped else [])


def test_merge_equal_rows_invalid_raises_before_charge(draw, tmp_path):
    X, y = repeated(draw)
    mapped = np.memmap(tmp_path / "rows", np.float64, "w+", shape=(100, 3))
    accountant = PrivacyAccountant()
    for value in ("always", None, 1, np.ones(2)):
        with pytest.raises(ValueError, match=r"\A`merge_equal_rows` must be True, False or 'auto', got .*\.\Z"):
            seeded(merge_equal_rows=value, accountant=accountant).fit(X, y)
    with pytest.raises(
        ValueError, match=r"\Amerge_equal_rows=True is not supported for data that are not in memory.*False\.\Z"
    ):
        seeded(merge_equal_rows=True, classes=[0, 1], accountant=accountant).fit(mapped, np.arange(100) % 2)
    assert len(accountant.history) == 0


# --- order, interrupts, files ---


def test_a_file_does_not_tell_how_rows_repeat(draw, tmp_path, monkeypatch, grouped_fits):
    """Positions of the streams of a seeded, sampled run are the same."""
    monkeypatch.setattr(solver, "_LEAST_LOT", 16)
    monkeypatch.setattr(DPLogisticRegression, "_make_progress", lambda *arguments: StopAfter(13, SystemError("killed")))
    headers = []
    for n_distinct in (2, 20, 300):
        X, y = repeated(draw, n_distinct=n_distinct)
        y[0], y[1] = 0, 1
        path = tmp_path / f"{n_distinct}.npz"
        with pytest.raises(SystemError):
            seeded(checkpoint=path, merge_equal_rows=True, **POISSON).fit(X, y)
        with np.load(path) as file:
            header = {**json.loads(bytes(file["header"])), "receipt": ""}
        assert list(header.pop("noisy_sums")) == ["class counts"]  # with noise; of other labels
        headers.append(header)
    assert headers[0] == headers[1] == headers[2]
    assert len(grouped_fits) == 3
    assert headers[0]["n_done"] == 12


@over_rows(
    ("kind", "n_distinct", "merge", "grouped"),
    [
        *((kind, 20, True, [20, 21]) for kind in ESTIMATORS),
        *((kind, 40, "auto", [40]) for kind in ("linear", "network")),
    ],
)
def test_muting_a_copy_moves_releases_by_the_clip_and_nothing_else(
    draw, kind, n_distinct, merge, grouped, grouped_fits, monkeypatch
):
    """A muted row is a group of its own, of weight 0. By itself, a fit merges 40 groups of 320 rows, and not 41."""
    grouped_fits.clear()
    monkeypatch.setattr(solver, "_LEAST_LOT", 16)
    X, y = repeated(draw, n_distinct=n_distinct)
    X[:n_distinct], y[:n_distinct] = draw(n_distinct)
    weights = np.ones(320)
    weights[300] = 0.0
    one, other = replay(
        lambda given: seeded(kind=kind, merge_equal_rows=merge, max_grad_norm=0.05, **FULL).fit(X, y, given),
        np.ones(320), weights,
    )  # fmt: skip
    assert grouped_fits == grouped
    assert 0.01 < max(moves(one, other)) <= 1 + 1e-9
    if merge is True:
        assert_all_else_is_equal(one, other)


def test_an_interrupt_of_the_search_leaves_the_start_and_the_charge(draw, monkeypatch):
    X, y = repeated(draw)
    accountant = PrivacyAccountant()

    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(solver, "find_groups", interrupted)
    with pytest.warns(UserWarning, match="after 0 of 30 steps"):
        model = seeded(accountant=accountant, merge_equal_rows=True, **FULL).fit(X, y)
    assert len(accountant.history) == 1
    assert model.n_steps_ == 0
    np.testing.assert_array_equal(model.coef_, 0.0)
