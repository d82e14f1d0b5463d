"""Faults in estimators of sums: components, naive Bayes, clusters, trees and linear models."""

from fault import faults_of

FAULTS = faults_of(
    {
        "skdp.cluster.noisy_tree": [
            ("kmeans-counts-outside-sensitivity", "sum_rows", "of_counts * counts", "counts"),
            (
                "kmeans-steps-share-noise",
                "run_steps",
                "releases.release(share / n_steps, exact, step_sensitivity(adjacency), 'step', step)",
                "releases.release(share / n_steps, exact, step_sensitivity(adjacency), 'step')",
            ),
            ("kmeans-leaf-counts-outside-sensitivity", "_release_leaves", "of_counts * counts", "counts"),
            (
                "kmeans-tree-by-exact-counts",
                "grow",
                "releases.release(of_levels[level], exact, of_count, 'level', level).value",
                "exact",
            ),
            ("kmeans-offsets-not-clipped", "within", "np.maximum(lengths, radius)", "np.full(len(offsets), radius)"),
        ],
        "skdp.ensemble.embedding": [
            (
                "random-trees-seed-reads-rows",
                "PublicTreesEmbedding._read_columns",
                "_public_seed(self.random_state)",
                "_public_seed(self.random_state) + int(np.nan_to_num(np.max(table.cells(0).values)))",
            ),
        ],
        "skdp.ensemble.leaf_model": [
            ("tree-cell-counts-sensitivity-of-one", "TreesSolver._grow", "len(blocks)", "1", "guarantees_neighbors"),
        ],
        "skdp.ensemble.marginal_counts": [
            (
                "tree-cell-counts-group-by-row",
                "count_people",
                "counts.add(_1, weights, units)",
                "counts.add(_1, weights)",
                "guarantees_units",
            ),
        ],
        "skdp.linear_model.newton": [
            (
                "newton-rows-not-clipped",
                "BoundRows._vectors",
                "z[:, :block.shape[1]] = inside",
                "z[:, :block.shape[1]] = block / self._ball.radius",
            ),
            (
                "newton-group-by-row",
                "BoundRows.__init__",
                "clip_groups(units, self.weights, rows_per_group, self._norms())",
                "self.weights",
            ),
            (
                "newton-group-limit-above-noise",
                "NewtonSolver._bind",
                "run.plan.max_grad_norm",
                "float(self.model.rows_per_group or 1) ** 2",
                "guarantees_units",
            ),
            (
                "newton-steps-share-noise",
                "NewtonSolver.train",
                "run.plan.mechanisms[number]",
                "run.plan.mechanisms[-1]",
            ),
            (
                "newton-step-without-noise",
                "NewtonSolver.train",
                "mechanism.release(bound.sums(theta), stream)",
                "bound.sums(theta)",
            ),
        ],
        "skdp.linear_model.normal_equations": [
            ("inference-noise-of-one-row-a-group", "TargetMoments.sensitivity", "self.rows_per_group or 1", "1"),
            (
                "inference-group-by-row",
                "TargetMoments.clip_weights",
                "clip_groups(units, each, self.rows_per_group, self._longest_squares(rows))",
                "each",
            ),
            (
                "inference-scores-not-charged",
                "MomentsRegressor._event_at",
                "_event_of_both if self.inference else GaussianDpEvent",
                "GaussianDpEvent",
            ),
            (
                "inference-scores-half-noise",
                "MomentsRegressor._release_scores",
                "SCORE_RATIO * fit.noise_multiplier",
                "0.5 * SCORE_RATIO * fit.noise_multiplier",
            ),
            (
                "least-squares-rows-not-clipped",
                "TargetMoments.vectors",
                "self.ball.bring_in(block, (inside := np.empty(block.shape, dtype)))",
                "np.divide(block, self.ball.radius, out=(inside := np.empty(block.shape, dtype)))",
            ),
            ("least-squares-divisor-from-private-n", "MomentsRegressor.fit", "fit.n", "fit.n_rows"),
        ],
        "skdp.naive_bayes": [
            (
                "naive-bayes-replace-one-as-removal",
                "ClassMoments.sensitivity",
                "math.sqrt(len(self.bounds))",
                "math.sqrt(len(self.bounds) / 2)",
            ),
            (
                "naive-bayes-squares-outside-sensitivity",
                "ClassMoments.__init__",
                "COUNT_SHARE + 1.25",
                "COUNT_SHARE + 1.0",
            ),
            (
                "naive-bayes-groups-of-replace-one-by-norm",
                "ClassMoments.group_limits",
                "(np.inf, 1.0)",
                "(self.row_limit, np.inf)",
                "guarantees_units",
            ),
            (
                "naive-bayes-values-not-clipped",
                "scale_rows",
                "np.clip((X - low) / half - 1.0, -1.0, 1.0)",
                "(np.minimum(np.maximum(X, -1e+50), 1e+50) - low) / half - 1.0",
            ),
        ],
    }
)
