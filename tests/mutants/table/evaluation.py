"""Mistakes in the private evaluation of models."""

from mutant import mutant
from paths import AMOUNTS, ARROW, COUNTED, ONE_VS_REST, SCORED, WEIGHTS

MUTANTS = [
    mutant(
        "classes of an evaluation unknown where no rows are given",
        (COUNTED, "        self.work._check_targets_known()  # which rows that show no shape are read with\n", ""),
        tests="one_vs_rest",
        select="refused_in_one_line",
    ),
    mutant(
        "an exchanged row of an evaluation priced as one count",
        (COUNTED, "float(budget.epsilon or 0.0) / parts, unit", "float(budget.epsilon or 0.0), unit"),
        (COUNTED, "laplace.epsilon * (2 if replaced else 1)", "laplace.epsilon"),
        tests="evaluate",
        select="cost_epsilon",
    ),
    mutant(
        "the risk of an evaluation solved as if no row were exchanged",
        (COUNTED, "budget.risk, adjacency=self.adjacency)", "budget.risk)"),
        tests="risk_budgets",
        select="an_evaluation_lands",
    ),
    mutant(
        "an exchanged row of an evaluation at half its norm",
        (COUNTED, "math.sqrt(0.5) if replaced else 1.0", "0.5 if replaced else 1.0"),
        tests="evaluate",
        select="one_gaussian",
    ),
    mutant(
        "weights of an evaluation not cut",
        (WEIGHTS, "return np.minimum(weights / self.bound, 1.0)", "return weights / self.bound"),
        tests="evaluate",
        select="cut_at_it",
    ),
    mutant(
        "weights of an evaluation rounded up",
        (AMOUNTS, "np.floor(weight_of_each", "np.ceil(weight_of_each"),
        tests="evaluate",
        select="no_unit_adds",
    ),
    mutant(
        "counts of a unit not scaled",
        (AMOUNTS, "return shares * GRID // np.maximum(sums, GRID)[units.codes]", "return shares"),
        tests="evaluate",
        select="unit",
    ),
    mutant(
        "counts of a unit rounded up",
        (
            AMOUNTS,
            "return shares * GRID // np.maximum(sums, GRID)",
            "return 1 + shares * GRID // np.maximum(sums, GRID)",
        ),
        tests="evaluate",
        select="no_unit_adds",
    ),
    mutant(
        "noise of an evaluation for whole rows on a finer grid",
        (
            COUNTED,
            "DiscreteLaplaceMechanism.for_epsilon(float(budget.epsilon or 0.0) / parts, unit)",
            "DiscreteLaplaceMechanism.for_epsilon(float(budget.epsilon or 0.0) / parts)",
        ),
        tests="evaluate",
        select="cost_epsilon",
    ),
    mutant(
        "rows scored before the charge",
        (
            SCORED,
            '        self.shape = (int(shape_of("X", X)[0]),)\n',
            '        self.shape = (int(shape_of("X", X)[0]),)\n        list(self.blocks())\n',
        ),
        tests="evaluate",
        select="after_the_charge",
    ),
    mutant(
        "what a model says of a row shown",
        (SCORED, "            with silence():\n", "            with contextlib.nullcontext():\n"),
        (SCORED, "from typing import Any\n", "import contextlib\nfrom typing import Any\n"),
        tests="evaluate",
        select="stays_inside",
    ),
    mutant(
        "a private row named by the shape of its scores",
        (
            SCORED,
            "        if found is not None and found.shape == (n, *self._width):\n            return found\n",
            "        if found is not None:\n            if found.shape != (n, *self._width):\n"
            "                raise WrongTypeError(str(found.shape))\n            return found\n",
        ),
        tests="evaluate",
        select="another_number_of_scores",
    ),
    mutant(
        "a block of rows without scores for one that is refused",
        (
            SCORED,
            "        if n == 1:\n            return np.full((1, *self._width), np.nan)\n",
            "        return np.full((n, *self._width), np.nan)\n",
        ),
        tests="evaluate",
        select="whatever_is_beside or stays_inside",
    ),
    mutant(
        "scores read before the accountant is asked",
        (
            COUNTED,
            "        super().plan()\n        self.work._check_targets_known()",
            "        super().plan()\n        self.work._check_rows(self._X)\n        self.work._check_targets_known()",
        ),
        tests="evaluate",
        select="no_score_is_read",
    ),
    mutant(
        "bins of an evaluation by the number of private rows",
        (
            COUNTED,
            "n_public = self._public_n_samples(n_samples)\n        strength",
            "n_public = n_samples\n        strength",
        ),
        tests="evaluate",
        select="number_of_bins",
    ),
    mutant(
        "the private number of rows as the total",
        (COUNTED, 'if self._has_weights or self.adjacency == "add_remove" else', "if self._has_weights else"),
        tests="evaluate",
        select="total_is_private",
    ),
    mutant(
        "scores of other classes not priced",
        (ONE_VS_REST, "return 3 * (len(self.classes_) - 1)", "return 2 * (len(self.classes_) - 1)"),
        tests="one_vs_rest",
        select="cost_epsilon or than_is_priced",
    ),
    mutant(
        "a label of several priced as the only one",
        (ONE_VS_REST, "        return len(self.labels_)\n", "        return 1\n"),
        tests="one_vs_rest",
        select="cost_epsilon or than_is_priced",
    ),
    mutant(
        "a row of a class counted more often than it is priced",
        (ONE_VS_REST, "np.where(own, n - 1, 1) * amounts", "np.where(own, n, 1) * amounts"),
        tests="one_vs_rest",
        select="once_by_prediction or than_is_priced",
    ),
    mutant(
        "normal noise by the norm of one cell of a class",
        (ONE_VS_REST, "np.sqrt(2.0 + 1.0 / (len(self.classes_) - 1)) / 3.0", "1.0 / 3.0"),
        tests="one_vs_rest",
        select="normal_noise",
    ),
    mutant(
        "normal noise by the norm of one of several labels",
        (ONE_VS_REST, "len(self.labels_) ** -0.5", "1.0 / len(self.labels_)"),
        tests="one_vs_rest",
        select="normal_noise",
    ),
    mutant(
        "a gap in a file refused after the charge",
        (ARROW, "found._keeps_gaps = True", "found._keeps_gaps = False"),
        tests="rows_elsewhere",
        select="gaps_of_a_file",
    ),
]
