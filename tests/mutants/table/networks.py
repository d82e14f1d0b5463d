"""Mistakes in dense networks."""

from mutant import BY_PROPERTY, mutant
from paths import DENSE, MLP, NETWORKS, SPANS, THREADS, TILES

INFINITE = " and factor * np.sqrt(longest) <= 1.0 / tiny"
CLIPPED = "_STABILITY, self._tiny, self._widest,\n        )  # fmt: skip\n"
MUTE = "        if any_muted:\n            for i in range(m):\n"

MUTANTS = [
    mutant(
        "network: the mean clipped, not the rows",
        (DENSE, "                row[j] *= factor\n", "                row[j] *= 1.0\n"),
        (
            NETWORKS,
            "._add_products, m, total), rectangles, size)\n        return total\n",
            "._add_products, m, total), rectangles, size)\n"
            "        return total * min(1.0, max_norm * (span[1] - span[0]) / max(np.linalg.norm(total), 1e-300))\n",
        ),
        tests="network",
        select="toggling",
    ),
    mutant(
        "network: a chunk clipped by its mean norm",
        (
            DENSE,
            "    any_muted = clip_factors(",
            "    for k in range(n_layers):\n        for each in squares[:, k]:\n            each[:] = each.mean()\n"
            "    any_muted = clip_factors(",
        ),
        tests="network",
        select="toggling",
    ),
    mutant(
        "network: each layer clipped to C, billed as C",
        (
            NETWORKS,
            "            self.clip.bounds(max_norm), _STABILITY",
            '            np.full(len(self._deltas), max_norm) if self.clip.kind == "per_layer" else '
            "self.clip.bounds(max_norm), _STABILITY",
        ),
        tests="network",
        select="layers_have_bounds or toggling",
    ),
    mutant(
        "network: bounds of layers billed as the largest",
        (MLP, "max_norm = math.hypot(*bounds)", "max_norm = max(bounds)"),
        tests="classifier",
        select="bounds_of_layers",
    ),
    mutant(
        "network: a layer left out of the norm",
        (
            DENSE,
            "        for k in range(n_layers):\n            whole +=",
            "        for k in range(n_layers - 1, n_layers):\n            whole +=",
        ),
        tests="network",
        select=BY_PROPERTY,
    ),
    mutant(
        "network: the intercept's 1 left out of the norm",
        (
            DENSE,
            "add_squares(inputs[k][begin:end], widths[k] + 1, squares[0, k])",
            "add_squares(inputs[k][begin:end], widths[k], squares[0, k])",
        ),
        tests="network",
        select=BY_PROPERTY,
    ),
    mutant(
        "network: the intercept's 1 left out of the first layer's norm",
        (DENSE, "            total = 1.0\n            for j in", "            total = 0.0\n            for j in"),
        tests="network",
        select=BY_PROPERTY,
    ),
    mutant(
        "network: norms of other rows than those of the lot",
        (SPANS, "first[rows[start:stop]]", "first[start:stop]"),
        tests="network",
        select=BY_PROPERTY,
    ),
    mutant(
        "network: rows not brought to the public norm",
        (NETWORKS, "scale = row_scales(X, radius, unit)\n", "scale = row_scales(X, 1e30, unit)\n"),
        tests="network",
        select="long_row",
    ),
    mutant(
        "network: rows that are not finite kept",
        (
            DENSE,
            "        muted = not (norm < np.inf and np.sqrt(longest) * tiny * widest <= bound)",
            "        muted = False",
        ),
        (DENSE, f" or not (factor >= tiny{INFINITE})", ""),
        tests="network",
        select=BY_PROPERTY,
    ),
    mutant(
        "network: automatic clipping that makes numbers infinite",
        (DENSE, INFINITE, ""),
        tests="network",
        select="factor_above_one",
    ),
    mutant(
        "network: muted rows left where infinity meets their zero",
        (DENSE, MUTE, MUTE.replace("any_muted", "False")),
        tests="network",
        select=BY_PROPERTY,
    ),
    mutant(
        "network: a row muted in one layer only",
        (DENSE, "                factors[k, i] = 0.0\n", "                factors[0, i] = 0.0\n"),
        (DENSE, MUTE, MUTE.replace("any_muted", "any_muted and k == 0")),
        tests="network dense",
        select=BY_PROPERTY,
    ),
    mutant(
        "network: NaN hidden by the derivative of relu",
        (DENSE, "if a[j] > 0 else a[j] * 0  # NaN stays NaN", "if a[j] > 0 else 0.0"),
        tests="dense network",
        select=BY_PROPERTY,
    ),
    mutant(
        "network: squares that vanish taken for numbers that do",
        (DENSE, "    lost = widest * tiny\n", "    lost = 0.0\n"),
        tests="network",
        select=BY_PROPERTY,
    ),
    mutant(
        "network: no room for rounding in the clip",
        (
            NETWORKS,
            "self._slack = 1.0 + unit_roundoff * (tiles.SUMMED_ROWS * (tiles.SUMMED_ROWS + 3) + self._widest + 8)",
            "self._slack = 1.0 + unit_roundoff * (self._widest + 8)",
        ),
        tests="network",
        select=BY_PROPERTY,
    ),
    mutant(
        "network: blocks longer than there is room for",
        (TILES, "range(0, m, SUMMED_ROWS)", "range(0, m, 16 * SUMMED_ROWS)"),
        (TILES, "depth = min(SUMMED_ROWS, m - start)", "depth = min(16 * SUMMED_ROWS, m - start)"),
        (
            NETWORKS,
            "min(max(batch_size, 1 if units is None else MOST_PAIRED), max(1, self.n_rows))",
            "max(1, self.n_rows)",
        ),
        tests="network",
        select="rounding",
    ),
    mutant(
        "network: sums of blocks in the dtype of the rows",
        (TILES, "sums = np.zeros((height, width))", "sums = np.zeros((height, width), left.dtype)"),
        tests="network tiles",
        select=f"({BY_PROPERTY}) and (rounding or blocks)",
    ),
    mutant(
        "network: what is left of the lot before is added up",
        (TILES, "columns_of_tile, left.shape[0]\n", "columns_of_tile, left.shape[0] // 6 * 6 + 6\n"),
        (
            SPANS,
            "left, right = inputs[layer][:m], deltas[layer][:m]",
            "left, right = inputs[layer], deltas[layer]",
        ),
        tests="network",
        select=BY_PROPERTY,
    ),
    mutant(
        "network: the last rows of a short block left unclipped",
        (
            SPANS,
            "clip_rows(kind, squares, stretch, shares, top,",
            "clip_rows(kind, squares[: _BLOCK - 1], stretch, shares, top,",
        ),
        tests="network",
        select=BY_PROPERTY,
    ),
    mutant(
        "network: tables of the step before",
        (
            NETWORKS,
            "        self._pack(theta)\n",
            "        if not self._packed[0].any():\n            self._pack(theta)\n",
        ),
        tests="network",
        select="own_tables",
    ),
    mutant(
        "network: machine code that outlives a change of the clip",
        (SPANS, "_define(text_of(dense, losses, tiles))", '_define("")'),
        tests="caching",
    ),
    mutant(
        "network: a row in two blocks",
        (TILES, "depth = min(SUMMED_ROWS, m - start)", "depth = min(SUMMED_ROWS + 1, m - start)"),
        tests="network",
        select=BY_PROPERTY,
    ),
    mutant(
        "network: a task taken by two threads",
        (
            THREADS,
            "                    run(task)\n\n",
            "                    run(task)\n                    run(task)\n\n",
        ),
        tests="threads",
    ),
    mutant(
        "network: products while rows are still being clipped",
        (
            THREADS,
            "                if not each.cancel():\n                    each.result()\n",
            "                each.cancel()\n",
        ),
        tests="threads",
    ),
    mutant(
        "network: rows beside one another share a chain",
        (TILES, "place(0, plus(i, r), k)))", "place(0, plus(i, 0), k)))"),
        tests="network",
        select=BY_PROPERTY,
    ),
    mutant(
        "network: NaN hidden by relu",
        (
            TILES,
            "following[i, j] = 0 if following[i, j] <= 0 else following[i, j]",
            "following[i, j] = following[i, j] if following[i, j] > 0 else 0",
        ),
        tests="tiles",
        select=BY_PROPERTY,
    ),
    mutant(
        "network: add_remove in the dtype of the rows",
        (MLP, "return np.float64 if self.model._shifts_rows() else dtype", "return dtype"),
        tests="guarantees_neighbours",
        select="rounding",
    ),
    mutant(
        "network: the last chunk dropped where it is short",
        (
            NETWORKS,
            "in blocks_of(*span, self._rows_at_once, lot):",
            "in blocks_of(span[0], span[1] - (span[1] - span[0]) % self._rows_at_once, self._rows_at_once, lot):",
        ),
        tests="network",
        select=BY_PROPERTY,
    ),
    mutant(
        "network: the clip depends on the size of a chunk",
        (NETWORKS, "start, max_norm / self._slack)", "start, max_norm / self._slack * m**0.01)"),
        tests="network",
        select="chunks",
    ),
    mutant(
        "network: a layer's 1 overwritten by the activation",
        (NETWORKS, "            following[:, width] = 1.0\n", ""),
        (TILES, "            following[i, width] = 1\n", ""),
        tests="network",
        select="finite or loss",
    ),
    mutant(
        "network: derivative of tanh",
        (DENSE, "delta[j] *= 1 - a[j] * a[j]", "delta[j] *= 1 - a[j]"),
        tests="network",
        select="gradient_of_the_loss",
    ),
    mutant(
        "network: derivative of the logistic function",
        (DENSE, "delta[j] *= a[j] * (1 - a[j])", "delta[j] *= a[j] * (1 + a[j])"),
        tests="network",
        select="gradient_of_the_loss",
    ),
    mutant(
        "network: the start depends on the labels",
        (MLP, "gain = 2.0 if self.model.activation", "gain = 1.0 + labels.targets.mean() if self.model.activation"),
        tests="classifier",
        select="depends_on_no_row",
    ),
    mutant(
        "network: predictions of rows as long as they come",
        (NETWORKS, "row_scales(X, radius, 1.0)", "row_scales(X, 1e30, 1.0)"),
        tests="network",
    ),
]
