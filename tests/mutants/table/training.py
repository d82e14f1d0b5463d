"""Faults in DP-SGD, its solvers, models and distributed or streamed rows."""

from fault import faults_of

FAULTS = faults_of(
    {
        "skdp._dpsgd.checkpoint": [
            (
                "resumed-run-releases-again",
                "Checkpoint.__init__",
                "dict(self._header['noisy_sums']) if self.begun else {}",
                "{}",
                "random_trees",
            ),
        ],
        "skdp._dpsgd.dask.partitions": [
            (
                "dask-partitions-share-lot-key",
                "lots_of_step",
                "of_step.subkey('partition', number)",
                "of_step.subkey('partition')",
            ),
            (
                "dask-rows-drawn-for-groups",
                "BoundPartition.drawn",
                "rows if self._layout is None else self._layout.numbers_of(rows)",
                "lot.rows(self.n_rows)",
            ),
        ],
        "skdp._dpsgd.loop": [
            ("falling-noise-drawn-constant", "run_dpsgd", "plan.mechanisms[state.n_done]", "plan.mechanisms[-1]"),
            (
                "noise-divided-by-root-of-lot",
                "run_dpsgd",
                "gradient = mechanism.release(total, noise_stream)",
                (
                    "noise = mechanism.release(0 * total, noise_stream) * plan.expected_lot_size ** 0.5\n"
                    "gradient = total + noise"
                ),
            ),
            (
                "divisor-realized-lot",
                "run_dpsgd",
                "plan.expected_lot_size",
                "max(1, len(lot) if lot is not None else model.n_rows)",
            ),
            (
                "noise-repeated-each-step",
                "run_dpsgd",
                "mechanism.release(total, noise_stream)",
                "mechanism.release(total, stream.spawn('noise'))",
            ),
            (
                "sampling-and-noise-share-stream",
                "start_of_run",
                "(stream.spawn('sampling'), stream.spawn('noise'))",
                "(stream.spawn('noise'),) * 2",
            ),
            (
                "empty-lot-skipped",
                "run_dpsgd",
                "lot = model.draw_lot(plan.sampling, sampling_stream, state.n_done)",
                (
                    "lot = model.draw_lot(plan.sampling, sampling_stream, state.n_done)\n"
                    "if lot is not None and len(lot) == 0:\n"
                    "    continue"
                ),
            ),
            (
                "empty-lot-without-noise",
                "run_dpsgd",
                "mechanism.release(total, noise_stream)",
                "total if lot is not None and (not len(lot)) else mechanism.release(total, noise_stream)",
            ),
        ],
        "skdp._dpsgd.models.linear": [
            (
                "group-rows-drawn",
                "Model.draw_lot",
                "return self.units.numbers_of(sampling.rows(self.units.n_units, stream))",
                (
                    "rows = sampling.rows(self.n_rows, stream)\n"
                    'found = None if rows is None else np.searchsorted(self.units.starts, rows, side="right") - 1\n'
                    "return rows if rows is None else np.unique(found)"
                ),
            ),
            ("group-long-not-clipped", "add_clipped", "size > max_norm", "False", "guarantees_units"),
        ],
        "skdp._dpsgd.models.duplicate_rows": [
            (
                "merged-rows-clip-grows-with-count",
                "GroupedModel.clipped_gradient_sum",
                "self._model.clipped_gradient_sum(_1, numbers, max_norm, counts)",
                "self._model.clipped_gradient_sum(_1, numbers, max_norm * counts.max(initial=1.0), counts)",
            ),
            (
                "merged-rows-one-lot-for-all-steps",
                "GroupedModel.draw_lot",
                "stream.spawn('step', step)",
                "stream.spawn('step')",
            ),
        ],
        "skdp._dpsgd.models.network": [
            (
                "network-layer-bounds-at-full-norm",
                "NetworkModel._clip_span",
                "self.clip.bounds(max_norm)",
                "np.full(len(self._deltas), max_norm) if self.clip.kind == 'per_layer' else self.clip.bounds(max_norm)",
            ),
            ("network-group-sum-not-clipped", "NetworkModel._sum_over", "lot is not None", "False", "guarantees_units"),
        ],
        "skdp._dpsgd.models.one_hot": [
            (
                "lookup-rows-half-norm",
                "OneHotModel.__init__",
                "1.0 + (self.n_columns + n_outputs + 16) * 2.0 ** (-52)",
                "0.5 + (self.n_columns + n_outputs + 16) * 2.0 ** (-52)",
            ),
            (
                "lookup-residuals-not-clipped",
                "OneHotModel._clipped_residuals",
                "self._lengths[:m]",
                "0.0 * self._lengths[:m]",
            ),
            (
                "lookup-zeroed-record-counts",
                "OneHotModel._clipped_residuals",
                "self._weights[where]",
                "np.maximum(self._weights[where], 0.5)",
            ),
            (
                "lookup-group-sum-not-clipped",
                "OneHotModel._sum_over.add_segment",
                "residuals *= self._unit_factors(residuals, lot, units, chosen.start, max_norm)",
                "pass",
                "guarantees_units",
            ),
        ],
        "skdp._dpsgd.plan": [
            ("falling-noise-fractions-not-normalized", "falling_noise", "shares /= shares.mean()", "pass"),
            (
                "falling-noise-event-constant",
                "event_of_steps",
                "GaussianDpEvent(noise_multiplier * stage.factor)",
                "GaussianDpEvent(noise_multiplier)",
            ),
            ("dpsgd-event-one-step-fewer", "DPSGDPlan.event", "self.n_steps", "self.n_steps - 1"),
            (
                "intercept-means-not-charged",
                "PlannedReleases.event_at",
                "self.beside.values()",
                "[each for name, each in self.beside.items() if name != OFFSET]",
                "guarantees_charges",
            ),
            (
                "class-counts-outside-event",
                "PlannedReleases.event_at",
                "self.beside.values()",
                "[each for name, each in self.beside.items() if name != START]",
                "guarantees_charges",
            ),
        ],
        "skdp._dpsgd.mean_correction": [
            (
                "class-means-sensitivity-of-one-label",
                "OfClasses.__post_init__",
                "n_labels * self.most_square",
                "self.most_square",
            ),
            (
                "target-errors-not-clipped",
                "TargetMean.vectors",
                "np.clip(np.where(np.isnan(errors), 0.0, errors) / self.largest, -1.0, 1.0)",
                "np.where(np.isnan(errors), 0.0, errors) / self.largest",
            ),
            (
                "intercept-means-group-by-row",
                "ScoredSum.add",
                "super().add(scores, *targets_and_weights, units=units)",
                "super().add(scores, *targets_and_weights)",
                "guarantees_units",
            ),
            (
                "class-counts-sensitivity-of-one-label",
                "OutcomeCounts.sensitivity",
                "column_sensitivity(self.shape[0], adjacency)",
                "column_sensitivity(1, 'zero_out')",
            ),
            (
                "class-counts-half-sensitivity",
                "OutcomeCounts.sensitivity",
                "column_sensitivity(self.shape[0], adjacency)",
                "math.sqrt(self.shape[0] / 2.0)",
                "guarantees_neighbors",
            ),
        ],
        "skdp._dpsgd.network_solver": [
            ("layer-bounds-charged-as-largest", "NetworkSolver._clip", "math.hypot(*bounds)", "max(bounds)"),
        ],
        "skdp._dpsgd.solver": [
            (
                "sums-beside-steps-without-noise",
                "Run.released",
                "mechanism.release(add_up(), self.stream.spawn(name))",
                "add_up()",
                "guarantees_neighbors",
            ),
            (
                "lot-size-from-private-n",
                "_fit",
                "planned(releases, fit.noise_multiplier, fit.n, d, to_plan)",
                "planned(releases, fit.noise_multiplier, fit.n_rows, d, to_plan)",
                "guarantees_neighbors",
            ),
            ("incremental-fit-reuses-noise", "_fit", "earlier.counts[0]", "0"),
            ("concurrent-runs-of-one-checkpoint", "fit_run", "lock.take()", "pass"),
        ],
        "skdp._dpsgd.streamed.streamed_model": [
            (
                "streamed-pass-repeats-lot",
                "StreamedModel._draw_ahead",
                "stream.spawn('step', coming)",
                "stream.spawn('step', step)",
            ),
            ("streamed-split-group-not-clipped", "_add_units", "add_clipped(total, cut, max_norm)", "total += cut"),
            (
                "streamed-rows-drawn-for-groups",
                "StreamedModel._draw",
                "self.n_rows if self._runs is None else self._runs.n_units",
                "self.n_rows",
            ),
        ],
    }
)
