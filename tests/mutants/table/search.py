"""Mistakes in a private search."""

from mutant import mutant
from paths import CANDIDATES, PIPELINE, PRIVATE_STEP, SCORES, SEARCH, SEARCH_PLAN

MUTANTS = [
    mutant(
        "the score of a search released without noise",
        (
            SEARCH,
            'noisy = mechanism.release(np.array([total for _, total in totals]), stream.spawn("scores"))',
            "noisy = [total for _, total in totals]",
        ),
        tests="search",
        select="noise_of_its_price or what_ran",
    ),
    mutant(
        "the refit of a search not charged",
        (
            SEARCH_PLAN,
            "return compose([choice, _refit_event(finals, scale, tries)])",
            "return choice",
        ),
        tests="search",
        select="what_ran or every_try",
    ),
    mutant(
        "a search that charges training and not scores",
        (SEARCH_PLAN, "return tries.event(worst_of([*trained, scored]))", "return tries.event(worst_of(trained))"),
        tests="search",
        select="what_ran",
    ),
    mutant(
        "one of all tries charged where all are tried",
        (
            SEARCH_PLAN,
            "return worst_of([compose(trained), compose([scored] * len(tried))])",
            "return worst_of([trained[0], scored])",
        ),
        tests="search",
        select="every_try",
    ),
    mutant(
        "a search that is split by the labels",
        (
            SEARCH,
            'scored = self._split(rows.n_units, stream.spawn("split"), plan.adjacency)',
            'scored = self._split(rows.n_units, stream.spawn("split", repr(rows.y.tolist())), plan.adjacency)',
        ),
        tests="search",
        select="labels_move_nobody",
    ),
    mutant(
        "sensitivity of log-loss 1",
        (
            SCORES,
            'PrivateScore("neg_log_loss", _log_losses, LOSS_BOUND,',
            'PrivateScore("neg_log_loss", _log_losses, 1.0,',
        ),
        (SCORES, "worst), 0.0, self.bound)", "worst), 0.0, LOSS_BOUND)"),
        tests="search",
        select="within_the_bound or exchanged",
    ),
    mutant(
        "contributions of rows that are not cut off",
        (SCORES, "np.clip(np.where(np.isfinite(found), found, self._worst), 0.0, self.bound)", "np.nan_to_num(found)"),
        tests="search",
        select="cut_off",
    ),
    mutant(
        "NaN counts as the best loss",
        (SCORES, "return 0.0 if self.greater_is_better else self.bound", "worst = 0.0"),
        tests="search",
        select="as_the_worst or diverged",
    ),
    mutant(
        "infinite contributions cut off where they are best",
        (SCORES, "np.where(np.isfinite(found), found, self._worst)", "np.where(np.isnan(found), worst, found)"),
        tests="search",
        select="as_the_worst",
    ),
    mutant(
        "the winner priced as one fit",
        (
            SEARCH,
            "            step_of(estimator).set_price(Price(event, epsilon, terms.delta), paid)\n",
            "            pass\n",
        ),
        tests="search",
        select="charged_once",
    ),
    mutant(
        "scores of all tries shown under random stopping",
        (
            SEARCH,
            "for each in tried if plan.tries is None else filter(None, [best]):",
            "for each in tried:",
        ),
        tests="search",
        select="not_told",
    ),
    mutant(
        "progress of tries shown under random stopping",
        (SEARCH, "shown = self.verbose if plan.tries is None else 0", "shown = self.verbose"),
        tests="search",
        select="not_told",
    ),
    mutant(
        "tries that charge the accountant each",
        (CANDIDATES, '_SILENT = {"accountant": None, ', "_SILENT = {"),
        (PRIVATE_STEP, '"delta": delta, "accountant": None}', '"delta": delta}'),
        (
            PRIVATE_STEP,
            "        return str(self.estimator._learn(plan, rows, self._targets))\n",
            "        self.estimator._payment().charge(plan.event)\n"
            "        return str(self.estimator._learn(plan, rows, self._targets))\n",
        ),
        tests="search",
        select="charged_once",
    ),
    mutant(
        "a cache that hands the noise of one try to another",
        (PIPELINE, 'for parameter in ("memory", "transform_input"):', 'for parameter in ("transform_input",):'),
        tests="search",
        select="cache",
    ),
    mutant(
        "the search asks the ceiling after its rows are read",
        (
            SEARCH,
            "        self.n_public = n = public_rows_of(",
            "        np.asarray(self._X)\n        self.n_public = n = public_rows_of(",
        ),
        tests="search refusals",
        select="rows_are_read or no_row or before_the_rows",
    ),
    mutant(
        "sensitivity of squared errors that of their roots",
        (
            SCORES,
            "PrivateScore(name, errors, errors.bound, greater",
            "PrivateScore(name, errors, errors.high - errors.low, greater",
        ),
        (SCORES, "worst), 0.0, self.bound)", "worst), 0.0, getattr(self.contributions, 'bound', self.bound))"),
        tests="scores",
        select="by_at_most_the_sensitivity",
    ),
    mutant(
        "errors of targets as they came",
        (SCORES, "estimator.predict(X) - np.clip(y, self.low, self.high)", "estimator.predict(X) - y"),
        tests="scores",
        select="of_scikit_learn",
    ),
    mutant(
        "errors bounded by the targets that score",
        (SCORES, "        return (self.high - self.low) ** self.power\n", "        return 1.0\n"),
        (
            SCORES,
            "counted = np.clip(np.where(np.isfinite(found), found, self._worst), 0.0, self.bound)",
            "counted = np.clip(np.where(np.isfinite(found), found, self._worst), 0.0, max(self.bound, np.ptp(y)))",
        ),
        tests="scores",
        select="by_at_most_the_sensitivity",
    ),
    mutant(
        "candidates scored with bounds of their own",
        (SEARCH, "    if any(other != first for other in others):\n", "    if False:\n"),
        tests="scores",
        select="before_a_row_is_read",
    ),
]
