"""Mistakes in the prices of events beyond the Gaussian, of curves and of groups."""

from mutant import mutant
from paths import (
    ALLOCATION,
    ATOMS,
    BALANCE,
    CELLS_OF_PAIRS,
    EVENT_CURVES,
    EVENT_KINDS,
    GRID,
    GROUPS_OF_RECORDS,
    LABEL_TESTS,
    NOISE_EVENTS,
    NOISE_PAIRS,
    OTHER_RENYI,
    PAIRS,
    PAIRS_OF_EVENTS,
    PROFILES,
    RISK_CEILING,
    STATEMENTS,
    TARGETS,
    TRADE_OFF,
)

DOMINATING = "pairs"

MUTANTS = [
    # --- shifts and shares ---
    mutant(
        "replaced records moved by C alone",
        (PAIRS_OF_EVENTS, "_shifted(inner, 2 if replace_one else 1, order)", "_shifted(inner, 1, order)"),
        tests=DOMINATING,
        select="on_all_records or fixed_size",
    ),
    mutant(
        "half the shift of a replaced record in a Poisson sample",
        (
            PAIRS_OF_EVENTS,
            "sampled_laplace(share, 1.0 / event.noise_multiplier)",
            "sampled_laplace(share, 0.5 / event.noise_multiplier)",
        ),
        tests=DOMINATING,
        select="poisson",
    ),
    mutant(
        "sensitivity of integers left out",
        (
            PAIRS_OF_EVENTS,
            "discrete_laplace(event.noise_parameter, change * event.sensitivity)",
            "discrete_laplace(event.noise_parameter, change)",
        ),
        tests=DOMINATING,
        select="vectors or dp_accounting",
    ),
    mutant(
        "added records priced as removed ones",
        (
            PAIRS_OF_EVENTS,
            "return base.sampled_with(share), base.sampled_without(share)",
            "return (base.sampled_without(share),)",
        ),
        tests=DOMINATING,
        select="poisson or statements",
    ),
    mutant(
        "a mixture in the other direction alone",
        (PAIRS_OF_EVENTS, "return removed, removed.reversed()", "return (removed.reversed(),)"),
        tests=DOMINATING,
        select="mixtures",
    ),
    mutant(
        "statements about replaced records amplified",
        (PAIRS_OF_EVENTS, "return (base.drawn_unseen(share),)", "return (base.fixed_sample(share),)"),
        tests=DOMINATING,
        select="statements",
    ),
    mutant(
        "the same in composed statements",
        (STATEMENTS, "epsilon if unseen else _amplify(epsilon, each.share)", "_amplify(epsilon, each.share)"),
        tests=DOMINATING,
        select="statements",
    ),
    mutant(
        "a fixed sample whose loss is not that of its sample",
        (ATOMS, "        loss = sampled_loss(q, base)\n        higher", "        loss = q * base\n        higher"),
        tests=DOMINATING,
        select="fixed_size",
    ),
    mutant(
        "a revealed record that is not drawn",
        (
            ATOMS,
            "return LossAtoms.of(loss, log_weight, q * self.infinite, self.missing if",
            "return LossAtoms.of(loss, log_weight, 0.0, self.missing if",
        ),
        tests=DOMINATING,
        select="statements",
    ),
    mutant(
        "losses rounded down",
        (
            CELLS_OF_PAIRS,
            "np.maximum.accumulate(density(knots)[0]), np",
            "np.maximum.accumulate(density(knots)[0]) - 1e-3, np",
        ),
        tests=DOMINATING,
        select="on_all_records or poisson",
    ),
    mutant(
        "a loss of 0 on both sides of a fixed sample",
        (ATOMS, "up = self.loss > 1e-12 * self.most", "up = self.loss >= 0.0"),
        tests=DOMINATING,
        select="fixed_size",
    ),
    mutant(
        "copies of a record beyond those that are counted",
        (PAIRS_OF_EVENTS, "[::-1][1:], 0.0) + more", "[::-1][1:], 0.0)"),
        tests=DOMINATING,
        select="copies",
    ),
    # --- other ways to sample ---
    mutant(
        "one copy of a record in a sample with replacement",
        (PAIRS_OF_EVENTS, "_shifted(event.event, 2 * (k + 1), order)", "_shifted(event.event, 2, order)"),
        tests=DOMINATING,
        select="with_replacement",
    ),
    mutant(
        "a record that gives way costs nothing",
        (
            PAIRS_OF_EVENTS,
            "GaussianDpEvent(max(event.noise_multiplier / 2.0, 1e-100))",
            "GaussianDpEvent(event.noise_multiplier)",
        ),
        tests=DOMINATING,
        select="truncated or dp_accounting",
    ),
    mutant(
        "a truncation left out of Rényi divergences",
        (OTHER_RENYI, "(1.0 - cut) * math.expm1(whole) + cut * math.expm1(other)", "math.expm1(whole)"),
        tests=DOMINATING,
        select="truncated",
    ),
    mutant(
        "several steps of a record allocated as one",
        (EVENT_KINDS, "event.num_steps // event.num_selected)", "event.num_steps)"),
        tests=DOMINATING,
        select="allocation",
    ),
    mutant(
        "an allocation priced once",
        (EVENT_KINDS, "    return SelfComposedDpEvent(part, event.num_selected)\n", "    return part\n"),
        tests=DOMINATING,
        select="allocation",
    ),
    mutant(
        "an allocated record that is added alone",
        (ALLOCATION, "max(removed, added) / (alpha - 1.0)", "added / (alpha - 1.0)"),
        tests=DOMINATING,
        select="allocation",
    ),
    mutant(
        "a tree without its root",
        (NOISE_EVENTS, "return max(counts).bit_length()", "return (max(counts) - 1).bit_length()"),
        tests=DOMINATING,
        select="tree",
    ),
    # --- mechanisms ---
    mutant(
        "half the range of an exponential mechanism",
        (
            NOISE_PAIRS,
            "return loss, 0.5 * (loss - epsilon) - log_scale",
            "return 0.5 * loss, 0.5 * (loss - epsilon) - log_scale",
        ),
        tests=DOMINATING,
        select="bounded_range",
    ),
    mutant(
        "losses that nobody follows taken for bounded ones",
        (OTHER_RENYI, "return 0.0 if isinstance(inner, _BOUNDED) else math.inf", "return 0.0"),
        tests="kinds",
        select="nobody_follows",
    ),
    mutant(
        "the Rényi divergence of a range halved",
        (OTHER_RENYI, "0.125 * alpha * epsilon * epsilon", "0.0625 * alpha * epsilon * epsilon"),
        tests=DOMINATING,
        select="bounded_range",
    ),
    mutant(
        "a bucket that lies less often",
        (NOISE_PAIRS, "lie = noise / buckets", "lie = noise / (buckets - 1)"),
        tests=DOMINATING,
        select="randomised",
    ),
    mutant(
        "a discrete Gaussian by half of rho",
        (
            OTHER_RENYI,
            "        return 0.5 * alpha * shift * shift\n    if isinstance(event, Exp",
            "        return 0.25 * alpha * shift * shift\n    if isinstance(event, Exp",
        ),
        tests=DOMINATING,
        select="on_all_records or substitute",
    ),
    mutant(
        "one direction of a Rényi divergence",
        (
            OTHER_RENYI,
            "max(_log_moment_of(pair, alpha, more) for pair in pairs)",
            "min(_log_moment_of(pair, alpha, more) for pair in pairs)",
        ),
        tests=DOMINATING,
        select="poisson or mixtures or other_accountant or renyi",
    ),
    mutant(
        "losses above the span left out",
        (PAIRS, "lost = self.pair.infinite + math.exp(float(above[last - 1]))", "lost = 0.0"),
        tests=DOMINATING,
        select="statements",
    ),
    # --- groups and curves ---
    mutant(
        "groups that move a sum by the root of their number",
        (
            GROUPS_OF_RECORDS,
            "noise = event.noise_multiplier / k",
            "noise = event.noise_multiplier / k**0.5",
        ),
        tests="curves",
        select="groups",
    ),
    mutant(
        "failures of a chain that do not grow",
        (
            GROUPS_OF_RECORDS,
            "math.fsum(math.exp(i * event.epsilon) for i in range(k))",
            "math.fsum(1.0 for i in range(k))",
        ),
        tests="curves",
        select="chain",
    ),
    mutant(
        "a group of which one record at most is drawn",
        (
            GROUPS_OF_RECORDS,
            "dict(enumerate(np.exp(logs).tolist()))",
            "{0.0: (1.0 - q) ** k, 1.0: 1.0 - (1.0 - q) ** k}",
        ),
        tests="curves",
        select="groups",
    ),
    mutant(
        "k times rho for groups of k",
        (EVENT_KINDS, "ZCDpEvent(k * k * event.rho)", "ZCDpEvent(k * event.rho)"),
        tests="curves",
        select="groups",
    ),
    mutant(
        "deltas of a chain of profiles added up",
        (PROFILES, "(own[kept] + np.exp(np.minimum(a[kept], 700.0)) * other)", "(own[kept] + other)"),
        tests="curves",
        select="profile",
    ),
    mutant(
        "a trade-off by one direction of the other",
        (
            TRADE_OFF,
            "exchanged = 1.0 - alpha - np.exp(-profile.loss) * (1.0 - profile.delta - alpha)",
            "exchanged = 1.0 - alpha - (1.0 - profile.delta - alpha)",
        ),
        tests="trade_off",
        select="both_directions",
    ),
    mutant(
        "what a test finds read at one end of the profile",
        (TRADE_OFF, "ahead = float((profile.delta + grown).min())", "ahead = float((profile.delta + grown)[0])"),
        tests="trade_off",
        select="closed_form",
    ),
    mutant(
        "mu of the corners alone, without the place where errors are smallest",
        (
            TRADE_OFF,
            "errors = np.append(alpha[kept], alpha_min), np.append(excess[kept], at_end)",
            "errors = alpha[kept], excess[kept]",
        ),
        tests="trade_off",
        select="rises_as_errors or lies_below",
    ),
    mutant(
        "a mu where both errors may be smaller than promised",
        (TRADE_OFF, "        return math.inf\n    alpha, excess", "        at_end = 0.0\n    alpha, excess"),
        tests="trade_off",
        select="hardly_errs",
    ),
    mutant(
        "a certified mu by tests whose errors are smaller than promised",
        (TRADE_OFF, "kept = (type_1 >= alpha_min) & (1.0 - found >= alpha_min)", "kept = type_1 > 0.0"),
        tests="trade_off",
        select="both_allowed",
    ),
    mutant(
        "errors of a test as if labels were the true losses",
        (LABEL_TESTS, "width * release.position - too_high(release, width)", "width * release.position"),
        tests="label_tests",
        select="threshold or made_up",
    ),
    mutant(
        "a bound on the norm of all rounding that forgets the transforms",
        (GRID, "size) * unit * (apart + 1.0)\n    return", "size) * _UNIT / math.log2(size)\n    return"),
        tests="grid",
        select="powers_of_a_transform",
    ),
    mutant(
        "as much found by a selection that may try nothing",
        (LABEL_TESTS, "each.found * sure)", "each.found)"),
        tests="label_tests",
        select="selection",
    ),
    mutant(
        "a guess by the larger of both priors",
        (EVENT_CURVES, "p = min(p, 1.0 - p)", "p = max(p, 1.0 - p)"),
        tests="trade_off",
        select="least_error or even_odds",
    ),
    mutant(
        "mu under replacement as under removal",
        (EVENT_CURVES, '(2.0 if self.adjacency == "replace_one" else 1.0)', "1.0"),
        tests="trade_off",
        select="record_is_replaced",
    ),
    mutant(
        "a noisy maximum by half its loss",
        (PAIRS_OF_EVENTS, "return laplace(event.epsilon)", "return laplace(0.5 * event.epsilon)"),
        tests="pairs",
        select="noisy_maximum or worst_case",
    ),
    mutant(
        "an epsilon implies a risk without its delta",
        (TARGETS, "1.0 + self.goal - 2.0 * delta", "1.0 + self.goal"),
        tests="targets",
        select="implies_a_risk_does",
    ),
    mutant(
        "a risk by the smaller of what two epsilons allow",
        (TARGETS, "ahead = math.log((self.tpr - delta) / self.fpr)", "ahead = math.log(self.tpr / self.fpr)"),
        tests="targets",
        select="implies_a_risk_does",
    ),
    mutant(
        "a promise about the curve takes any first charge",
        (
            BALANCE,
            "self.terms.family == GDP and not found.plain",
            "self.terms.family == GDP and self._counts and not found.plain",
        ),
        tests="risk_ceiling",
        select="nothing_else",
    ),
    mutant(
        "a ceiling in risk held by the Gaussian of any charge",
        (RISK_CEILING, 'if family in ("gaussian", GDP):', "if True:"),
        tests="risk_ceiling",
        select="implies",
    ),
]
