"""Mistakes in models of random trees: their one-hot sums, their projection, their seeds, and tools around them."""

from mutant import mutant
from paths import (
    BASE,
    CALLERS,
    EMBEDDING,
    LINEAR_RECIPE,
    ONE_HOT,
    ONE_HOT_KERNEL,
    ONE_HOT_RUNS,
    PRIVATE_STEP,
    RANDOM_TREES,
    RECIPE,
    TRAINING,
    TREES_OF_TABLES,
)

ROW = "at_most_the_clip or moves_the_sum"
UNPROJECTED_SUM = (
    ONE_HOT,
    "        total = self.geometry.centred(sums)\n",
    "        total = sums * self.geometry.entries_of_columns\n",
)
PROJECTED_NOISE = (
    TRAINING,
    "            gradient = mechanism.release",
    "            exact = np.array(total)\n            gradient = mechanism.release",
)
UNPROJECTED_NORM = (ONE_HOT, "(w * w * (1.0 - 1.0 / k) for w, k in", "(w * w for w, k in")

MUTANTS = [
    mutant("a clip by the projected norm of a sum that is not projected", UNPROJECTED_SUM, tests="one_hot", select=ROW),
    mutant(
        "a sum that is not projected, clipped by its own norm",
        UNPROJECTED_SUM,
        UNPROJECTED_NORM,
        tests="one_hot",
        select="moves_the_sum",
    ),
    mutant(
        "a norm that forgets the intercept",
        (ONE_HOT, "math.fsum([*squares, self.intercept**2])", "math.fsum(squares)"),
        tests="one_hot",
        select=f"{ROW} or norm_1",
    ),
    mutant(
        "a projection whose norm is taken twice",
        (ONE_HOT, "(w * w * (1.0 - 1.0 / k) for w, k in", "(w * w * (1.0 - 1.0 / k) ** 2 for w, k in"),
        tests="one_hot",
        select=f"{ROW} or norm_1",
    ),
    mutant(
        "rows taken for half as long",
        (ONE_HOT, "np.full(_ROWS, 1.0 + (", "np.full(_ROWS, 0.5 + ("),
        tests="one_hot",
        select="at_most_the_clip",
    ),
    mutant(
        "residuals of one-hot rows that are not clipped",
        (
            ONE_HOT,
            "self._lengths[:m], self._weights[where], max_norm)",
            "0.0 * self._lengths[:m], self._weights[where], max_norm)",
        ),
        tests="one_hot",
        select="at_most_the_clip",
    ),
    mutant(
        "codes of one block shared by two",
        (ONE_HOT, "np.add(code, levels[block],", "np.add(code, levels[low] % self.widths[block],"),
        tests="one_hot",
        select="codes_hold",
    ),
    mutant(
        "codes of more than a byte in a byte",
        (ONE_HOT, "first[-1] and cells * width > _CELLS:", "first[-1] and cells * width > 4 * _CELLS:"),
        tests="one_hot",
        select="codes_hold",
    ),
    mutant(
        "codes of lots read at other rows",
        (ONE_HOT_KERNEL, "row = np.uint64(rows[start + i])", "row = np.uint64(start + i)"),
        tests="one_hot",
        select="threads_change_nothing or plain_reading",
    ),
    mutant(
        "codes of lots read of another column",
        (ONE_HOT_KERNEL, "t2[i] = c2[row]", "t2[i] = c1[row]"),
        tests="one_hot",
        select="threads_change_nothing or plain_reading",
    ),
    mutant(
        "targets of lots read at other rows",
        (ONE_HOT, "return taken, rows[chosen]", "return taken, chosen"),
        tests="one_hot",
        select="threads_change_nothing",
    ),
    mutant(
        "a muted row that counts",
        (ONE_HOT, "self._weights[where], max_norm", "np.maximum(self._weights[where], 0.5), max_norm"),
        tests="one_hot",
        select="null_record",
    ),
    mutant(
        "scores at parameters that are not projected",
        (
            ONE_HOT,
            "enumerate(self.geometry.centred(table[:, : self.n_columns]))",
            "enumerate(table[:, : self.n_columns] * self.geometry.entries_of_columns)",
        ),
        tests="one_hot",
        select="do_not_see",
    ),
    mutant(
        "sums of the first blocks of a code alone",
        (ONE_HOT_KERNEL, "sums[level + i // stride % width]", "sums[level + min(i // stride, width - 1)]"),
        tests="one_hot",
        select="codes_hold",
    ),
    mutant(
        "noise without what the projection removes",
        (TRAINING, "from typing import Any\n\n", "from typing import Any\n\nimport numpy as np\n\n"),
        PROJECTED_NOISE,
        (
            TRAINING,
            "            gradient /= ",
            "            if hasattr(model, 'geometry') and hasattr(model.geometry, 'blocks'):\n"
            "                shape, width = (model.n_outputs, -1), model.geometry.blocks.n_columns\n"
            "                noise = (gradient - exact).reshape(shape)\n"
            "                entries = model.geometry.entries_of_columns\n"
            "                noise[:, :width] = model.geometry.centred(noise[:, :width]) / entries\n"
            "                gradient = exact + noise.ravel()\n"
            "            gradient /= ",
        ),
        tests="random_trees",
        select="directions_that_the_projection_removes",
    ),
    mutant(
        "importances that read rows",
        (
            RECIPE,
            "        limit = self._limit_of_groups(",
            "        shares = np.bincount(X.codes[0], minlength=9)[: self.model.n_features_in_] + 1.0\n"
            "        self.model._fitted_shares = shares\n"
            "        limit = self._limit_of_groups(",
        ),
        (
            RANDOM_TREES,
            "return self.embedding_._importances(self.coef_, self.coef_noise_)",
            "return self.embedding_._importances(self.coef_, self.coef_noise_) * self._fitted_shares",
        ),
        tests="random_trees guarantees_charges",
        select="importances_follow or on_the_list",
    ),
    mutant(
        "the noise of coefficients without the projection",
        (ONE_HOT, "return np.repeat(np.sqrt(1.0 - 1.0 / widths), widths)", "return np.ones(widths.sum())"),
        tests="random_trees",
        select="spread",
    ),
    mutant(
        "the noise of coefficients on the scale of parameters",
        (ONE_HOT_RUNS, "found.noise * deviations[each]", "found.noise"),
        tests="random_trees",
        select="spread",
    ),
    mutant(
        "a seed of the trees that follows from that of the noise",
        (
            TREES_OF_TABLES,
            "n_bins=self.n_bins, random_state=seed,",
            "n_bins=self.n_bins, random_state=seed + (self.random_state or 0),",
        ),
        tests="random_trees",
        select="neither_seed",
    ),
    mutant(
        "noise that follows from the seed of the trees",
        (
            BASE,
            "from_random_state(estimator.random_state, name)",
            "from_random_state(getattr(estimator, 'trees_random_state', estimator.random_state), name)",
        ),
        tests="random_trees",
        select="neither_seed",
    ),
    mutant(
        "an instalment on other trees",
        (RANDOM_TREES, "if not self.model._embedding()._gives_columns_of(self.model.embedding_):", "if False:"),
        tests="random_trees",
        select="an_instalment_on_other",
    ),
    mutant(
        "parameters of trees that are looked at after the charge of a pipeline",
        (TREES_OF_TABLES, "        embedding._check_parameters()\n", ""),
        tests="random_trees",
        select="bad_input",
    ),
    mutant(
        "a checkpoint that knows the names of a schema alone",
        (RANDOM_TREES, "None if self.model.schema is None else self.model._embedding()._read_schema([])", "None"),
        tests="random_trees",
        select="checkpoint",
    ),
    mutant(
        "a tool that averages predictions is not reported",
        (CALLERS, "                unsure = unsure or _describe_tool(frame)\n", "                pass\n"),
        tests="inspections",
        select="told_once",
    ),
    mutant(
        "a tool is reported each time",
        (CALLERS, "    if leaks_are_errors() or not _was_told(found):", "    if True:"),
        tests="inspections",
        select="told_once",
    ),
    mutant(
        "rows that are believed to have the form that came along",
        (ONE_HOT_RUNS, "targets, weights * fits, run)", "targets, weights, run)"),
        tests="embedded_rows",
        select="is_a_null_row or moves_releases or nothing_says",
    ),
    mutant(
        "one row of another form mutes all",
        (ONE_HOT_RUNS, "targets, weights * fits, run)", "targets, weights * fits.all(), run)"),
        tests="embedded_rows",
        select="is_a_null_row or moves_releases",
    ),
    mutant(
        "one row of another form ends the fit",
        (
            ONE_HOT_RUNS,
            "        return super().bind(rows, targets, weights * fits, run)",
            "        if not fits.all():\n"
            "            raise ValueError('a row does not fit')\n"
            "        return super().bind(rows, targets, weights * fits, run)",
        ),
        tests="embedded_rows",
        select="is_a_null_row or nothing_says",
    ),
    mutant(
        "entries of sparse rows that are not compared",
        (ONE_HOT_KERNEL, " & (data[start + b] == weights[b])", ""),
        tests="embedded_rows",
        select="is_a_null_row or for_itself",
    ),
    mutant(
        "rows with an entry too many",
        (ONE_HOT_KERNEL, "fit = indptr[i + 1] - start == n_blocks", "fit = indptr[i + 1] - start >= n_blocks"),
        tests="embedded_rows",
        select="for_itself",
    ),
    mutant(
        "rows with an entry in a block before",
        (ONE_HOT_KERNEL, "(level >= 0) & (level < width)", "(level < width)"),
        tests="embedded_rows",
        select="for_itself",
    ),
    mutant(
        "the last block that fits decides",
        (ONE_HOT_KERNEL, "fit &= (level", "fit = (level"),
        tests="embedded_rows",
        select="is_a_null_row or for_itself",
    ),
    mutant(
        "coefficients in units of levels where columns have weights",
        (
            ONE_HOT_RUNS,
            "return np.full(geometry.blocks.n_columns, geometry.unit)",
            "return geometry.entries_of_columns",
        ),
        tests="embedded_rows",
        select="of_random_trees or of_the_documentation",
    ),
    mutant(
        "a fit in a pipeline follows rows for which it was not planned",
        (
            PRIVATE_STEP,
            "            self.estimator._note_row_form(None)\n        elif",
            "            pass\n        elif",
        ),
        tests="embedded_rows",
        select="cannot_plan",
    ),
    mutant(
        "rows of another form than planned are met after the charge",
        (PRIVATE_STEP, "elif row_form_of(X) != self._row_form:", "elif False:"),
        tests="embedded_rows",
        select="than_planned",
    ),
    mutant(
        "an instalment on rows of another form",
        (LINEAR_RECIPE, "if model._fitted_form_of_coef not in (None, form):", "if False:"),
        tests="embedded_rows",
        select="an_instalment_on",
    ),
    mutant(
        "a form that forgets that weights are rounded",
        (EMBEDDING, "np.nextafter(rounded, np.float32(0.0)), rounded).tolist())", "exact, exact).tolist())"),
        tests="embedded_rows",
        select="of_random_trees or what_all_rows_are",
    ),
]
