"""Dense networks: their parameters as one flat vector, their scores, and clipped gradient sums over lots of rows.

A row's gradient in a layer is the outer product of the layer's input ``a`` (with a 1 for the intercept) and of the
derivative ``delta`` of the loss by the layer's output, so its Euclidean norm is ``|a| |delta|`` and that of the whole
gradient the root of the sum of their squares (Goodfellow 2015, "Efficient per-example gradient computations"; "ghost
clipping", Li et al. 2022). To clip a row is to multiply either factor; the sum of all rows' clipped gradients is then a
matrix product. No row's gradient is ever in memory.

**Rounding.** The products are in the dtype of the rows. Two neighboring lots differ in one row. All other rows keep
their places and the bits of both their factors (`skdp._kernels.tiles`), so the lots differ in one block of at
most `SUMMED_ROWS` rows. Rounding changes the sum of a block of b rows, none longer than C, by at most
``u b (b + 3) / 2`` times C in each of the two lots: each of the b products has an error of at most the unit roundoff u
times itself (none where multiply and add are fused), and each of the b - 1 additions of u times a partial sum, whatever
their order. Norms of rows of width w have a relative error of at most ``u (w + 8)``. Gradients are therefore clipped to
``C / (1 + u (b (b + 3) + w + 8))``, a thousandth below C in float32, so that one row changes the sum by at most C,
rounding included. Sums of blocks are float64. The bound grows with the square of b and the cost of the float64
additions falls with its inverse: 128 rows leave it at a twentieth of the product's.

**Units.** With units of several rows a neighbor may have more rows or fewer, which shifts the places of all others:
products are in float64 then, as under ``add_remove``. The rows of a unit are clipped first and then their sum, whose
norm comes from products of pairs of rows (`skdp._kernels.dense.clip_units`) or, for many rows, from the sum itself.

**Threads** share a chunk's rows until each row is clipped, and the parameters after that. Every number is computed in
one order, so their number changes no bit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._dpsgd.models.linear import MOST_PAIRED, SpanModel, UnitLayout, blocks_of, row_scales, unit_room
from skdp._kernels import dense as kernel
from skdp._kernels import losses, spans, tiles
from skdp._kernels.threads import WorkerPool

ACTIVATIONS = {
    "identity": kernel.IDENTITY, "logistic": kernel.LOGISTIC, "tanh": kernel.TANH, "relu": kernel.RELU,
}  # fmt: skip
CLIPPINGS = {"flat": kernel.FLAT, "per_layer": kernel.PER_LAYER, "automatic": kernel.AUTOMATIC}

_SPAN_ROWS, _SPAN_SIZE = 96, 1 << 22  # rows of a span, at least, and their multiplications
_RECTANGLE_ROWS, _RECTANGLE_COLUMNS = 96, 256  # of a table of sums, at most, so that they stay in a core's cache
_STABILITY = 0.01  # gamma of automatic clipping (Bu et al. 2023, section 3.3)
_PREDICTED_ROWS, _PREDICTED_VALUES = 4096, 1 << 22

Rows = NDArray[np.int64] | None


@dataclass(frozen=True)
class Architecture:
    """Widths of a dense network's layers, input and output included, its activation and its loss, of `losses.LOSSES`.

    `limit` is that of the losses that have one (`skdp._kernels.losses`). A layer's parameters are a table of shape
    (inputs + 1, outputs) whose last row is the intercepts; the tables follow one another in the flat vector.
    """

    widths: tuple[int, ...]
    activation: str
    loss: str
    limit: float = math.inf

    @property
    def n_layers(self) -> int:
        """Layers that have parameters."""
        return len(self.widths) - 1

    @property
    def n_parameters(self) -> int:
        return count_parameters(self.widths)

    def tables(self, theta: np.ndarray) -> list[np.ndarray]:
        """Views of the layers' tables in a flat vector."""
        return split_tables(theta, self.widths)


def count_parameters(widths: tuple[int, ...]) -> int:
    """Length of the flat vector of layers of these widths, input and output included."""
    return sum((inputs + 1) * outputs for inputs, outputs in pairwise(widths))


def split_tables(theta: np.ndarray, widths: tuple[int, ...]) -> list[np.ndarray]:
    """Views of the tables of layers, (inputs + 1, outputs), the last row of each its intercepts, in a flat vector."""
    views, start = [], 0
    for inputs, outputs in pairwise(widths):
        stop = start + (inputs + 1) * outputs
        views.append(theta[start:stop].reshape(inputs + 1, outputs))
        start = stop
    return views


def activate(activation: str, values: NDArray[np.floating]) -> None:
    """Apply an activation in place."""
    if activation == "relu":
        np.maximum(values, 0, out=values)
    elif activation == "tanh":
        np.tanh(values, out=values)
    elif activation == "logistic":  # by the hyperbolic tangent, which does not overflow
        values *= 0.5
        np.tanh(values, out=values)
        values += 1.0
        values *= 0.5


@dataclass(frozen=True)
class Clip:
    """Rule by which the gradients of rows are clipped.

    Parameters
    ----------
    kind : {"flat", "per_layer", "automatic"}
        "flat": the whole gradient g is multiplied by min(1, C / |g|) (Abadi et al. 2016). "per_layer": each layer's
        part, by its own bound C_k. "automatic": g by C / (|g| + 0.01) (Bu et al. 2023, "Automatic clipping").
    shares : tuple of float
        C_k / C of the layers, whose squares sum to at most 1.

    Notes
    -----
    **Guarantees.** No row's clipped gradient is longer than C: by construction for "flat" and "automatic"; for
    "per_layer" its square is at most the sum of the C_k**2, which is C**2, and this is reached.
    """

    kind: str
    shares: tuple[float, ...]

    def bounds(self, max_norm: float) -> NDArray[np.float64]:
        """C_k of each layer, of shape (n_layers,)."""
        return max_norm * np.asarray(self.shares)


class NetworkModel(SpanModel):
    """Rows, targets and weights of a dense network, ready for clipped gradient sums.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d), float32 or float64, C order
    targets : ndarray of shape (n,), int64, or (n, k)
        Numbers of the classes for the softmax, one column an output for other losses.
    weights : ndarray of shape (n,) or float
        In [0, 1]. They multiply clipped gradients; 0 makes a row a zeroed-out record.
    architecture : Architecture
    clip : Clip
    radius, unit : float
        Public: the norm to which rows are clipped, and what they are multiplied by after.
    dtype : dtype
        Of the arithmetic.
    batch_size : int
        Rows of a chunk; changes no result but by rounding.
    target_dtype : dtype or None
        In which targets of losses other than the softmax are kept. None keeps theirs.
    n_threads : int or None
        Number of threads; None is as many as can be at work. The result does not depend on it.
    units : UnitLayout or None
        Units of rows, which are side by side; `dtype` must be float64 then. None where each row is its own.
    """

    def __init__(
        self,
        X: Any,
        targets: np.ndarray,
        weights: NDArray[np.floating] | float,
        architecture: Architecture,
        clip: Clip,
        *,
        radius: float,
        unit: float,
        dtype: Any,
        batch_size: int,
        target_dtype: Any = None,
        n_threads: int | None = None,
        units: UnitLayout | None = None,
    ) -> None:
        self.units = units
        self.n_rows, self.architecture, self.clip = X.shape[0], architecture, clip
        is_softmax = architecture.loss == "softmax"
        targets = targets.reshape(self.n_rows, 1 if is_softmax else architecture.widths[-1])
        if not is_softmax:
            targets = targets.astype(target_dtype or targets.dtype)
        self._X, self._targets, self._dtype = X, targets, np.dtype(dtype)
        scale = row_scales(X, radius, unit)
        self._weights = np.where(scale > 0.0, weights, 0.0).astype(
            dtype
        )  # a row that overflows becomes a zeroed-out record
        # The rows at the input do not change from step to step, so their norms are computed once.
        self._scale, self._row_squares = scale, np.empty(self.n_rows)
        if isinstance(X, np.ndarray):
            kernel.row_squares(X, scale, self._row_squares)
        else:
            kernel.sparse_row_squares(X.data, X.indptr, scale, self._row_squares)
        self._pairs: NDArray[np.float64] = np.empty(0)
        if units is not None and architecture.widths[0] + 1 > architecture.widths[1]:  # or their rows are clipped
            self._pairs = _products_of_pairs(X, scale, units)
        self._rows_at_once = min(max(batch_size, 1 if units is None else MOST_PAIRED), max(1, self.n_rows))
        room, widths = -(-self._rows_at_once // tiles.ROWS) * tiles.ROWS, architecture.widths
        self._inputs = tuple(_aligned(room, width + 1, self._dtype) for width in widths[:-1])
        self._deltas = tuple(_aligned(room, width, self._dtype) for width in widths[1:])
        # The tables of the layers in panels; on the way back none is multiplied by that of the first layer.
        self._packed = tuple(_panels(above + 1, below, self._dtype) for above, below in pairwise(widths))
        self._packed_back = tuple(_panels(below, above, self._dtype) for above, below in pairwise(widths))
        self._pool = WorkerPool(n_threads)
        self._widest, self._widths = max(widths), np.array(widths)
        self._rectangles = np.array(self._cut_tables([(above + 1, below) for above, below in pairwise(widths)]))
        # Activations of NumPy, and sparse rows, have calls of their own.
        self._is_compiled = isinstance(X, np.ndarray) and architecture.activation in ("identity", "relu")
        loss = losses.LOSSES[architecture.loss]
        self._codes = ACTIVATIONS[architecture.activation], loss, architecture.limit, CLIPPINGS[clip.kind]
        self._tiny = float(np.finfo(self._dtype).tiny)
        # Gradients are clipped to C / slack; the proof is in the module's docstring under "Rounding".
        unit_roundoff = 0.5 * np.finfo(self._dtype).eps
        self._slack = 1.0 + unit_roundoff * (tiles.SUMMED_ROWS * (tiles.SUMMED_ROWS + 3) + self._widest + 8)

    def _sum_over(
        self, theta: np.ndarray, rows: Rows, span: tuple[int, int], max_norm: float, counts: Any = None, lot: Any = None
    ) -> np.ndarray:
        """See `SpanModel`: of shape (p,)."""
        self._pack(theta)
        total = np.zeros(self.architecture.n_parameters)
        for chunk, units in blocks_of(*span, self._rows_at_once, lot):
            start, m = chunk.start, chunk.stop - chunk.start
            size = m * len(total)
            # What is not shared is one call: for few rows or parameters calls would take as long as what they do.
            shared = self._pool.shares(size)
            row_spans = self._spans(m) if shared else [slice(0, m)]
            self._pool.share(partial(self._clip_span, rows, counts, start, max_norm / self._slack), row_spans, size)
            if lot is not None:
                starts, first = lot.starts[units.start : units.stop + 1], lot.first[units]
                squares = self._row_squares[chunk if rows is None else rows[chunk]]
                clip_units = partial(self._clip_units, starts, first, squares, max_norm / self._slack)
                self._pool.share(clip_units, row_spans, size)
            rectangles = np.split(self._rectangles, len(self._rectangles)) if shared else [self._rectangles]
            self._pool.share(partial(self._add_products, m, total), rectangles, size)
        return total

    def _pack(self, theta: np.ndarray) -> None:
        """Pack the tables of the layers, and those for the way back: transposed, without intercepts."""
        for k, table in enumerate(self.architecture.tables(theta)):
            tiles.pack(table, self._packed[k])
            if k:
                tiles.pack(table[:-1].T, self._packed_back[k])

    def _spans(self, m: int) -> list[slice]:
        """Cut a chunk into spans of rows, of whole tiles, that are each worth a call."""
        step = max(_SPAN_ROWS, -(-_SPAN_SIZE // self.architecture.n_parameters) // tiles.ROWS * tiles.ROWS)
        return [slice(start, min(start + step, m)) for start in range(0, m, step)]

    def _clip_span(
        self, rows: Rows, counts: NDArray[np.float64] | None, offset: int, max_norm: float, span: slice
    ) -> None:
        """Compute both factors of the clipped gradients of a span; row 0 of the chunk is row `offset` of the lot."""
        X = self._X if self._is_compiled else None
        if X is None:
            with np.errstate(all="ignore"):  # a row that overflows is muted, and a warning would reveal it
                self._gather(rows, offset + span.start, self._inputs[0][span])
                self._forward(slice(span.start, -(-span.stop // tiles.ROWS) * tiles.ROWS))
        is_multinomial = self.architecture.loss == "softmax"
        labels, targets = (self._targets[:, 0], None) if is_multinomial else (None, self._targets)
        spans.clip_span(
            X, self._scale, self._row_squares, labels, targets, self._weights, rows, counts, offset, span.start,
            span.stop, self._inputs, self._deltas, self._widths, self._packed, self._packed_back, *self._codes,
            self.clip.bounds(max_norm), _STABILITY, self._tiny, self._widest,
        )  # fmt: skip

    def _clip_units(
        self, starts: NDArray[np.int64], first: NDArray[np.int64], squares: np.ndarray, max_norm: float, span: slice
    ) -> None:
        """Clip the sums of the units of a chunk that begin in a span; each is clipped by itself."""
        low, room = int(starts[0]), unit_room(int(self._widths.sum()), 0)
        begin, end = np.searchsorted(starts, (low + span.start, low + span.stop))
        some, known = starts[begin : end + 1], (squares, first[begin:end], self._pairs)
        kernel.clip_units(self._inputs, self._deltas, self._widths, some, low, max_norm, room, *known)

    def _gather(self, rows: Rows, start: int, chunk: np.ndarray) -> None:
        X = self._X
        if isinstance(X, np.ndarray):
            kernel.gather_rows(X, self._scale, rows, start, chunk)
        else:
            chunk = chunk[:, : X.shape[1] + 1]
            kernel.gather_sparse_rows(X.data, X.indices, X.indptr, self._scale, rows, start, chunk)

    def _forward(self, span: slice) -> None:
        inputs, scores, packed = [a[span] for a in self._inputs], self._deltas[-1][span], self._packed
        activation, widths = self.architecture.activation, self.architecture.widths
        if activation in ("identity", "relu"):
            is_relu = activation == "relu"
            tiles.forward(self._inputs, packed, self._widths, is_relu, self._deltas[-1], span.start, span.stop)
            return
        for a, table, following, above, width in zip(inputs, packed, inputs[1:], widths, widths[1:], strict=False):
            tiles.multiply(a, table, above + 1, width, following)
            activate(activation, following)  # in one pass, and the last column is reset
            following[:, width] = 1.0
        tiles.multiply(inputs[-1], packed[-1], widths[-2] + 1, widths[-1], scores)

    def _cut_tables(self, shapes: list[tuple[int, int]]) -> list[tuple[int, ...]]:
        """Parts of the layers' tables that one thread adds products to: layer, whether transposed, and columns."""
        found: list[tuple[int, ...]] = []
        for layer, (height, width) in enumerate(shapes):
            # The side of a product that is cut into panels is the one that fills them better.
            transposed = tiles.n_tiles(width, height, self._dtype) < tiles.n_tiles(height, width, self._dtype)
            rows, columns = (width, height) if transposed else (height, width)
            found += [
                (layer, int(transposed), *tall, *wide)
                for wide in _cut(columns, _RECTANGLE_COLUMNS, tiles.panel_width(self._dtype))
                for tall in _cut(rows, _RECTANGLE_ROWS, tiles.ROWS)
            ]
        return found

    def _add_products(self, m: int, total: NDArray[np.float64], rectangles: NDArray[np.int64]) -> None:
        spans.add_products(self._inputs, self._deltas, m, rectangles, self._widths, total)

    def close(self) -> None:
        self._pool.close()


def _products_of_pairs(X: Any, scale: NDArray[np.floating], units: UnitLayout) -> NDArray[np.float64]:
    """Inner products of pairs of rows at the input of each short unit."""
    starts, products = units.starts[: units.n_short + 1], np.empty(units.n_pairs)
    if isinstance(X, np.ndarray):
        kernel.pair_products(X, scale, starts, products)
    else:
        kernel.sparse_pair_products(X.data, X.indices, X.indptr, X.shape[1], scale, starts, products)
    return products


def _cut(length: int, most: int, unit: int) -> list[tuple[int, int]]:
    """Cut a length into equal parts of at most `most`, but for rounding to a unit."""
    step = -(-length // -(-length // most) // unit) * unit if length > most else length
    return [(start, min(start + step, length)) for start in range(0, length, step)]


def _panels(height: int, width: int, dtype: np.dtype[Any]) -> np.ndarray:
    """Room for a packed table of this shape."""
    panel = tiles.panel_width(dtype)
    return np.zeros((-(-width // panel) * height, panel), dtype)


def _aligned(n_rows: int, width: int, dtype: np.dtype[Any]) -> np.ndarray:
    """Return zeros of shape (n_rows, `tiles.room_for` the width), every row from the start of a cache line on."""
    shape = n_rows, tiles.room_for(width, dtype)
    raw = np.zeros(math.prod(shape) * dtype.itemsize + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + math.prod(shape) * dtype.itemsize].view(dtype).reshape(shape)


def network_scores(
    X: Any, radius: float, coefs: list[np.ndarray], intercepts: list[np.ndarray], activation: str
) -> NDArray[np.floating]:
    """Scores of the output layer with rows clipped to norm `radius`, by blocks of rows.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d), float32 or float64, C order
    radius : float
    coefs, intercepts : list of ndarray
        Of shapes (inputs, outputs) and (outputs,) of the layers.
    activation : str

    Returns
    -------
    scores : ndarray of shape (n, n_outputs), dtype of `coefs`
    """
    scale = row_scales(X, radius, 1.0)
    scores = np.empty((X.shape[0], coefs[-1].shape[1]), coefs[-1].dtype)
    step = max(1, min(_PREDICTED_ROWS, _PREDICTED_VALUES // X.shape[1]))
    for start in range(0, X.shape[0], step):
        block = slice(start, start + step)
        rows = X[block] if isinstance(X, np.ndarray) else X[block].toarray()
        values = (rows * scale[block, None]).astype(coefs[0].dtype, copy=False)
        for coef, intercept in zip(coefs[:-1], intercepts[:-1], strict=True):
            values = values @ coef + intercept
            activate(activation, values)
        scores[block] = values @ coefs[-1] + intercepts[-1]
    return scores
