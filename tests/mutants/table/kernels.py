"""Faults in compiled code."""

from fault import faults_of

FAULTS = faults_of(
    {
        "skdp._kernels.bits": [
            ("kernel-value-not-on-grid", "add_normals", "whole * grid + nearest", "whole * grid + value[i]"),
            ("kernel-value-rounded-before-noise", "add_normals", "normals[i] * scale + rest", "normals[i] * scale"),
            ("kernel-normal-tail-truncated", "_radii", "words[i]", "words[i] & np.uint64(18446744069414584320)"),
            ("kernel-sampled-row-off-by-one", "rows_from_gaps", "1 + rows[i]", "2 + rows[i]"),
        ],
        "skdp._kernels.linear_layouts": [
            (
                "kernel-columns-not-clipped-to-norm",
                "_clip_rows",
                "unit * (radius / norm[i]) if norm[i] > radius else unit",
                "unit",
            ),
            ("kernel-clip-ignores-intercept", "_set_scale", "math.hypot(scale[i] * norm, icpt)", "scale[i] * norm"),
            (
                "kernel-rows-not-clipped-to-norm",
                "_set_scale",
                "unit * (radius / norm) if norm > radius else unit",
                "unit",
            ),
        ],
        "skdp._kernels.critic": [
            (
                "kernel-critic-clip-per-layer",
                "add_grams",
                "squares[i] += a00 * b00 + a11 * b11 + a22 * b22 + _1",
                "squares[i] = max(squares[i], a00 * b00 + a11 * b11 + a22 * b22 + _1)",
            ),
            ("kernel-critic-nonfinite-rows-kept", "gather_pairs", "np.nan", "1.0"),
            (
                "kernel-critic-penalty-outside-norm",
                "add_first_grams",
                "factor * factor * max(gradients[i], 0.0)",
                "0.0 * factor",
            ),
            ("kernel-convolution-gradients-unclipped", "add_clipped", "bound / norm if norm > bound else 1.0", "1.0"),
        ],
        "skdp._kernels.dense": [
            ("kernel-network-clip-last-layer-only", "clip_factors", "whole += _1", "whole = _1"),
            (
                "kernel-network-group-products-unscaled",
                "pair_products",
                "np.float64(X[i, c] * scale[i]) * np.float64(X[j, c] * scale[j])",
                "np.float64(X[i, c]) * X[j, c]",
                "guarantees_units",
            ),
        ],
        "skdp._kernels.sums": [
            ("kernel-gram-unclipped", "_factor", "1.0 / norm if norm > radius else 1.0 / radius", "1.0 / radius"),
        ],
        "skdp._kernels.linear": [
            ("kernel-linear-no-clipping", "_clip_factor", "1.0 if size <= max_norm else max_norm / size", "1.0"),
            (
                "kernel-softmax-clip-per-class",
                "_softmax_residuals",
                "z[k, i] * factor[i]",
                "z[k, i] * _clip_factor(abs(z[k, i]) * length[i], max_norm)",
            ),
            ("kernel-logistic-unclipped-scale", "_logistic_residuals", "_representable(clipped * scale[i])", "clipped"),
            (
                "kernel-zeroed-record-keeps-intercept",
                "_logistic_residuals",
                "clipped * icpt",
                "(probability - label[i]) * icpt",
            ),
            (
                "kernel-group-sum-not-clipped",
                "_clip_units",
                "_repeat(factors, feature_part, icpt_part)",
                "pass",
                "guarantees_units",
            ),
            (
                "kernel-logistic-weight-before-clip",
                "_logistic_residuals",
                "reach * length[i]",
                "weight[i] * reach * length[i]",
            ),
        ],
        "skdp._kernels.losses": [
            ("kernel-loss-clip-per-output", "clip_residuals", "_norm(residuals[:, i])", "abs(residuals[0, i])"),
            ("kernel-loss-clip-ignores-norm", "clip_residuals", "lengths[i] * room", "room"),
        ],
        "skdp._kernels.spans": [
            ("kernel-network-norms-of-other-rows", "_define.clip_span", "first[rows[start:stop]]", "first[start:stop]"),
        ],
    }
)
