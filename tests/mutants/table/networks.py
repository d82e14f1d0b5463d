"""Mistakes in dense networks."""

from mutant import BY_PROPERTY, mutant
from paths import DENSE, MLP, NETWORKS

CLIP_LAYERS = "self._clip(inputs, deltas, first, max_norm / self._slack)\n"

MUTANTS = [
    mutant(
        "network: the mean clipped, not the rows",
        (NETWORKS, "            narrower *= factor[:, None]\n", "            narrower *= 1.0\n"),
        (
            NETWORKS,
            "        return total\n",
            "        return total * min(1.0, max_norm * n / max(np.linalg.norm(total), 1e-300))\n",
        ),
        tests="networks",
        select="toggling",
    ),
    mutant(
        "network: a chunk clipped by its mean norm",
        (
            NETWORKS,
            "        factors = np.empty(squares.shape[1:], self._dtype)\n",
            "        squares[:] = squares.mean(axis=2, keepdims=True)\n"
            "        factors = np.empty(squares.shape[1:], self._dtype)\n",
        ),
        tests="networks",
        select="toggling",
    ),
    mutant(
        "network: each layer clipped to C, billed as C",
        (
            NETWORKS,
            "CLIPPINGS[self.clip.kind], self.clip.bounds(max_norm)",
            'CLIPPINGS[self.clip.kind], self.clip.bounds(max_norm)\n        if self.clip.kind == "per_layer":\n'
            "            bounds = np.full(len(bounds), max_norm)",
        ),
        tests="networks",
        select="layers_have_bounds or toggling",
    ),
    mutant(
        "network: bounds of layers billed as the largest",
        (MLP, "max_norm = math.hypot(*bounds)", "max_norm = max(bounds)"),
        tests="neural_network",
        select="bounds_of_layers",
    ),
    mutant(
        "network: a layer left out of the norm",
        (
            DENSE,
            "        for k in range(n_layers):\n            whole +=",
            "        for k in range(n_layers - 1, n_layers):\n            whole +=",
        ),
        tests="networks",
        select=BY_PROPERTY,
    ),
    mutant(
        "network: the intercept's 1 left out of the norm",
        (NETWORKS, "[_squares(each) for each in inputs[1:]]", "[_squares(each[:, :-1]) for each in inputs[1:]]"),
        tests="networks",
        select=BY_PROPERTY,
    ),
    mutant(
        "network: the intercept's 1 left out of the first layer's norm",
        (DENSE, "            total = 1.0\n            for j in", "            total = 0.0\n            for j in"),
        tests="networks",
        select=BY_PROPERTY,
    ),
    mutant(
        "network: norms of other rows than those of the lot",
        (NETWORKS, "chosen if rows is None else rows[chosen]", "chosen"),
        tests="networks",
        select=BY_PROPERTY,
    ),
    mutant(
        "network: weight applied after the clip",
        (
            NETWORKS,
            "targets, weights = self._targets, self._weights\n",
            "targets, weights = self._targets, np.minimum(self._weights, 1)\n",
        ),
        (
            NETWORKS,
            CLIP_LAYERS,
            f"{CLIP_LAYERS}                picked = np.arange(n) if rows is None else rows\n"
            "                for delta in deltas:\n"
            "                    delta *= np.maximum(self._weights[picked[start : start + len(delta)]], 1)[:, None]\n",
        ),
        tests="networks",
        select="toggling or weight_multiplies",
    ),
    mutant(
        "network: rows not brought to the public norm",
        (NETWORKS, "scale = row_scales(X, radius, unit)\n", "scale = row_scales(X, 1e30, unit)\n"),
        tests="networks",
        select="long_row",
    ),
    mutant(
        "network: rows that are not finite kept",
        (
            DENSE,
            "        muted = not (norm < np.inf and np.sqrt(longest) * tiny * widest <= bound)",
            "        muted = False",
        ),
        (DENSE, "            muted = muted or not factor >= tiny\n", ""),
        tests="networks",
        select=BY_PROPERTY,
    ),
    mutant(
        "network: muted rows left where infinity meets their zero",
        (NETWORKS, "                each[muted] = 0.0\n", "                pass\n"),
        tests="networks",
        select=BY_PROPERTY,
    ),
    mutant(
        "network: a row muted in one layer only",
        (DENSE, "            factors[:, i] = 0.0\n", "            factors[0, i] = 0.0\n"),
        (
            NETWORKS,
            "                each[muted] = 0.0\n",
            "                each[muted] = np.nan_to_num(each[muted], posinf=0)\n",
        ),
        tests="networks dense_kernels",
        select=BY_PROPERTY,
    ),
    mutant(
        "network: NaN hidden by the derivative of relu",
        (DENSE, "if a[j] > 0 else a[j] * 0  # NaN stays NaN", "if a[j] > 0 else 0.0"),
        tests="dense_kernels networks",
        select=BY_PROPERTY,
    ),
    mutant(
        "network: squares that vanish taken for numbers that do",
        (DENSE, "    lost = widest * tiny\n", "    lost = 0.0\n"),
        tests="networks",
        select=BY_PROPERTY,
    ),
    mutant(
        "network: no room for rounding in the clip",
        (
            NETWORKS,
            "self._slack = 1.0 + unit_roundoff * (_BLOCK * (_BLOCK + 3) + self._widest + 8)",
            "self._slack = 1.0 + unit_roundoff * (self._widest + 8)",
        ),
        tests="networks",
        select=BY_PROPERTY,
    ),
    mutant(
        "network: blocks longer than there is room for",
        (NETWORKS, "range(0, len(a), _BLOCK)", "range(0, len(a), 16 * _BLOCK)"),
        (NETWORKS, "a[start : start + _BLOCK].T, delta[start : start + _BLOCK]", "a.T, delta"),
        (NETWORKS, "min(batch_size, max(1, self.n_rows))", "max(1, self.n_rows)"),
        tests="networks",
        select="rounding",
    ),
    mutant(
        "network: add_remove in the dtype of the rows",
        (MLP, 'return np.float64 if self.adjacency == "add_remove" else dtype', "return dtype"),
        tests="guarantees_neighbours",
        select="rounding",
    ),
    mutant(
        "network: the last chunk dropped where it is short",
        (NETWORKS, "range(0, n, self._rows_at_once)", "range(0, n - n % self._rows_at_once, self._rows_at_once)"),
        tests="networks",
        select=BY_PROPERTY,
    ),
    mutant(
        "network: the clip depends on the size of a chunk",
        (NETWORKS, CLIP_LAYERS, CLIP_LAYERS.replace("self._slack", "self._slack * len(inputs[0]) ** -0.01")),
        tests="networks",
        select="chunks",
    ),
    mutant(
        "network: a layer's 1 overwritten by the activation",
        (NETWORKS, "            following[:, -1] = 1.0\n", ""),
        tests="networks",
        select="finite or loss",
    ),
    mutant(
        "network: derivative of tanh",
        (DENSE, "delta[j] *= 1 - a[j] * a[j]", "delta[j] *= 1 - a[j]"),
        tests="networks",
        select="gradient_of_the_loss",
    ),
    mutant(
        "network: derivative of the logistic function",
        (DENSE, "delta[j] *= a[j] * (1 - a[j])", "delta[j] *= a[j] * (1 + a[j])"),
        tests="networks",
        select="gradient_of_the_loss",
    ),
    mutant(
        "network: the start depends on the labels",
        (MLP, "gain = 2.0 if self.activation", "gain = 1.0 + labels.targets.mean() if self.activation"),
        tests="neural_network",
        select="depends_on_no_row",
    ),
    mutant(
        "network: predictions of rows as long as they come",
        (NETWORKS, "row_scales(X, radius, 1.0)", "row_scales(X, 1e30, 1.0)"),
        tests="networks",
    ),
]
