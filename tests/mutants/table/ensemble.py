"""Mistakes in trees that should read no row, and in the rows that come of them."""

from mutant import mutant
from paths import (
    CHECKPOINT,
    EMBEDDING,
    GRADIENT,
    GROWTH,
    LEAF_TABLES,
    OFFSET,
    ONE_HOT_RUNS,
    PEOPLE,
    PLAN_OF_RUNS,
    RANDOM_TREES,
    RECIPE,
    TREES_KERNEL,
    UNITS,
)

MUTANTS = [
    mutant(
        "a tree that looks at the rows",
        (
            EMBEDDING,
            "self.seed_ = _public_seed(self.random_state)\n",
            "self.seed_ = _public_seed(self.random_state) + int(np.nan_to_num(np.max(table.cells(0).values)))\n",
        ),
        tests="embedding",
        select="reads_no_cell or do_not_follow or one_row_changes",
    ),
    mutant(
        "trees that follow the number of rows",
        (
            EMBEDDING,
            "self.seed_ = _public_seed(self.random_state)\n",
            "self.seed_ = _public_seed(self.random_state) + len(table.cells(0).values)\n",
        ),
        tests="embedding",
        select="do_not_follow or gives_the_same",
    ),
    mutant(
        "a norm that forgets that a gap is an entry too",
        (
            EMBEDDING,
            "            values[part] = weights\n",
            "            values[part] = weights\n"
            "            for k in range(n_plain):\n"
            "                values[part, k] *= columns[part, k] != starts[k + 1] - 1\n",
        ),
        tests="embedding",
        select="norm_1 or pattern_of_a_row",
    ),
    mutant(
        "weights rounded to nearest",
        (EMBEDDING, "np.where(rounded > exact,", "np.where(rounded < 0,"),
        tests="embedding",
        select="norm_1",
    ),
    mutant(
        "weights of plain columns and trees that add up to more than 1",
        (EMBEDDING, "shared_weights(share, 1.0 - share,", "shared_weights(share, 1.0,"),
        tests="embedding",
        select="norm_1",
    ),
    mutant(
        "a node whose subset is empty",
        (GROWTH, "while len(set(goes)) < 2:", "while not any(goes):"),
        tests="embedding",
        select="no_side or uniformly",
    ),
    mutant(
        "a level that an ancestor has cut off is split again",
        (GROWTH, "views = (*node.views[:j], child, *node.views[j + 1 :])", "views = node.views"),
        tests="embedding",
        select="no_side or inside_what",
    ),
    mutant(
        "the node of the fewest people is split next",
        (GROWTH, "(-mass, 2 * len(splits)", "(mass, 2 * len(splits)"),
        tests="embedding",
        select="most_people",
    ),
    mutant(
        "counts of cells with the noise of one column",
        (
            RANDOM_TREES,
            "column_sensitivity(len(blocks), self.model.adjacency)",
            "column_sensitivity(1, self.model.adjacency)",
        ),
        tests="guarantees_neighbours",
        select="trees and muting",
    ),
    mutant(
        "counts of cells in which null records are",
        (PEOPLE, "np.bincount(each, weights, minlength=", "np.bincount(each, minlength="),
        tests="random_trees",
        select="counts_by_their_sensitivity or muted_row",
    ),
    mutant(
        "counts of cells that nobody pays for",
        (
            RANDOM_TREES,
            "bought[_PEOPLE] = SideRelease.beside_steps(PEOPLE_SHARE, sampling.rate, n_steps)",
            "bought[_PEOPLE] = _Unpaid.beside_steps(PEOPLE_SHARE, sampling.rate, n_steps)",
        ),
        (
            RANDOM_TREES,
            "class TreesRecipe(LookupRecipe):",
            "class _Unpaid(SideRelease):\n"
            "    def event_at(self, noise_multiplier):\n"
            "        from skdp.accounting import NoOpDpEvent\n\n"
            "        return NoOpDpEvent()\n\n\n"
            "class TreesRecipe(LookupRecipe):",
        ),
        tests="random_trees",
        select="share_of_the_budget or shares or even_where",
    ),
    mutant(
        "trees that are grown by exact counts",
        (
            PEOPLE,
            "return [each for column in released(mechanism, counts, stream) for each in column.tolist()]",
            "return [each for column in counts for each in column.tolist()]",
        ),
        tests="random_trees",
        select="muted_row or counts_by",
    ),
    mutant(
        "sums of targets with the noise of one of them",
        (UNITS, "SUMS_SENSITIVITY = math.sqrt(3.0)", "SUMS_SENSITIVITY = 1.0"),
        tests="random_trees",
        select="sums_of_targets",
    ),
    mutant(
        "sums of targets in which null records are",
        (UNITS, "weights @ values,", "values.sum(),"),
        tests="random_trees",
        select="sums_of_targets",
    ),
    mutant(
        "units of targets that are read from them",
        (UNITS, "return mechanism.release(sums, stream).tolist()", "return sums.tolist()"),
        tests="guarantees_neighbours",
        select="trees and muting",
    ),
    mutant(
        "means of several labels with the noise of one of them",
        (OFFSET, "math.sqrt(self.shape[0] * (2.0 + _PART**2))", "math.sqrt(2.0 + _PART**2)"),
        tests="offset",
        select="sensitivity",
    ),
    mutant(
        "a row of means whose later parts are free",
        (OFFSET, "math.sqrt(self.shape[0] * (2.0 + _PART**2))", "math.sqrt(self.shape[0] * 2.0)"),
        tests="offset",
        select="sensitivity",
    ),
    mutant(
        "errors that are not cut",
        (
            OFFSET,
            "np.clip(np.where(np.isnan(errors), 0.0, errors) / self.largest, -1.0, 1.0)",
            "np.where(np.isnan(errors), 0.0, errors) / self.largest",
        ),
        tests="offset random_trees",
        select="sensitivity or errors_are",
    ),
    mutant(
        "sums of errors that one row makes NaN",
        (OFFSET, "np.where(np.isnan(errors), 0.0, errors)", "errors"),
        tests="offset random_trees",
        select="diverged",
    ),
    mutant(
        "sums of probabilities that one row makes NaN",
        (OFFSET, "terms[~np.isfinite(found).all(axis=(1, 2))] = 0.0", "del n"),
        tests="offset",
        select="diverged or sensitivity",
    ),
    mutant(
        "counts beyond all bounds",
        (OFFSET, "np.clip(np.where(np.isnan(predicted), 0.0, predicted) / self.largest, 0.0, 1.0)", "predicted"),
        tests="offset",
        select="sensitivity",
    ),
    mutant(
        "means in which null records are",
        (
            OFFSET,
            "weights[block] @ terms",
            "terms.sum(axis=0)",
        ),
        tests="offset",
        select="sensitivity or weighted_rows",
    ),
    mutant(
        "means in which rows of another form are",
        (ONE_HOT_RUNS, "weight_of_each(targets.weights, rows.shape[0]) * fits", "targets.weights"),
        tests="embedded_rows",
        select="is_a_null_row",
    ),
    mutant(
        "means that are read from the rows",
        (
            RECIPE,
            "return mechanism.release(self.sum_terms(means, plan, rows, targets), stream).tolist()",
            "return self.sum_terms(means, plan, rows, targets).tolist()",
        ),
        tests="guarantees_neighbours",
        select="trees and muting",
    ),
    mutant(
        "means that the price leaves out",
        (
            RECIPE,
            "purchases = tuple(self.purchases(sampling, n_steps).values())",
            "purchases = tuple(each for name, each in self.purchases(sampling, n_steps).items() if name != OFFSET)",
        ),
        tests="guarantees_charges",
        select="price_of_the_published_event",
    ),
    mutant(
        "means that are bought again",
        (RECIPE, "plan.bought(OFFSET, buy)", "buy(plan.stream.spawn('again'))"),
        tests="random_trees",
        select="ends_beside",
    ),
    mutant(
        "class counts of several labels with the noise of one of them",
        (RECIPE, "column_sensitivity(counts.shape[0], self.model.adjacency)", "column_sensitivity(1, 'zero_out')"),
        tests="offset",
        select="counts_of_labels",
    ),
    mutant(
        "class counts of half the sensitivity where rows are zeroed out",
        (RECIPE, "column_sensitivity(counts.shape[0], self.model.adjacency)", "math.sqrt(counts.shape[0] / 2.0)"),
        tests="guarantees_neighbours",
        select="muting_a_row_moves and linear and max_iter",
    ),
    mutant(
        "class counts of a unit that are not clipped to those of a row",
        (OFFSET, "return math.sqrt(self.shape[0])", "return 9.0 * math.sqrt(self.shape[0])"),
        tests="offset",
        select="starts_at_released",
    ),
    mutant(
        "class counts without noise",
        (
            RECIPE,
            "return mechanism.release(self.sum_terms(counts, plan, rows, targets), stream).tolist()",
            "return self.sum_terms(counts, plan, rows, targets).tolist()",
        ),
        tests="guarantees_charges",
        select="price_of_the_published_event",
    ),
    mutant(
        "class counts that are not charged",
        (
            RECIPE,
            "purchases = tuple(self.purchases(sampling, n_steps).values())",
            "purchases = tuple(each for name, each in self.purchases(sampling, n_steps).items() if name != START)",
        ),
        tests="offset",
        select="published_model",
    ),
    mutant(
        "class counts outside of the published event",
        (PLAN_OF_RUNS, "if not self.purchases:", "if list(self.purchases) == [START, OFFSET]:"),
        tests="guarantees_charges",
        select="price_of_the_published_event",
    ),
    mutant(
        "class counts that a run that resumes releases again",
        (RECIPE, "plan.bought(START, count)", "count(plan.stream.spawn('again'))"),
        tests="offset",
        select="stopped_at_start",
    ),
    mutant(
        "class counts that a run that resumes loses",
        (CHECKPOINT, 'if not self._header["n_done"]:', "if False:"),
        tests="offset",
        select="stopped_at_start",
    ),
    mutant(
        "a start that a run that resumes adds again",
        (RECIPE, "if START in plan.purchases and not plan.warm:", "if START in plan.purchases:"),
        tests="offset",
        select="stopped_at_start",
    ),
    mutant(
        "an interrupted run that is corrected",
        (
            GRADIENT,
            "if n_done == run.plan.n_steps:\n            recipe.correct",
            "if n_done:\n            recipe.correct",
        ),
        tests="offset",
        select="interrupted",
    ),
    mutant(
        "a move of means by unweighted slopes",
        (OFFSET, "/ np.clip(slopes, least, 1.0)", "/ np.clip(slopes, 1.0, 1.0)"),
        tests="offset",
        select="second_order or log_odds",
    ),
    mutant(
        "a run that resumes buys again",
        (CHECKPOINT, 'dict(self._header["bought"]) if self.begun else {}', "{}"),
        tests="random_trees",
        select="resumes_has_what",
    ),
    mutant(
        "what is bought is kept by the steps alone",
        (
            PLAN_OF_RUNS,
            "self.checkpoint.keep_bought(name, buy(self.stream.spawn(name)))",
            "self.checkpoint.bought[name] = buy(self.stream.spawn(name))",
        ),
        tests="random_trees",
        select="between_a_purchase",
    ),
    mutant(
        "the file of a run on other trees is resumed",
        (RANDOM_TREES, "return described if self.anew else", "return described if True else"),
        tests="random_trees",
        select="other_trees",
    ),
    mutant(
        "targets that are not cut before they are summed",
        (UNITS, "values = np.clip(values, -1.0, 1.0)", "values = values * 1.0"),
        tests="random_trees",
        select="neighbouring_doubles",
    ),
    mutant(
        "a later run buys trees that it does not grow",
        (GRADIENT, "anew=not warm or self._continues_the_first_run()", "anew=True"),
        tests="random_trees",
        select="later_runs",
    ),
    mutant(
        "gaps that always go to the left",
        (TREES_KERNEL, "| ((number != number) & gaps[node])", ""),
        tests="embedding",
        select="plain_reading or gaps_have",
    ),
    mutant(
        "tables in which a number on a threshold goes to the left",
        (LEAF_TABLES, 'codes, side="right")', 'codes, side="left")'),
        tests="embedding",
        select="by_tables_are_those",
    ),
    mutant(
        "tables in which gaps go where large numbers go",
        (LEAF_TABLES, "        right[-1] = trees.gaps_right[tree, node]\n", "        right[-1] = True\n"),
        tests="embedding",
        select="by_tables_are_those",
    ),
    mutant(
        "levels beyond 64 that share the bits of the first",
        (TREES_KERNEL, "words[places[node] + (level >> 6)]", "words[places[node]]"),
        tests="embedding",
        select="plain_reading",
    ),
    mutant(
        "a seed that is not kept",
        (
            EMBEDDING,
            "draw_trees(blocks, *size, self.seed_,",
            "draw_trees(blocks, *size, _public_seed(self.random_state),",
        ),
        tests="embedding",
        select="same_trees_again",
    ),
    mutant(
        "an incomplete schema passes",
        (EMBEDDING, "if not schema.is_complete:", "if False:"),
        tests="embedding",
        select="bad_parameter",
    ),
    mutant(
        "a schema of any class passes in a private pipeline",
        (EMBEDDING, "    if step.schema is not None and type(step.schema)", "    if False and type(step.schema)"),
        tests="embedding",
        select="not_on_the_list",
    ),
]
