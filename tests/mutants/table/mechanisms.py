"""Faults in noise, sampling, streams and clipping of groups."""

from fault import faults_of

FAULTS = faults_of(
    {
        "skdp.mechanisms.gaussian": [
            (
                "release-noise-before-charge",
                "AdditiveMechanism.release",
                "if ledger is not None:\n    known = _1\n    _2",
                "self._add_noise(exact, stream)\nif ledger is not None:\n    known = _1\n    _2",
            ),
            (
                "noise-without-sensitivity",
                "GaussianMechanism.__post_init__",
                "noise * sensitivity * _INFLATION",
                "noise * _INFLATION",
            ),
            (
                "gaussian-event-of-more-noise",
                "GaussianMechanism.event",
                "self._event",
                "GaussianDpEvent(1.1 * self.noise_multiplier)",
            ),
            (
                "one-normal-for-all-coordinates",
                "GaussianMechanism._add_noise",
                "stream.noisy(value.ravel(), scale, grid).reshape(value.shape)",
                "value.ravel() + stream.noisy(np.zeros(1), scale, grid).reshape(value.shape)",
            ),
            (
                "gaussian-noise-not-rounded",
                "GaussianMechanism._add_noise",
                "stream.noisy(value.ravel(), scale, grid).reshape(value.shape)",
                "value.ravel() + stream.normal(value.size) * scale * grid.reshape(value.shape)",
            ),
            (
                "grid-depends-on-value",
                "GaussianMechanism._add_noise",
                "grid, scale = self._grid_and_scale",
                (
                    "grid, scale = self._grid_and_scale\n"
                    "finer = 2.0 ** bool(value.size and abs(value.flat[0]) > 1e-9)\n"
                    "grid, scale = grid / finer, scale * finer"
                ),
            ),
        ],
        "skdp.mechanisms.discrete_noise": [
            (
                "discrete-gaussian-as-laplace",
                "discrete_gaussian",
                "_exp_of_fractions(stream, exponents, which)",
                "np.ones(which.size, bool)",
            ),
            (
                "discrete-gaussian-other-deviation",
                "DiscreteGaussianMechanism._add_noise",
                "self.standard_deviation",
                "self.noise_multiplier",
            ),
            (
                "discrete-gaussian-event-of-one-count",
                "DiscreteGaussianMechanism.event",
                "one if self.n_counts == 1 else SelfComposedDpEvent(one, self.n_counts)",
                "one",
            ),
            (
                "discrete-laplace-scale-rounded-down",
                "DiscreteLaplaceMechanism.for_epsilon",
                "math.ceil(exact * denominator)",
                "math.floor(exact * denominator)",
            ),
        ],
        "skdp.mechanisms.sampling": [
            (
                "poisson-lots-of-fixed-size",
                "PoissonSampling.rows",
                "stream.poisson_rows(n, self.rate)",
                "np.sort(np.argsort(stream.words(n))[:round(n * self.rate)])",
            ),
            ("poisson-lots-of-all-rows", "PoissonSampling.rows", "stream.poisson_rows(n, self.rate)", "np.arange(n)"),
            (
                "poisson-lots-at-larger-rate",
                "PoissonSampling.rows",
                "stream.poisson_rows(n, self.rate)",
                "stream.poisson_rows(n, min(1.2 * self.rate, 0.999))",
            ),
            (
                "full-batch-event-as-sampled",
                "FullBatch.event",
                "return inner",
                "return PoissonSampledDpEvent(0.5, inner)",
            ),
            ("merged-counts-one-copy-too-many", "PoissonSampling.counter", "1 << j", "(1 << j) + (j == 3)", "binomial"),
        ],
        "skdp.mechanisms.second_moments": [
            (
                "moments-sensitivity-without-mean",
                "sensitivity",
                'if adjacency == "replace_one":\n    return _1 / math.sqrt(2.0)\nreturn math.sqrt(_2)',
                'if adjacency == "replace_one":\n    return 1.0 / math.sqrt(2.0)\nreturn 1.0',
                "decomposition",
            ),
            (
                "moments-sensitivity-always-halved",
                "sensitivity",
                "adjacency == 'replace_one'",
                "adjacency",
                "decomposition",
            ),
            (
                "moments-rounding-ignored",
                "MomentSum.rounding",
                "(1.0 + theta) ** 2 * (1.0 + 2.0 * roundoff * (b * (b + 1) / 2 + b) * (1.0 + gamma))",
                "1.0 + 1e-09",
                "decomposition",
            ),
            ("moments-ignore-sum-of-rows", "BallMoments.sensitivity", "self.weight", "0.0", "decomposition"),
            (
                "products-of-replace-one-for-all",
                "ProductQuery.sensitivity",
                "sensitivity(0.0, adjacency)",
                "sensitivity(0.0, 'replace_one')",
                "least_squares",
            ),
            ("products-ignore-weights", "ProductSum.add", "np.sqrt(weights)", "np.ones_like(weights)", "weights"),
            (
                "products-of-group-by-row",
                "ProductSum.add",
                "self._query.clip_weights(weights, units, rows, *targets)",
                "weights",
                "guarantees_units",
            ),
            (
                "moments-of-split-group-clipped-to-twice",
                "MomentSum.clip",
                "clip_factor(self.rounding * self.vector, math.hypot(1.0, self.weight))",
                "clip_factor(self.vector, 2 * math.hypot(1.0, self.weight))",
                "streamed_units",
            ),
        ],
        "skdp.mechanisms.bounded_sum": [
            ("vector-sum-ignores-weights", "VectorSum._add_rows", "shares @ vectors", "vectors.sum(axis=0)", "weights"),
            (
                "vector-sum-group-by-row",
                "VectorSum._limits",
                "self._query.group_limits(self._adjacency)",
                "(np.inf, np.inf)",
                "guarantees_units",
            ),
            (
                "group-average-weights-above-one",
                "clip_groups",
                "reach ** 2 if squares is None else np.maximum(squares, 0.0)",
                "reach if squares is None else np.maximum(squares, 0.0)",
            ),
            (
                "group-clipped-to-twice-the-norm",
                "clip_groups",
                "np.divide(limit, found, out=factors, where=(sizes > 1) & (found > limit))",
                "np.divide(2 * limit, found, out=factors, where=(sizes > 1) & (found > limit))",
                "guarantees_units",
            ),
            (
                "group-moments-clipped-by-row",
                "squares_of_products",
                "np.einsum('ki,kij,kj->k', weights[rows], products, weights[rows])",
                "np.einsum('ki,kii,ki->k', weights[rows], products, weights[rows])",
                "guarantees_units",
            ),
            (
                "histogram-sensitivity-of-one-column",
                "column_sensitivity",
                "n_columns / 2.0 if adjacency == 'replace_one' else n_columns",
                "1 / 2.0 if adjacency == 'replace_one' else 1",
            ),
            ("histogram-replace-one-single-cell", "column_sensitivity", "n_columns / 2.0", "n_columns / 4.0"),
            ("cell-counts-of-one-column", "CellCounts.sensitivity", "len(self.sizes)", "1", "isolation_forest"),
            (
                "cell-counts-group-by-row",
                "CellSum.add",
                "clip_groups(units, each, norm, norm, squares_of_counts(units, columns, each))",
                "each",
                "guarantees_units",
            ),
        ],
        "skdp.mechanisms.streams": [
            ("stream-spawn-ignores-purpose", "SecretStream.spawn", "repr(purpose).encode()", "b'purpose'"),
            ("stream-key-constant", "SecretStream.from_random_state", "os.urandom", "bytes"),
            ("fork-shares-noise-stream", "", "os.register_at_fork(after_in_child=_mark_child)", "pass"),
            (
                "poisson-lot-truncated",
                "SecretStream.poisson_rows",
                "while last < n:\n    rows = _1\n    count, last = _2\n    _3",
                "if last < n:\n    rows = _1\n    count, last = _2\n    _3",
            ),
        ],
    }
)
