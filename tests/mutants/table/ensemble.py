"""Mistakes in trees that should read no row, and in the rows that come of them."""

from mutant import mutant
from paths import EMBEDDING, TREES, TREES_KERNEL

MUTANTS = [
    mutant(
        "a tree that looks at the rows",
        (
            EMBEDDING,
            "work.seed_ = _public_seed(self.random_state)\n",
            "work.seed_ = _public_seed(self.random_state) + int(np.nan_to_num(np.max(table.cells(0).values)))\n",
        ),
        tests="ensemble",
        select="reads_no_cell or do_not_follow or one_row_changes",
    ),
    mutant(
        "trees that follow the number of rows",
        (
            EMBEDDING,
            "work.seed_ = _public_seed(self.random_state)\n",
            "work.seed_ = _public_seed(self.random_state) + len(table.cells(0).values)\n",
        ),
        tests="ensemble",
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
        tests="ensemble",
        select="norm_1 or pattern_of_a_row",
    ),
    mutant(
        "weights rounded to nearest",
        (EMBEDDING, "np.where(rounded > exact,", "np.where(rounded < 0,"),
        tests="ensemble",
        select="norm_1",
    ),
    mutant(
        "weights of plain columns and trees that add up to more than 1",
        (EMBEDDING, "shared_weights(share, 1.0 - share,", "shared_weights(share, 1.0,"),
        tests="ensemble",
        select="norm_1",
    ),
    mutant(
        "a node whose subset is empty",
        (TREES, "while len(set(goes)) < 2:", "while not any(goes):"),
        tests="ensemble",
        select="no_side or uniformly",
    ),
    mutant(
        "a level that an ancestor has cut off is split again",
        (TREES, "views += [[*seen[:j], side, *seen[j + 1 :]] for side in (left, right)]", "views += [seen, seen]"),
        tests="ensemble",
        select="no_side or inside_what",
    ),
    mutant(
        "gaps that always go to the left",
        (TREES_KERNEL, "| ((number != number) & gaps[node])", ""),
        tests="ensemble",
        select="plain_reading or gaps_have",
    ),
    mutant(
        "levels beyond 64 that share the bits of the first",
        (TREES_KERNEL, "words[places[node] + (level >> 6)]", "words[places[node]]"),
        tests="ensemble",
        select="plain_reading",
    ),
    mutant(
        "a seed that is not kept",
        (EMBEDDING, "int(self.max_depth), work.seed_)", "int(self.max_depth), _public_seed(self.random_state))"),
        tests="ensemble",
        select="same_trees_again",
    ),
    mutant(
        "an incomplete schema passes",
        (EMBEDDING, "if not schema.is_complete:", "if False:"),
        tests="ensemble",
        select="bad_parameter",
    ),
    mutant(
        "a schema of any class passes in a private pipeline",
        (EMBEDDING, "    if step.schema is not None and type(step.schema)", "    if False and type(step.schema)"),
        tests="ensemble",
        select="not_on_the_list",
    ),
]
