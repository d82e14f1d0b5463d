"""Models of units of several rows: the clipped gradients of a unit are added up, and their sum is clipped too."""

import numpy as np
import pytest
import scipy.sparse as sp
from combinations import over_combinations, over_rows
from linear_rows import n_parameters_of

from skdp._checks.groups import read_units
from skdp._dpsgd.models import network
from skdp._dpsgd.models.linear import MOST_PAIRED, LinearGeometry, LinearModel, UnitLayout
from skdp._dpsgd.models.network import Architecture, Clip, NetworkModel
from skdp._dpsgd.models.one_hot import Blocks, OneHotForm, OneHotGeometry, OneHotModel, OneHotRows
from skdp._kernels import threads
from skdp._kernels.losses import LOSSES
from skdp.mechanisms.sampling import FullBatch, PoissonSampling
from skdp.mechanisms.streams import SecretStream

C = 0.4
WIDTHS = (3, 5, 2, 17, 40, 4)
KINDS = ["linear", "linear by rows", "linear by lot", "sparse", "float32", "softmax", "trees", "trees softmax",
         "trees squares", "network", "network softmax", "network per layer", "network tanh"]  # fmt: skip
WIDE = {
    "network softmax": np.asarray,
    "network per layer": lambda X: X.astype(np.float32),
    "network tanh": sp.csr_matrix,
}
"""Networks of which the products of rows at the input are computed once, and the rows that they are given."""


def labels_of(rng, n, *, long=True):
    """Units of 1 to 7 rows, in no order, and one of more rows than pairs are made of."""
    labels = rng.integers(0, n // 3, n)
    if long:
        labels[: 2 * MOST_PAIRED] = n
    return rng.permutation(labels)


class Made:
    """Rows of one kind of model: a model of all of them with units, and one of a few without."""

    def __init__(self, kind, rng, n, d=6):
        self.kind, self.n, self.n_outputs = kind, n, 3 if "softmax" in kind else 1
        self.d = 300 if kind == "linear by rows" else 9 if kind in WIDE else d
        self.X = rng.uniform(-1, 1, (n, self.d))
        self.levels = [rng.integers(0, width, n) for width in WIDTHS]
        self.y = rng.uniform(-1, 1, n) if "squares" in kind else rng.integers(0, max(2, self.n_outputs), n)
        self.weights = rng.uniform(0, 1, n)
        self.theta = rng.normal(size=n_parameters_of(self.model(np.arange(4))))

    def model(self, rows, units=None, n_threads=1):
        y, weights = self.y[rows], self.weights[rows]
        if "trees" in self.kind:
            blocks = Blocks(WIDTHS)
            codes = blocks.empty_codes(len(rows))
            blocks.encode([each[rows] for each in self.levels], codes)
            geometry = OneHotGeometry(OneHotForm(blocks, (0.7, 1.2, 0.9, 1.5, 0.4, 1.1), 4), 0.2)
            loss = "softmax" if self.n_outputs > 1 else "squared_error" if "squares" in self.kind else "logistic"
            return OneHotModel(
                OneHotRows(blocks, codes, 6), y, weights, self.n_outputs, geometry, loss=LOSSES[loss], units=units
            )
        if "network" in self.kind:
            loss = "softmax" if self.n_outputs > 1 else "logistic"
            activation = "tanh" if "tanh" in self.kind else "relu"
            clip = Clip("per_layer" if "per layer" in self.kind else "flat", (2**-0.5,) * 2)
            targets = y if self.n_outputs > 1 else y.astype(np.float32)[:, None]
            X = WIDE.get(self.kind, np.asarray)(self.X[rows])
            return NetworkModel(
                X, targets, weights, Architecture((self.d, 7, self.n_outputs), activation, loss), clip,
                radius=2.0, unit=1.0, dtype=np.float64, batch_size=100, units=units,
                n_threads=n_threads,
            )  # fmt: skip
        X = self.X[rows].astype(np.float32 if self.kind == "float32" else np.float64)
        X = sp.csr_matrix(X) if self.kind == "sparse" else X
        geometry, by_lot = LinearGeometry(self.d**0.5, True), self.kind == "linear by lot" and units is not None
        return LinearModel(X, y, weights, self.n_outputs, geometry, by_lot=by_lot, units=units)

    def plain(self, labels, chosen):
        """Sum over units of clipped sums of clipped gradients, unit by unit."""
        total = np.zeros(len(self.theta))
        for unit in chosen:
            found = self.model(np.flatnonzero(labels == unit)).clipped_gradient_sum(self.theta, None, C)
            total += found * min(1.0, C / max(np.linalg.norm(found), 1e-300))
        return total


@over_rows("kind", KINDS)
def test_sums_agree_with_the_plain_reading(kind):
    rng = np.random.default_rng(0)
    made, labels = Made(kind, rng, 700), labels_of(rng, 700)
    layout = UnitLayout(read_units(labels, 700))
    model = made.model(layout.order, layout)
    tolerance = 1e-6 if kind == "float32" else 1e-10
    if kind != "linear by lot":
        found = model.clipped_gradient_sum(made.theta, None, C)
        np.testing.assert_allclose(found, made.plain(labels, np.unique(labels)), atol=tolerance)
    if kind not in ("linear", "linear by rows", "float32", "softmax"):  # stored by columns, for all rows
        numbers = np.union1d(np.flatnonzero(rng.random(layout.n_units) < 0.3), [layout.n_units - 1])
        chosen = labels[layout.order[layout.starts[numbers]]]
        found = model.clipped_gradient_sum(made.theta, numbers, C)
        np.testing.assert_allclose(found, made.plain(labels, chosen), atol=tolerance)


@over_combinations(kind=KINDS, size=[1, 10, MOST_PAIRED, MOST_PAIRED + 1, 1000], rows=["copies", "opposite", "any"])
def test_a_unit_moves_the_sum_by_the_clip_at_most(kind, size, rows):
    """Copies of one row reach C; rows that cancel out leave room for rounding alone."""
    rng = np.random.default_rng(1)
    made = Made(kind, rng, 60 + size)
    unit = slice(60, None)
    made.weights[unit] = 1.0
    if rows != "any":
        made.X[unit] = made.X[60]
        for each in made.levels:
            each[unit] = each[60]
        made.y[unit] = made.y[60]
    if rows == "opposite" and "squares" not in kind:
        made.y[unit] = np.arange(size) % 2
    labels = np.concatenate([rng.integers(0, 20, 60), np.full(size, 99)])
    layout = UnitLayout(read_units(labels, len(labels)))
    with_unit = made.model(layout.order, layout)
    without = UnitLayout(read_units(labels[:60], 60))
    rest = made.model(without.order, without)
    lots = (np.arange(layout.n_units), np.arange(without.n_units)) if kind == "linear by lot" else (None, None)
    sums = [model.clipped_gradient_sum(made.theta, lot, C) for model, lot in zip((with_unit, rest), lots, strict=True)]
    moved = np.linalg.norm(sums[0] - sums[1])
    assert moved <= C * (1 + 1e-9)
    alone = np.linalg.norm(made.model(np.arange(60, 61)).clipped_gradient_sum(made.theta, None, C))
    if rows == "copies" and size * alone > C:
        assert moved >= C * (1 - 1e-6)


@pytest.mark.parametrize("kind", ["network", "network softmax"])
def test_spans_of_a_network_change_no_bit(monkeypatch, kind):
    """A group is clipped in the span in which it begins, wherever spans end."""
    rng = np.random.default_rng(5)
    made, labels = Made(kind, rng, 400), labels_of(rng, 400, long=False)
    layout = UnitLayout(read_units(labels, 400))
    monkeypatch.setattr(network, "_SPAN_SIZE", 1)
    monkeypatch.setattr(threads, "_SHARING_PAYS", 0)
    sums = set()
    for n_threads, span in ((1, 96), (2, 6), (2, 12)):
        monkeypatch.setattr(network, "_SPAN_ROWS", span)
        with made.model(layout.order, layout, n_threads) as model:
            sums.add(model.clipped_gradient_sum(made.theta, None, C).tobytes())
    assert len(sums) == 1


def test_units_are_drawn_whatever_their_rows():
    """Units of two rows; then two of them have many rows, which come last, and shift no other one."""
    sizes, sampling, drawn = np.full(300, 2), PoissonSampling(0.5), []
    for size in (2, 3 * MOST_PAIRED):
        sizes[[10, 40]] = size
        labels = np.repeat(np.arange(300), sizes)
        made, layout = Made("trees", np.random.default_rng(3), len(labels)), UnitLayout(read_units(labels, len(labels)))
        model = made.model(layout.order, layout)
        assert model.draw_lot(FullBatch(), SecretStream.from_random_state(0, "test"), 0) is None
        lot = model.draw_lot(sampling, SecretStream.from_random_state(0, "test"), 0)
        assert 100 < len(lot) < 200
        assert (np.diff(lot) > 0).all()
        drawn.append({int(labels[layout.order[layout.starts[number]]]) for number in lot})
    assert drawn[0] == drawn[1]
