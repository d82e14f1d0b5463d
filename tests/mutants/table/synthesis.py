"""Faults in synthetic data."""

from fault import faults_of

FAULTS = faults_of(
    {
        "skdp.synthesis.class_generator": [
            (
                "class-mixture-group-by-row",
                "DPClassMixtureGenerator._learn",
                "clip_groups(fit.units, weight_of_each(weights, n), 1.0)",
                "weight_of_each(weights, n)",
                "guarantees_units",
            ),
        ],
        "skdp.synthesis.class_moments": [
            (
                "class-mixture-noise-of-whole-budget",
                "ClassMeasurement._add_noise",
                "self.noise_multiplier / math.sqrt(share)",
                "self.noise_multiplier",
            ),
            (
                "class-mixture-without-noise",
                "ClassMeasurement._add_noise",
                "mechanism.release(vector, stream)",
                "vector",
            ),
            (
                "class-mixture-count-sensitivity-of-one-table",
                "sensitivity_of_counts",
                "1.0 if adjacency == 'replace_one' else math.sqrt(2.0)",
                "1.0",
            ),
            ("class-mixture-sums-not-clipped", "class_sums", "ball.bring_in(part[:, :d], part)", "part /= radius"),
            ("class-mixture-count-outside-sensitivity", "ClusterSums.sensitivity", "1.0 + self.weight ** 2", "1.0"),
        ],
        "skdp.synthesis.wgan": [
            (
                "gan-noise-divided-by-lot",
                "DPWGAN.fit",
                "fit.noise_multiplier",
                "(fit.noise_multiplier / (sampling.rate * fit.n))",
            ),
            (
                "gan-class-counts-without-noise",
                "DPWGAN._settle_shares",
                "GaussianMechanism(COUNT_NOISE * steps.noise_multiplier, 1.0).release(counts, stream.spawn('counts'))",
                "counts",
            ),
            (
                "gan-class-counts-not-charged",
                "DPWGAN._event_of_steps",
                "if not self._estimates_shares():\n    return steps",
                "return steps",
            ),
        ],
        "skdp.synthesis.linking": [
            (
                "linked-synthesis-persons-as-units",
                "synthesize_linked",
                "model.fit(joined, sample_weight=weights, groups=homes)",
                "model.fit(joined, sample_weight=weights)",
            ),
        ],
        "skdp.synthesis.marginals.contingency_tables": [
            (
                "tables-sensitivity-of-one-set",
                "TableSums.sensitivity",
                "math.sqrt(added)",
                "math.sqrt(added / len(self.sets))",
            ),
            (
                "tables-not-centered",
                "TableSums.vector",
                "centered(count(codes, columns, self.levels, shares))",
                "count(codes, columns, self.levels, shares)",
            ),
            (
                "tables-replace-one-half-sensitivity",
                "TableSums.sensitivity",
                "2.0 * farthest_exchange(self.levels, self.sets, self.weights)",
                "farthest_exchange(self.levels, self.sets, self.weights)",
            ),
            (
                "tables-group-by-row",
                "TableSums.clip_units",
                "exactly_summable(clip_groups(units, shares, reach * norm * kept, norm, squares))",
                "shares",
                "guarantees_units",
            ),
        ],
        "skdp.synthesis.marginals.noisy_tables": [
            (
                "pairs-selected-by-exact-scores",
                "Measurement._measure_selected",
                "best_pairs(found, open_pairs, levels, expected, deviation)",
                "best_pairs(exact, open_pairs, levels, expected, deviation)",
            ),
            ("pair-scores-not-charged", "Measurement._measure_selected", "sum(ROUND_SHARES)", "ROUND_SHARES[0]"),
            (
                "selected-tables-noise-of-whole-budget",
                "Measurement._measure_selected",
                "self._interactions(of_tables, sums, rows, stream.spawn('tables', t))",
                "self._interactions(1.0, sums, rows, stream.spawn('tables', t))",
            ),
            ("tables-without-noise", "Measurement._add_noise", "mechanism.release(vector, stream)", "vector"),
            (
                "tables-noise-ignores-reach",
                "Measurement._add_noise",
                "self.reach * sensitivity",
                "sensitivity",
                "guarantees_units",
            ),
            ("pair-scores-sensitivity-of-one", "sensitivity", "math.sqrt(n_sets)", "1.0"),
        ],
        "skdp.synthesis.marginals.synthesizer": [
            (
                "synthesizer-ignores-groups",
                "DPMarginalSynthesizer._learn",
                "LevelRows(codes, exact, fit.units)",
                "LevelRows(codes, None, None)",
                "guarantees_units",
            ),
            (
                "synthesizer-schema-not-charged",
                "DPMarginalSynthesizer._event_at",
                "compose([query.event_at(ratio * noise), tables(noise)])",
                "tables(noise)",
            ),
        ],
        "skdp.synthesis.pair_quality": [
            (
                "pair-quality-exact-mean",
                "SynthesisEvaluation._learn",
                "mechanism.release(exact, fit.spawn('pairs')) / (2.0 * n)",
                "exact / (2.0 * n)",
            ),
        ],
    }
)
