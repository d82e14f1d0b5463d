"""Faults in events, privacy loss, composition and the accountant."""

from fault import faults_of

FAULTS = faults_of(
    {
        "skdp.accounting.calibration": [
            (
                "calibration-returns-unverified-noise",
                "_affordable",
                "_in_reach(cost, goal, (most,), rejection)",
                "min(parameter, most)",
            ),
        ],
        "skdp.accounting.statements.privacy_curves": [
            (
                "gaussian-mu-replace-one-as-removal",
                "PrivacyProfile._gaussian_mu",
                "2.0 if self.adjacency == 'replace_one' else 1.0",
                "1.0",
                "trade_off",
            ),
        ],
        "skdp.accounting.formulas.dominating": [
            (
                "poisson-replace-one-half-shift",
                "",
                "sampled_laplace(share, 1.0 / e.noise_multiplier)",
                "sampled_laplace(share, 0.5 / e.noise_multiplier)",
            ),
            (
                "integer-noise-sensitivity-ignored",
                "",
                "discrete_laplace(e.noise_parameter, change * e.sensitivity)",
                "discrete_laplace(e.noise_parameter, change)",
            ),
            ("poisson-mixture-reversed-only", "mixture", "(removed, removed.reversed())", "(removed.reversed(),)"),
            (
                "discrete-gaussian-replace-one-shift",
                "",
                "discrete_gaussian(e.standard_deviation, change * e.sensitivity, order)",
                "discrete_gaussian(e.standard_deviation, 1 * e.sensitivity, order)",
                "discrete_gaussian",
            ),
            ("replace-one-shift-of-one-sensitivity", "dominating", "2 if replace_one else 1", "1"),
            (
                "poisson-sampling-one-direction",
                "dominating",
                "(base[0].sampled_with(share), base[-1].sampled_without(share))",
                "(base[-1].sampled_without(share),)",
            ),
            ("fixed-sample-replace-one-amplified", "dominating", "base[0].drawn_unseen", "base[0].fixed_sample"),
        ],
        "skdp.accounting.events.kinds": [
            (
                "group-privacy-root-of-size",
                "noise_of_group",
                "event.noise_multiplier / k",
                "event.noise_multiplier / k ** 0.5",
                "curves",
            ),
            ("group-privacy-delta-not-amplified", "statement_of_group", "math.exp(i * event.epsilon)", "1.0", "curves"),
        ],
        "skdp.accounting.events.specifications": [
            (
                "event-subclass-as-base",
                "resolve",
                "type(event) in _OWN",
                "isinstance(event, tuple(_OWN - {DpEvent}))",
                "extending",
            ),
        ],
        "skdp.accounting.ledger.accountant": [
            (
                "accountant-of-groups-accepts-rows",
                "PrivacyAccountant._reject_other_unit",
                "(unit == 'row') == (self.unit == 'row')",
                "True",
                "guarantees_units",
            ),
            (
                "data-split-drawn-twice",
                "PrivacyAccountant.keep_split",
                "self.split or self._make_split(asked)",
                "asked.with_new_key()",
                "parts",
            ),
        ],
        "skdp.accounting.ledger.admission": [
            ("budget-lowered-below-spent", "_check_raise", "figure > epsilon", "False"),
            (
                "accountant-charges-in-forked-process",
                "MemoryLog.is_copy",
                "self._detached or self._process != os.getpid()",
                "self._detached",
            ),
        ],
        "skdp.accounting.ledger.balance": [
            (
                "filter-order-chosen-after-outputs",
                "Balance.rule_with",
                "if self.rule is not None:\n    return self.rule",
                "pass",
            ),
        ],
        "skdp.accounting.ledger.filters": [
            ("filter-delta-not-halved", "rule_for", "0.5 * delta if family == 'auto' else delta", "delta"),
            ("filter-renyi-delta-not-split", "_filters", "rule.renyi / len(rule.orders)", "rule.renyi"),
            ("partition-selection-delta-not-multiplied", "failures_of", "n * part", "part"),
            ("filter-partition-selection-delta-reused", "rule_for", "delta - gaussian - failures", "delta - gaussian"),
        ],
        "skdp.accounting.ledger.ledger": [
            (
                "partition-ignores-common-charges",
                "Ledger._concerned",
                "self._common.copy(partition)",
                "Balance(self.terms)",
            ),
            (
                "partition-epsilon-of-last",
                "Ledger.events",
                "{each.event for each in self.balances}",
                "{self.balances[-1].event}",
            ),
        ],
        "skdp.accounting.ledger.sqlite": [
            (
                "budget-file-charge-not-committed",
                "transaction",
                "with connection:\n    return work(connection)",
                "if True:\n    return work(connection)",
            ),
        ],
        "skdp.accounting.ledger.file_log": [
            ("concurrent-charge-not-admitted-again", "Store._write", "len(self._ledger.entries) != known", "False"),
            ("budget-file-older-copy-accepted", "Store._enter", "self._heads[count:count + 1] != [head]", "False"),
            ("budget-file-hash-not-verified", "_read_on", "_hash(row)", "written"),
        ],
        "skdp.accounting.methods": [
            (
                "epsilon-replace-one-as-add-remove",
                "epsilon_of",
                "adjacency == 'replace_one'",
                "False",
                "noise_stages epsilon",
            ),
        ],
        "skdp.accounting.pld.closed_forms": [
            ("pld-sampled-gaussian-as-unsampled", "_sampled_epsilon", "delta / q * (1.0 - _SAFE)", "delta"),
            (
                "closed-form-replace-one-empty-place",
                "_log_delta",
                "mills_drop(a, 2.0 * pair.m)",
                "mills_drop(a, pair.m)",
            ),
        ],
        "skdp.accounting.pld.epsilon": [
            ("selection-mildest-candidate", "_selected_profile", "np.max", "np.min"),
        ],
        "skdp.accounting.pld.pairs": [
            (
                "pld-losses-above-span-dropped",
                "AtomsPair.atoms",
                "self.pair.infinite + math.exp(float(above[last - 1]))",
                "0.0",
                "pairs",
            ),
            (
                "pld-losses-far-above-epsilon-dropped",
                "Pair._atoms",
                "Atoms(loss, base + np.log(weight), below, above)",
                "Atoms(loss, base + np.log(weight), below + above, 0.0)",
            ),
        ],
        "skdp.accounting.pld.profiles": [
            ("selection-profile-half-shift", "_jumps", "-width", "-0.5 * width"),
        ],
        "skdp.accounting.rdp.mechanisms": [
            ("rdp-discrete-gaussian-halved", "other_rdp", "0.5 * alpha", "0.25 * alpha"),
            (
                "rdp-smaller-direction",
                "_by_pair",
                "max((_log_moment_of(pair, alpha) for pair in pairs))",
                "min((_log_moment_of(pair, alpha) for pair in pairs))",
            ),
        ],
        "skdp.accounting.rdp.rdp": [
            (
                "rdp-selection-mean-trials-ignored",
                "_selected_at",
                "_worst(runs, alpha, replace_one) + math.log(trials.mean) / (alpha - 1.0)",
                "_worst(runs, alpha, replace_one)",
            ),
            (
                "rdp-poisson-replace-one-as-removal",
                "rdp",
                "log_moment(alpha, rate, noise, replace_one=replace_one)",
                "log_moment(alpha, rate, noise)",
            ),
            (
                "rdp-selection-mildest-candidate",
                "_worst",
                "max((rdp(run, alpha, replace_one=replace_one) for run in runs))",
                "min((rdp(run, alpha, replace_one=replace_one) for run in runs))",
            ),
        ],
        "skdp.accounting.statements.targets": [
            ("risk-budget-delta-ignored", "RiskTarget.implied_by", "1.0 + self.goal - 2.0 * delta", "1.0 + self.goal"),
        ],
    }
)
