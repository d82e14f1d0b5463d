"""Mistakes in the noise, in the draw of rows, and in what follows a release."""

from mutant import BY_PROPERTY, mutant
from paths import (
    ADDITIVE,
    AVERAGING,
    BASE,
    BITS,
    CLASS_WEIGHT,
    CLASSIFIER,
    GAPS,
    GRADIENT,
    LINEAR_RECIPE,
    MECHANISMS,
    NOISE,
    NOISE_STAGES,
    OPTIMIZERS,
    PLAN,
    PRIVATE_STEP,
    RANDOM,
    RECIPE,
    ROUNDED,
    RUN_FIT,
    SAMPLING,
    TRAINING,
)

RELEASE = "gradient = mechanism.release(total, noise_stream)\n"
DIVIDE = "gradient /= plan.expected_lot_size\n"

MUTANTS = [
    # --- noise that is spread over steps ---
    mutant(
        "falling noise drawn as constant noise",
        (TRAINING, "mechanism = plan.mechanism_at(state.n_done)", "mechanism = plan.mechanism"),
        tests="noise_stages",
        select="event_lists",
    ),
    mutant(
        "falling noise that is rising when it is drawn",
        (
            PLAN,
            "        for stage in self._stages:\n            if step < stage.n_steps:",
            "        for stage in reversed(self._stages):\n            if step < stage.n_steps:",
        ),
        tests="noise_stages",
        select="event_lists or their_event",
    ),
    mutant(
        "falling noise priced as constant noise",
        (
            PLAN,
            "step = self.sampling.event(self._mechanism_of(stage.factor).event)",
            "step = self.sampling.event(self.mechanism.event)",
        ),
        tests="noise_stages",
        select="event_lists or their_event",
    ),
    mutant(
        "shares of falling noise that do not sum to one",
        (NOISE_STAGES, "    shares /= shares.mean()\n", ""),
        tests="noise_stages",
        select="cost_what",
    ),
    mutant(
        "falling noise of sampled rows",
        (RECIPE, "if sampling.rate < 1.0 or n_steps", "if n_steps"),
        tests="noise_stages",
        select="constant_where",
    ),
    mutant(
        "a noise multiplier that was given falls",
        (RECIPE, "self.model.noise_multiplier is None or self.model._noise_is_allotted", "True"),
        tests="noise_stages",
        select="constant_where",
    ),
    # --- weights of classes, and the noise in a coefficient ---
    mutant(
        "class weights divided by the largest that occurs",
        (
            CLASSIFIER,
            "weights * factors[coded], to_bound)",
            "weights * factors[coded] / factors[coded].max(), to_bound)",
        ),
        tests="class_weight",
        select="no_say",
    ),
    mutant(
        "class weights by the shares in the labels",
        (
            CLASSIFIER,
            "weights * factors[coded], to_bound)",
            "weights * (len(coded) / np.maximum(np.bincount(coded, minlength=len(factors)), 1))[coded], to_bound)",
        ),
        tests="class_weight",
        select="no_say",
    ),
    mutant(
        "balanced class weights read from nobody's shares",
        (CLASS_WEIGHT, 'class_weight == "balanced":', "False:"),
        (CLASS_WEIGHT, "    if class_weight is None:", '    if class_weight in (None, "balanced"):'),
        tests="class_weight",
        select="bad_weight",
    ),
    mutant(
        "few rows told by the private number of rows",
        (
            RUN_FIT,
            "_weak_signal(plan.run, plan.n_public, rows.shape[1])",
            "_weak_signal(plan.run, rows.shape[0], rows.shape[1])",
        ),
        tests="weak_signal",
        select="told_the_same",
    ),
    mutant(
        "few rows told by the number of classes among the labels",
        (
            GRADIENT,
            "note_notice(self, self._weak_signal(run, plan.n_public, rows.shape[1]))",
            "note_notice(self, run.recipe.weak_signal(run, plan.n_public, rows.shape[1], plan.outputs))",
        ),
        tests="weak_signal",
        select="among_the_labels",
    ),
    mutant(
        "a synthesizer that buys without charging for it",
        (
            "skdp/synthesis/marginals/synthesizer.py",
            "partial(event_with, self._purchases(), of_tables)",
            "of_tables",
        ),
        tests="bought_table",
        select="priced or one_line",
    ),
    mutant(
        "what is left of a column by counts of words that are not named",
        (
            "skdp/preprocessing/histograms/purchase.py",
            "strict=True) if key in chosen)), len(chosen)",
            "strict=True))), len(chosen)",
        ),
        tests="lost_columns",
        select="told_to_the_noise",
    ),
    mutant(
        "an array of objects told after the charge",
        (
            "skdp/preprocessing/schema_buyer.py",
            "tell_now(estimator, _OF_OBJECTS)",
            "note_notice(estimator, _OF_OBJECTS)",
        ),
        tests="lost_columns",
        select="before_anything",
    ),
    mutant(
        "few rows to buy with, by the private number of rows",
        (
            "skdp/preprocessing/vectorizer.py",
            "note_remains(self, bought, plan.n_public)",
            "note_remains(self, bought, rows.shape[0])",
        ),
        tests="lost_columns",
        select="is_not_told",
    ),
    mutant(
        "noise of a coefficient without that of earlier instalments",
        (LINEAR_RECIPE, "if plan.warm else 0.0\n", "if self._resumes(plan) else 0.0\n"),
        tests="noise_kept",
        select="instalments",
    ),
    mutant(
        "noise of a coefficient from all iterates, not from the averaged ones",
        (NOISE, "total[np.maximum(first - step, 0)]", "0.0 * step"),
        tests="noise_kept",
        select="spread",
    ),
    # --- the noise ---
    mutant(
        "noise divided by the root of the lot",
        (
            TRAINING,
            RELEASE,
            "noise = mechanism.release(0 * total, noise_stream) * plan.expected_lot_size**0.5\n"
            "            gradient = total + noise\n",
        ),
        tests="loop classifier",
        select=BY_PROPERTY,
    ),
    mutant(
        "divisor by the realised lot",
        (
            TRAINING,
            DIVIDE,
            "gradient /= max(1, len(lot) if lot is not None else model.n_rows)\n",
        ),
        tests="loop classifier",
        select=BY_PROPERTY,
    ),
    mutant(
        "noise without the sensitivity",
        (MECHANISMS, "return self.noise_multiplier * self.sensitivity", "return self.noise_multiplier"),
        tests="gaussian_mechanism loop",
        select=BY_PROPERTY,
    ),
    mutant(
        "noise added after the division",
        (TRAINING, RELEASE, "gradient = mechanism.release(total / plan.expected_lot_size, noise_stream)\n"),
        (TRAINING, f"            {DIVIDE}", ""),
        tests="loop",
        select=BY_PROPERTY,
    ),
    mutant(
        "noise of a release alone drawn before its charge",
        (
            ADDITIVE,
            "        if ledger is not None:\n"
            '            known = None if stream is random_state else {"seeded": random_state is not None}\n'
            "            ledger.spend(self.event, label or type(self).__name__, "
            "adjacency=adjacency, parameters=known)\n"
            "        noisy = self._heard(exact, stream)\n",
            "        noisy = self._heard(exact, stream)\n"
            "        if ledger is not None:\n"
            '            known = None if stream is random_state else {"seeded": random_state is not None}\n'
            "            ledger.spend(self.event, label or type(self).__name__, "
            "adjacency=adjacency, parameters=known)\n",
        ),
        tests="gaussian_mechanism",
        select="stands_when or refuses_draws",
    ),
    mutant(
        "noise that overflows in a narrow type",
        (MECHANISMS, '        object.__setattr__(self, "sensitivity", sensitivity)\n', ""),
        tests="gaussian_mechanism",
        select="in_doubles",
    ),
    mutant(
        "two releases of a fit with the same noise",
        (BASE, 'spawn("release", *map(int, terms.stream.words(2)))', 'spawn("release")'),
        tests="extending",
        select="two_plans",
    ),
    mutant(
        "two releases for one charge",
        (BASE, "self._streams.pop()", "self._streams[0]"),
        tests="extending",
        select="released_once",
    ),
    mutant(
        "priced at another noise than runs",
        (
            MECHANISMS,
            "return GaussianDpEvent(self.noise_multiplier)",
            "return GaussianDpEvent(1.1 * self.noise_multiplier)",
        ),
        tests="gaussian_mechanism plan",
    ),
    mutant(
        "one normal for all parameters",
        (
            MECHANISMS,
            "stream.noisy(value.ravel(), scale, grid)",
            "value.ravel() + stream.noisy(np.zeros(1), scale, grid)",
        ),
        tests="gaussian_mechanism loop",
        select=BY_PROPERTY,
    ),
    mutant(
        "the same noise at each step",
        (TRAINING, RELEASE, RELEASE.replace("noise_stream", 'stream.spawn("noise")')),
        tests="loop",
        select=BY_PROPERTY,
    ),
    mutant(
        "one stream for sampling and noise",
        (TRAINING, 'stream.spawn("sampling"), stream.spawn("noise")', '(stream.spawn("noise"),) * 2'),
        tests="loop",
        select=BY_PROPERTY,
    ),
    mutant(
        "two copies of one stream for sampling and noise",
        (TRAINING, 'stream.spawn("sampling"), stream.spawn("noise")', 'stream.spawn("noise"), stream.spawn("noise")'),
        tests="loop",
        select=BY_PROPERTY,
    ),
    mutant(
        "purposes ignored by spawn",
        (RANDOM, "repr(purpose).encode()", 'b"purpose"'),
        tests="streams",
    ),
    mutant(
        "key of a seed without the name of the class",
        (RANDOM, "{name!r}:", ""),
        tests="seeds",
        select="classes_and_functions",
    ),
    mutant(
        "steps of one class with one seed and one stream",
        (PRIVATE_STEP, 'terms.stream.spawn("step of a pipeline", number)', "terms.stream"),
        tests="seeds",
        select="pipeline_steps",
    ),
    mutant(
        "instalments reuse the noise",
        (GRADIENT, 'spawn("from step", before[0])', 'spawn("from step", 0)'),
        tests="classifier logistic_runs",
        select="instalments",
    ),
    mutant(
        "a key that is always the same",
        (RANDOM, "secret = os.urandom(32) if key is None else key", "secret = bytes(32) if key is None else key"),
        tests="streams",
    ),
    mutant(
        "noise from numpy's global generator",
        (
            RANDOM,
            "normals_from_words(self._batch[1], normals)",
            "normals = np.random.standard_normal(_NORMALS_AHEAD)",
        ),
        tests="streams",
    ),
    mutant(
        "left-over normals drawn twice",
        (RANDOM, "self.normals = self.normals[filled:]", "self.normals = self.normals[filled // 2 :]"),
        tests="streams",
    ),
    mutant(
        "a stream looked at and not taken",
        (RANDOM, "draws = self._at_rest.pop()", "draws = self._at_rest[-1]"),
        tests="streams",
        select="second_caller or brings_no_number or share_no",
    ),
    mutant(
        "a stream put back before it is used",
        (
            RANDOM,
            "        draws.fill(out)\n        self._at_rest.append(draws)\n",
            "        self._at_rest.append(draws)\n        draws.fill(out)\n",
        ),
        tests="streams",
        select="second_caller",
    ),
    mutant(
        "a forked child goes on with the noise of its parent",
        (RANDOM, "os.register_at_fork(after_in_child=_mark_child)", "pass"),
        tests="streams",
        select="forked",
    ),
    mutant(
        "a forked child spawns the streams of its parent",
        (RANDOM, "        self._check_process()\n        # HMAC", "        # HMAC"),
        tests="streams",
        select="forked",
    ),
    mutant(
        "a stream that can be pickled",
        (
            RANDOM,
            'raise TypeError("A SecretStream cannot',
            'return SecretStream, (self._key,), str("A SecretStream cannot',
        ),
        tests="streams",
    ),
    mutant(
        "tail of the normals cut at 2**-32",
        (
            BITS,
            "radii[i] = math.sqrt(-2.0 * _log_unit(words[i]))",
            "radii[i] = math.sqrt(-2.0 * _log_unit(words[i] & np.uint64(0xFFFFFFFF00000000)))",
        ),
        tests="bits",
    ),
    mutant(
        "half of the angles",
        (BITS, "sign = (word & np.uint64(1)) << np.uint64(63)", "sign = (word & np.uint64(0)) << np.uint64(63)"),
        tests="bits",
    ),
    # --- noise on a grid ---
    mutant(
        "noise that is not rounded",
        (
            MECHANISMS,
            "stream.noisy(value.ravel(), scale, grid)",
            "value.ravel() + stream.normal(value.size) * scale * grid",
        ),
        tests="gaussian_mechanism",
        select="low_bits or whatever_the_value",
    ),
    mutant(
        "values that are not on the grid",
        (BITS, "noisy[i] = whole * grid + nearest\n", "noisy[i] = whole * grid + value[i]\n"),
        tests="gaussian_mechanism",
        select="low_bits or whatever_the_value",
    ),
    mutant(
        "values rounded to the grid before noise is added",
        (
            BITS,
            "        exact = normals[i] * scale + rest\n        whole",
            "        exact = normals[i] * scale\n        whole",
        ),
        tests="bits gaussian_mechanism",
        select="noisy_sums or whatever_the_value",
    ),
    mutant(
        "uncertain sums decided without the rest of the value",
        (ROUNDED, 'Decimal(rest) + Decimal("0.5")', 'Decimal("0.5")'),
        tests="rounded_normals",
        select="further_digits or near_a_half",
    ),
    mutant(
        "a grid that depends on the value",
        (
            MECHANISMS,
            "        return stream.noisy",
            "        finer = 2.0 ** bool(value.size and abs(value.flat[0]) > 1e-9)\n"
            "        grid, scale = grid / finer, scale * finer\n"
            "        return stream.noisy",
        ),
        tests="gaussian_mechanism",
        select="whatever_the_value",
    ),
    mutant(
        "noise that depends on the number of values",
        (
            MECHANISMS,
            "grid_and_scale(self.standard_deviation)",
            "grid_and_scale(self.standard_deviation * (1.0 + value.size**0.5 * 2.0**-26))",
        ),
        tests="gaussian_mechanism replay private_checks",
        select="number_of_values or string_of_one or number_of_strings",
    ),
    mutant(
        "noise without room for rounded sums",
        (MECHANISMS, "_INFLATION = 1.0 + 1.01 * 2.0**-12 + 2.0**-50", "_INFLATION = 1.0 + 2.0**-50"),
        tests="gaussian_mechanism",
        select="room",
    ),
    mutant(
        "a standard deviation smaller than that of the drawn noise",
        (
            MECHANISMS,
            "        return self.noise_multiplier * self.sensitivity * _INFLATION\n",
            "        return self.noise_multiplier * self.sensitivity\n",
        ),
        (MECHANISMS, "grid_and_scale(self.standard_deviation)", "grid_and_scale(self.standard_deviation * _INFLATION)"),
        tests="gaussian_mechanism",
        select="added_once or computed_in_doubles",
    ),
    mutant(
        "zeros that keep their sign",
        (
            BITS,
            "whole = (exact + _INTEGER_VALUE) - _INTEGER_VALUE\n        noisy",
            "whole = np.rint(exact)\n        noisy",
        ),
        tests="bits",
        select="no_sign",
    ),
    mutant(
        "a kernel that is thought to be exact",
        (
            ROUNDED,
            "return 2.0**-52 / _length(least) + 2.0**-49 * _length(most) + 2.0 / (_WORDS - 1 - most)",
            "return 0.0",
        ),
        tests="rounded_normals",
        select="bound or stands",
    ),
    mutant(
        "a bound without what further bits could change",
        (ROUNDED, " + 2.0 / (_WORDS - 1 - most)", ""),
        tests="rounded_normals",
        select="bound or stands",
    ),
    mutant(
        "the bound of one radius for a batch",
        (RANDOM, "error_bound(*map(int, extreme_radii(self._batch[1])))", "error_bound(2**63, 2**63)"),
        tests="rounded_normals",
        select="take_digits",
    ),
    mutant(
        "normals of a pair drawn on with bits of their own",
        (RANDOM, '("further bits", start, block, pair)', '("further bits", start, block, number)'),
        tests="rounded_normals",
        select="both_normals",
    ),
    mutant(
        "all pairs drawn on with the same bits",
        (RANDOM, '("further bits", start, block, pair)', '"further bits"'),
        tests="rounded_normals",
        select="both_normals",
    ),
    mutant(
        "whole numbers decided whatever the further bits of the angle",
        (ROUNDED, "error = open_radius + longest * quarter / (2 << n_angle) + slack", "error = open_radius + slack"),
        tests="rounded_normals",
        select="further_digits or short_words",
    ),
    mutant(
        "whole numbers decided whatever the further bits of the radius",
        (ROUNDED, "error = open_radius + longest", "error = longest"),
        tests="rounded_normals",
        select="further_digits or short_words",
    ),
    mutant(
        "open numbers left as the kernel rounded them",
        (
            RANDOM,
            "if add_normals(exact, self.normals[: len(part)], scale, grid, limit, part):",
            "if add_normals(exact, self.normals[: len(part)], scale, grid, limit, part) < 0:",
        ),
        tests="rounded_normals",
        select="take_digits or both_normals",
    ),
    # --- sampling ---
    mutant(
        "gaps that are thought to be certain",
        (GAPS, "return _uncertainty(_LONGEST, log_survival), _FAR", "return -1.0, _FAR"),
        tests="exact_gaps",
        select="stands or takes_digits",
    ),
    mutant(
        "a tail of gaps that is thought to be certain",
        (GAPS, "_FAR / log_survival\n", "math.inf\n"),
        tests="exact_gaps",
        select="stands",
    ),
    mutant(
        "uncertain gaps left as the kernel rounded them",
        (BITS, "gaps[i] = -1 if is_open else gap", "gaps[i] = gap"),
        tests="exact_gaps",
        select="stands or takes_digits",
    ),
    mutant(
        "gaps decided whatever the further digits",
        (GAPS, "Decimal(size - 1).ln()", "Decimal(size).ln()"),
        tests="exact_gaps",
        select="further_digits or geometric",
    ),
    mutant(
        "gaps drawn on with the same digits",
        (RANDOM, 'repr(("further bits of a gap", start + i))', 'repr(("further bits of a gap", 0))'),
        tests="exact_gaps",
        select="takes_digits",
    ),
    mutant(
        "gaps at a rate that is rounded up by a part in a million",
        (RANDOM, "log_survival, gaps = -math.log1p(-rate)", "log_survival, gaps = -math.log1p(-rate) * (1 + 1e-6)"),
        tests="exact_gaps streams",
        select="exact_gaps or plain",
    ),
    mutant(
        "lots of fixed size billed as Poisson",
        (
            SAMPLING,
            "rows = stream.poisson_rows(n, self.rate)",
            "rows = np.sort(np.argsort(stream.words(n))[: round(n * self.rate)])",
        ),
        tests="sampling loop",
        select=BY_PROPERTY,
    ),
    mutant(
        "shuffling billed as Poisson",
        (
            SAMPLING,
            "rows = stream.poisson_rows(n, self.rate)",
            "size = max(1, round(n * self.rate))\n"
            "        first = int(stream.words(1)[0]) % max(1, n - size + 1)\n"
            "        rows = np.arange(first, min(n, first + size))",
        ),
        tests="sampling loop",
        select=BY_PROPERTY,
    ),
    mutant(
        "all rows at every step, billed as Poisson",
        (SAMPLING, "rows = stream.poisson_rows(n, self.rate)", "rows = np.arange(n)"),
        tests="sampling loop",
        select=BY_PROPERTY,
    ),
    mutant(
        "sampled at another rate than is priced",
        (SAMPLING, "stream.poisson_rows(n, self.rate)", "stream.poisson_rows(n, min(1.2 * self.rate, 0.999))"),
        tests="sampling loop",
        select=BY_PROPERTY,
    ),
    mutant(
        "full batch billed as half a batch",
        (SAMPLING, "        return inner\n", "        return PoissonSampledDpEvent(0.5, inner)\n"),
        tests="sampling plan",
    ),
    mutant(
        "gap of a sampled row off by one",
        (BITS, "last += 1 + rows[i]", "last += 2 + rows[i]"),
        tests="bits streams",
    ),
    mutant(
        "lot cut off at its expected size and four deviations",
        (RANDOM, "        while last < n:\n", "        for _ in range(1 if last < n else 0):\n"),
        tests="streams",
    ),
    mutant(
        "last lot dropped when empty",
        (
            TRAINING,
            "            total = model.clipped_gradient_sum",
            "            if lot is not None and len(lot) == 0:\n                continue\n"
            "            total = model.clipped_gradient_sum",
        ),
        tests="loop",
        select=BY_PROPERTY,
    ),
    mutant(
        "no noise on an empty lot",
        (TRAINING, RELEASE, f"gradient = total if lot is not None and not len(lot) else {RELEASE[11:]}"),
        tests="loop",
        select=BY_PROPERTY,
    ),
    # --- what follows the release ---
    mutant(
        "the penalty taken of noisy data instead of theta",
        (
            OPTIMIZERS,
            "        return _shrink(new_theta, rate, penalty), MomentumState(new_velocity, n_done + 1)",
            "        return new_theta - penalty * new_velocity, MomentumState(new_velocity, n_done + 1)",
        ),
        tests="optimizers loop",
        select=BY_PROPERTY,
    ),
    mutant(
        "the first half averaged too",
        (AVERAGING, "if step >= start else state", "if step >= 0 else state"),
        tests="loop averaging",
        select=BY_PROPERTY,
    ),
]
