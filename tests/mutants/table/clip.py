"""Mistakes in clipping a row and in summing the clipped gradients."""

from mutant import BY_PROPERTY, mutant
from paths import (
    DENSE,
    GRAM_KERNEL,
    KERNEL,
    LOSSES,
    MODELS,
    ROW_SCALES,
    TRAINING,
)

CLIP_BINARY = "factor = _clip_factor(reach * length[i], max_norm)"
CLIP_SOFTMAX = "factor[i] = _clip_factor(math.sqrt(square[i]) * length[i], max_norm)"

MUTANTS = [
    mutant(
        "clip after averaging",
        (TRAINING, "from typing import Any\n\n", "from typing import Any\n\nimport numpy as np\n\n"),
        (KERNEL, CLIP_BINARY, "factor = 1.0"),
        (KERNEL, CLIP_SOFTMAX, "factor[i] = 1.0"),
        (
            TRAINING,
            "            gradient = mechanism.release",
            "            total = total * min(1.0, plan.max_grad_norm / max(np.linalg.norm(total), 1e-300))\n"
            "            gradient = mechanism.release",
        ),
        tests="linear loop",
        select=BY_PROPERTY,
    ),
    mutant(
        "several outputs of which the first is clipped",
        (KERNEL, "return True if n_outputs > 1 else None", "return None"),
        tests="wide_linear",
        select="plain_reading",
    ),
    mutant(
        "the clip looks at the label",
        (KERNEL, CLIP_BINARY, "factor = _clip_factor(abs(residual) * length[i], max_norm)"),
        tests="linear",
        select="plain_reading",
    ),
    mutant(
        "the clip of one-hot rows looks at the label",
        (LOSSES, "if loss == LOGISTIC and size < 0.5:", "if loss == LOGISTIC and size < 0.0:"),
        tests="losses",
        select="two_labels or vanish",
    ),
    mutant(
        "the clip of a network looks at the label",
        (DENSE, "norm = np.sqrt(whole) * stretch[i]", "norm = np.sqrt(whole)"),
        tests="network",
        select="two_labels",
    ),
    mutant(
        "layers of a network are clipped by a look at the label",
        (DENSE, "(squares[1, k, i] + lost)) * stretch[i]", "(squares[1, k, i] + lost))"),
        tests="network",
        select="two_labels",
    ),
    mutant(
        "the reach of the likelier label",
        (KERNEL, "reach = max(probability, 1.0 - probability)", "reach = min(probability, 1.0 - probability)"),
        tests="linear",
        select=BY_PROPERTY,
    ),
    mutant(
        "no clip",
        (KERNEL, "factor = 1.0 if size <= max_norm else max_norm / size", "factor = 1.0"),
        tests="linear",
        select=BY_PROPERTY,
    ),
    mutant(
        "clip to twice the bound",
        (KERNEL, "factor = 1.0 if size <= max_norm else max_norm / size", "factor = min(1.0, 2.0 * max_norm / size)"),
        tests="linear",
        select=BY_PROPERTY,
    ),
    mutant(
        "each class clipped for itself, billed as one clip",
        (
            KERNEL,
            "clipped = z[k, i] * factor[i] if factor[i] > 0.0 else 0.0",
            "clipped = z[k, i] * _clip_factor(abs(z[k, i]) * length[i], max_norm) if factor[i] > 0.0 else 0.0",
        ),
        tests="linear",
        select=BY_PROPERTY,
    ),
    mutant(
        "intercept left out of the clip",
        (ROW_SCALES, "size = math.hypot(scale[i] * norm, icpt)", "size = scale[i] * norm"),
        tests="linear",
        select=BY_PROPERTY,
    ),
    mutant(
        "unclipped row used after the clip",
        (KERNEL, "feature_part[i] = _representable(clipped * scale[i])", "feature_part[i] = clipped"),
        tests="linear",
        select=BY_PROPERTY,
    ),
    mutant(
        "unclipped row used after the clip (softmax)",
        (KERNEL, "feature_part[k, i] = _representable(clipped * scale[i])", "feature_part[k, i] = clipped"),
        tests="linear",
        select=BY_PROPERTY,
    ),
    mutant(
        "lengths of float32 rows rounded to nearest",
        (ROW_SCALES, "    if length[i] < size:\n", "    if False:\n"),
        tests="linear",
        select=BY_PROPERTY,
    ),
    mutant(
        "norms that lost their digits taken as they are",
        (ROW_SCALES, "return max(top * math.sqrt(square), _SMALLEST_NORMAL)", "return top * math.sqrt(square)"),
        tests="linear",
        select=BY_PROPERTY,
    ),
    mutant(
        "NaN among zeros taken for a zero",
        (ROW_SCALES, "        return np.nan\n", "        return 0.0\n"),
        tests="linear",
        select=BY_PROPERTY,
    ),
    mutant(
        "rows with NaN multiplied by 0",
        (MODELS, "_zero_muted_rows(X, facts[kernel.SCALE])", "X"),
        tests="linear",
        select=BY_PROPERTY,
    ),
    mutant(
        "rows with NaN multiplied by 0 (network)",
        (
            DENSE,
            "            chunk[i, :] = 0.0  # infinity times zero is NaN\n            continue\n",
            "            pass\n",
        ),
        (
            DENSE,
            "        if any_muted:\n            for i in range(m):\n",
            "        if False:\n            for i in range(m):\n",
        ),
        tests="network",
        select=BY_PROPERTY,
    ),
    mutant(
        "PCA: NaN among zeros taken for a zero",
        (GRAM_KERNEL, "which NaN is not larger than\n        row[:] = 0.0\n", "\n"),
        tests="second_moments",
        select=BY_PROPERTY,
    ),
    mutant(
        "rows not brought to the public norm",
        (ROW_SCALES, "unit * (radius / norm) if norm > radius else unit", "unit"),
        tests="linear",
        select=BY_PROPERTY,
    ),
    mutant(
        "rows clipped, their norm taken before",
        (ROW_SCALES, "size = math.hypot(scale[i] * norm, icpt)", "size = math.hypot(unit * norm, icpt)"),
        tests="linear",
        select=BY_PROPERTY,
    ),
    mutant(
        "a null record keeps its intercept",
        (KERNEL, "        icpt_part[i] = clipped * icpt", "        icpt_part[i] = (probability - label[i]) * icpt"),
        tests="linear",
        select=BY_PROPERTY,
    ),
    mutant(
        "guard against NaN and overflow removed",
        (KERNEL, "return factor if factor >= _SMALLEST_NORMAL else 0.0", "return factor"),
        (KERNEL, "clipped = residual * factor if factor > 0.0 else 0.0", "clipped = residual * factor"),
        (KERNEL, "clipped = z[k, i] * factor[i] if factor[i] > 0.0 else 0.0", "clipped = z[k, i] * factor[i]"),
        tests="linear",
        select=BY_PROPERTY,
    ),
    mutant(
        "residuals that lose digits or become infinite",
        (KERNEL, "return value if _SMALLEST_NORMAL <= abs(value) < np.inf else 0.0", "return value"),
        tests="linear",
        select=BY_PROPERTY,
    ),
    mutant(
        "fastmath",
        (KERNEL, '"error_model": "numpy"}', '"error_model": "numpy", "fastmath": True}'),
        tests="linear",
        select="fastmath",
    ),
    mutant(
        "a block summed in the dtype of the rows",
        (
            KERNEL,
            "        _add_rows(X, rows, feature_part[k], total[k])\n",
            "        block_sum = np.zeros(d, X.dtype)\n"
            "        _add_rows(X, rows, feature_part[k].astype(X.dtype), block_sum)\n"
            "        for j in range(d):\n"
            "            total[k, j] += block_sum[j]\n",
        ),
        tests="guarantees_neighbours",
    ),
    mutant(
        "a tile of columns summed in the dtype of the rows",
        (
            KERNEL,
            "_dot(X[j, first + low : first + high], feature_part[k, :m])",
            "_dot(X[j, first + low : first + high], feature_part[k, :m].astype(X.dtype))",
        ),
        tests="linear",
        select="are_float64",
    ),
    mutant(
        "facts of other rows where these are stored by columns",
        (
            KERNEL,
            "_column_scores(X, first + low, m, theta[k], narrow, z[k])",
            "_column_scores(X, first, m, theta[k], narrow, z[k])",
        ),
        tests="linear",
        select="plain_reading",
    ),
    mutant(
        "the sum's order depends on the threads",
        (MODELS, "        parts = n_segments(", "        parts = 1 if self._pool is None else 3\n        n_segments("),
        tests="linear",
        select=BY_PROPERTY,
    ),
    mutant(
        "the last rows of a sum forgotten",
        (MODELS, "n * (segment + 1) // parts", "n * (segment + 1) // parts // 4 * 4"),
        tests="linear",
        select=BY_PROPERTY,
    ),
]
