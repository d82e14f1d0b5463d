"""Mistakes in reading raw tables, in what a vectorizer buys, and in the norm that it hands on."""

from mutant import mutant
from paths import (
    BLOCKS,
    CANDIDATES,
    COLUMNS,
    JOINT_FIT,
    NORMS,
    PUBLIC,
    READINGS,
    RUNNING,
    SCHEMA_BUYER,
    SEARCH_PLAN,
    TABULAR,
    VECTORIZER,
)

MUTANTS = [
    mutant(
        "equal cells of several types share the key of the first",
        (COLUMNS, "    if types == {str}:\n", "    if types:\n"),
        tests="vectorizer_input",
        select="keep_their_keys",
    ),
    mutant(
        "categories taken from the type of a column",
        (
            COLUMNS,
            "used = np.bincount(codes[codes >= 0], minlength=len(listed)) > 0",
            "used = np.ones(len(listed), bool)",
        ),
        tests="vectorizer_input",
        select="keys_that_occur",
    ),
    mutant(
        "whole numbers keyed by the type that a gap gives them",
        (
            READINGS,
            "return str(int(value)) if value.is_integer() and abs(value) <= _LARGEST_EXACT else repr(value)",
            "return repr(value)",
        ),
        tests="vectorizer_input",
        select="one_key_whatever",
    ),
    mutant(
        "a list of rows typed by its cells",
        (COLUMNS, 'self.is_typed = hasattr(X, "dtype") or names is not None', "self.is_typed = True"),
        tests="vectorizer_input",
        select="list_of_rows",
    ),
    mutant(
        "what a library says of a cell is passed on",
        (
            COLUMNS,
            "        except Exception:  # its message may quote cells\n            pass\n",
            "        except ZeroDivisionError:\n            pass\n",
        ),
        tests="vectorizer_input",
        select="bad_table and raises",
    ),
    mutant(
        "a vectorizer that buys taken for a public step",
        (VECTORIZER, "            return self._given_schema().is_complete\n", "            return True\n"),
        tests="vectorizer",
        select="charged_once or pipeline_pays",
    ),
    mutant(
        "bins within public bounds that nobody is charged for",
        (VECTORIZER, "return PrivateStep(self) if has_bins else None", "return None"),
        tests="skewed_columns",
        select="estimated_bins or changes_bin_counts",
    ),
    mutant(
        "bins of several columns with the noise of one",
        (SCHEMA_BUYER, "        len(numbers), n_words, planned", "        1, n_words, planned"),
        tests="skewed_columns",
        select="changes_bin_counts",
    ),
    mutant(
        "a public step of this package passes whatever it buys",
        (
            PUBLIC,
            "return not (type(step) in RULES and not is_private(step)) and any(",
            "return type(step) not in RULES and any(",
        ),
        (VECTORIZER, "    if step.__private_step__() is not None:\n", "    if False:\n"),
        tests="vectorizer",
        select="is_not_inside_another",
    ),
    mutant(
        "less noise than was priced",
        (
            SCHEMA_BUYER,
            "list(words.values()), noise_multiplier, n_public",
            "list(words.values()), noise_multiplier / 2, n_public",
        ),
        tests="vectorizer",
        select="what_was_priced",
    ),
    mutant(
        "the threshold of categories lower than was priced",
        (SCHEMA_BUYER, "planned.threshold_delta if n_words", "10 * planned.threshold_delta if n_words"),
        tests="vectorizer",
        select="what_was_priced",
    ),
    mutant(
        "categories bought without their delta where types decide",
        (SCHEMA_BUYER, 'words = unknown or "category" in bought', 'words = "category" in bought'),
        (SCHEMA_BUYER, "planned.threshold_delta if n_words", "(planned.threshold_delta or 1e-6) if n_words"),
        tests="vectorizer",
        select="what_was_priced",
    ),
    mutant(
        "the norm of rows lost between private steps",
        (RUNNING, "return with_row_norm(_zero_wild(made), *traits)", "return _zero_wild(made)"),
        tests="vectorizer",
        select="keep_the_norm",
    ),
    mutant(
        "parts of dates left out of the norm",
        (
            BLOCKS,
            "math.sqrt(sum(block.n_entries for block in blocks))",
            "math.sqrt(sum(block.n_entries for block in blocks if not block.part))",
        ),
        tests="date_parts",
    ),
    mutant(
        "bin and scaled number of one column counted once in the norm",
        (BLOCKS, "math.sqrt(sum(block.n_entries for block in blocks))", "math.sqrt(len(blocks))"),
        tests="vectorizer",
        select="norm_of_a_row_is_at_most",
    ),
    mutant(
        "gaps of codes taken for rows to be zeroed",
        (JOINT_FIT, "return rows if private is not None and traits_of(private.estimator).takes_codes else", "return"),
        tests="codes",
        select="hands_codes_on",
    ),
    mutant(
        "a model without a schema found out after the charge",
        (JOINT_FIT, "        self._check_places()\n", ""),
        tests="codes",
        select="refused_before_the_charge",
    ),
    mutant(
        "candidates of other schemas found out after the charge",
        (SEARCH_PLAN, "each.has_public_steps or each.reading not in known", "each.has_public_steps"),
        tests="codes",
        select="each_candidate",
    ),
    mutant(
        "the schema lost with the rows of a try",
        (
            NORMS,
            "return taken if row_schema_of(X) is None else with_row_schema(taken, row_schema_of(X), row_names_of(X))",
            "return taken",
        ),
        tests="codes",
        select="tries_of_a_search",
    ),
    mutant(
        "the number of a gap taken for a level",
        (BLOCKS, "np.where(codes == len(self._level_names()) - 1, np.nan, codes)", "codes.astype(np.float64)"),
        tests="codes",
        select="one_number or trees_over_codes",
    ),
    mutant(
        "a schema kept by rows that are written into",
        (
            NORMS,
            "rows._row_norm, rows._row_indicators, rows._row_schema, rows._row_names = None, None, None, ()",
            "rows._row_norm, rows._row_names = None, ()",
        ),
        tests="codes",
        select="does_not_have_their_schema",
    ),
    mutant(
        "bins chosen by a private number of rows",
        (
            JOINT_FIT,
            "n_public = max(private.public_n_samples(self._n) for private in self._private.values())",
            "n_public = self._n",
        ),
        tests="tabular",
        select="private_number_of_rows",
    ),
    mutant(
        "bins chosen by the rows that a vectorizer sees alone",
        (
            VECTORIZER,
            'return "scale" if self._whole is None else numbers_by_rule(columns, int(self.n_bins), *self._whole)',
            "return numbers_by_rule(columns, int(self.n_bins), *(self._whole or (5000, 1.0)))",
        ),
        tests="tabular",
        select="alone",
    ),
    mutant(
        "regressor chosen by a private number of rows",
        (TABULAR, "n_public = public_rows_of(self, n_samples)", "n_public = n_samples"),
        tests="tabular",
        select="one_row_does_not_choose",
    ),
    mutant(
        "regressor chosen by cells",
        (
            TABULAR,
            "n_public = public_rows_of(self, n_samples)",
            "n_public = public_rows_of(self, len(Table(X).cells(0).values))",
        ),
        tests="tabular",
        select="numbers_alone",
    ),
    mutant(
        "search that plans the model of no table",
        (CANDIDATES, "    made._settle_steps(X, n_samples)\n", ""),
        tests="tabular",
        select="search_chooses",
    ),
]
