"""Mistakes in the two parts of a data set."""

from mutant import mutant
from paths import ACCOUNTANT, INPUT, JOINT_FIT, LABELS, LEDGER, PARTS, RUNNING, SPLIT

MUTANTS = [
    mutant(
        "a split drawn twice",
        (ACCOUNTANT, "found = self.split or self._make_split(asked)", "found = asked.with_new_key()"),
        tests="parts",
        select="same_one_again",
    ),
    mutant(
        "a second key of two that are made at once",
        (
            LEDGER,
            '        if self.split is not None:\n            raise ValueError("this ledger keeps',
            '        if False:\n            raise ValueError("this ledger keeps',
        ),
        tests="parts",
        select="written_at_once",
    ),
    mutant(
        "parts cut by order",
        (PARTS, 'np.argsort(stream.words(n), kind="stable")[:count]', "np.arange(count)"),
        tests="parts",
        select="drawn_by_the_key",
    ),
    mutant(
        "a unit on both sides",
        (
            PARTS,
            "return np.array(tested, bool)[units.codes]",
            "return draw_by_number(SecretStream(key), n_rows, n_tested(share, n_rows))",
        ),
        tests="parts",
        select="one_side or by_name",
    ),
    mutant(
        "the coin of a unit by its number in a table",
        (PARTS, "for each in keys_of_units(groups, units)", "for each in map(str, range(units.n_units))"),
        tests="parts",
        select="one_side",
    ),
    mutant(
        "a moment in nanoseconds as another label than in days",
        (LABELS, 'list(found) if found.dtype.kind in "mM" else found.tolist()', "found.tolist()"),
        tests="parts",
        select="whatever_it_is_counted_in",
    ),
    mutant(
        "a table of another length accepted",
        (SPLIT, '            ("n_rows", "give the table', '            ("test_size", "give the table'),
        tests="parts",
        select="refused_in_one_line",
    ),
    mutant(
        "a split by number for rows that leave",
        (SPLIT, 'return "replace_one" if self.n_rows is None else "add_remove"', 'return "replace_one"'),
        tests="parts",
        select="which_neighbours",
    ),
    mutant(
        "a part by no name of the split",
        (LEDGER, "if charge.partition not in PARTS:", "if False:"),
        tests="parts",
        select="which_neighbours",
    ),
    mutant(
        "a part without rows is refused after the charge",
        (INPUT, 'if count == 0 and not (what == "sample" and may_be_empty):', "if count == 0:"),
        tests="parts_without_rows",
        select="takes_a_part",
    ),
    mutant(
        "a row of another part stays in one without rows",
        (
            JOINT_FIT,
            "self._rows = X if self._n_rows else take_rows(X, no_rows)",
            "self._rows, self._n_rows = X, len(X)",
        ),
        tests="parts_without_rows",
        select="takes_a_part",
    ),
    mutant(
        "a public step refuses a part without rows",
        (JOINT_FIT, "if self._n_rows == 0 and like is not None:", "if False:"),
        tests="parts_without_rows",
        select="takes_a_part",
    ),
    mutant(
        "a public step behind a private one refuses a part without rows",
        (RUNNING, "is_empty = table_shape(X)[0] == 0", "is_empty = False"),
        tests="parts_without_rows",
        select="takes_a_part",
    ),
    mutant(
        "a table without rows is taken where their number is public",
        (INPUT, 'getattr(reader, "adjacency", None) == "add_remove"', "reader is not None"),
        tests="parts_without_rows",
        select="number_of_rows_is_public",
    ),
]
