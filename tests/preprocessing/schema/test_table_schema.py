"""What a user may write down of a table, what is rejected, and the files it comes from."""

import copy
import datetime
import pickle

import numpy as np
import pandas as pd
import pytest
from combinations import over_rows
from tables import SCHEMA, customers

from skdp.preprocessing import DPTableVectorizer, TableSchema
from skdp.preprocessing.schema import column as kinds
from skdp.preprocessing.schema.column import Column


class Compared(str):
    """Text that counts how often it is compared with another one."""

    times = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Compared.times += 1
        return str.__eq__(self, other)


# --- what may be written ---


@over_rows(
    "given, kind, bounds, categories",
    [
        ((18, 90), "number", (18.0, 90.0), None),
        ((datetime.date(1970, 1, 2), np.datetime64("1970-01-03")), "date", (1.0, 2.0), None),
        ((pd.Timestamp("1970-01-02"), pd.Timestamp("1970-01-03T02:00+02:00")), "date", (1.0, 2.0), None),
        ([1, 2.0, True, b"x"], "category", None, ("1", "2", "True", "x")),
        (pd.Index([3, 1]), "category", None, ("3", "1")),
        ("number", "number", None, None),
        ("flag", "flag", None, None),
        ({"edges": [0, 1, 5]}, "number", (0.0, 5.0), None),
        ({"kind": "ordinal", "categories": ["b", "a"]}, "ordinal", None, ("b", "a")),
    ],
)
def test_shorthands_say_what_they_say(given, kind, bounds, categories):
    column = TableSchema({"x": given})["x"]
    assert (column.kind, column.bounds, column.categories) == (kind, bounds, categories)


def test_only_missing_facts_are_estimated():
    estimated = TableSchema({"a": "number", "b": "date", "c": "category", "d": "flag", "e": "drop", "f": (0, 1)})
    assert [name for name, column in estimated.items() if column.is_estimated] == ["a", "b", "c"]
    assert SCHEMA.is_complete
    assert not estimated.is_complete
    assert not TableSchema({}, others="estimate").is_complete


@over_rows(
    "given, message",
    [
        ((90, 18), "bounds=(90, 18)"),
        ((0, float("inf")), "inf in bounds"),
        ((0, "1"), "'1' in bounds"),
        ((False, True), "False in bounds"),
        (("a", "b"), "'a' in bounds"),
        ({"bounds": [1, 2, 3]}, "bounds=(1, 2, 3)"),
        ({"kind": "number", "bounds": 5}, "bounds=5"),
        ({"edges": [2, 1]}, "edges=(2, 1)"),
        ({"edges": [0, 1], "bounds": [0, 1]}, "bounds and edges are both set"),
        ([], "the list of categories"),
        ([1, "1"], "duplicate category '1'"),
        (["a", None], "the category None"),
        ([["a"]], "the category <list>"),
        ({"kind": "category", "categories": "ab"}, "categories='ab'"),
        ({"kind": "category", "categories": ["a"], "missing_values": ["a"]}, "the category 'a'"),
        ("ordinal", "ordinal columns"),
        ("nombre", "unknown type 'nombre'"),
        ({"kind": "flag", "bounds": (0, 1)}, "'bounds'"),
        ({"bounds": (0, 1), "scale": "cubic"}, "unknown scale 'cubic'"),
        ({}, "the type is missing"),
        (5, "5"),
        (pd.Series([1]), "<Series>"),
    ],
)
def test_a_wrong_column_is_rejected_by_one_line_that_names_it(given, message):
    with pytest.raises(ValueError) as rejection:
        TableSchema({"first": (0, 1), "my column": given})
    assert str(rejection.value).startswith(f"Invalid schema of column 'my column': {message}")
    assert "\n" not in str(rejection.value)


class Watcher(float):
    """A number that NumPy hands whatever it is computed with."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        raise AssertionError("it was handed the rows")


def test_a_column_made_by_hand_is_read_like_any_other():
    column = Column("number", bounds=(Watcher(0), Watcher(1)))
    DPTableVectorizer({"x0": column}, numbers="both").fit_transform(np.ones((3, 1)))
    with pytest.raises(ValueError, match="Invalid schema of column 'x0'"):
        TableSchema({"x0": Column("number", bounds=(1.0, 0.0))})
    day = Column("date", bounds=(0.1, 1000.3), missing_values=("none",))
    assert TableSchema({"x0": day})["x0"] == day


def test_a_wrong_schema_is_rejected():
    with pytest.raises(TypeError, match=r"^`columns` must be a dict .* got <DataFrame>\. TableSchema\.draft"):
        TableSchema(customers(10))
    with pytest.raises(TypeError, match=r"^Column names in a schema must be strings, got 1"):
        TableSchema({1: (0, 1)})
    with pytest.raises(ValueError, match=r"^`others` must be one of 'error', 'drop', 'estimate', got 'keep'\.$"):
        TableSchema({}, others="keep")


# --- what it is ---


def test_a_schema_is_a_value():
    again = TableSchema(dict(SCHEMA.items()))
    assert again == SCHEMA
    assert hash(again) == hash(SCHEMA)
    assert TableSchema(dict(SCHEMA.items()), others="drop") != SCHEMA
    assert TableSchema({**SCHEMA.to_dict(), "age": (18, 91)}) != SCHEMA
    for copied in (pickle.loads(pickle.dumps(SCHEMA)), copy.deepcopy(SCHEMA), TableSchema(SCHEMA)):
        assert copied == SCHEMA
    with pytest.raises(AttributeError, match="is immutable"):
        SCHEMA.others = "drop"
    assert list(SCHEMA) == ["age", "income", "job", "grade", "member", "since", "id"]
    assert "name" not in SCHEMA


def test_it_prints_as_a_table():
    lines = str(TableSchema({"age": (18, 90), "job": list("abcdefgh"), "x": "number"}, others="drop")).splitlines()
    assert lines == [
        "column    type      public values",
        "age       number    18 to 90",
        "job       category  a, b, c, d, e, f, ... (8)",
        "x         number    estimated privately",
        "(others)  drop",
    ]
    assert repr(SCHEMA) == "TableSchema(<7 columns: 'age', 'income', 'job', ...>, others='error')"


# --- files ---


@over_rows("schema", [SCHEMA, TableSchema({"a": "number", "b": {"edges": [0.1, 2.5]}}, others="estimate")])
def test_json_and_yaml_give_the_schema_back(schema, tmp_path):
    schema.to_json(tmp_path / "s.json")
    schema.to_yaml(tmp_path / "s.yaml")
    assert TableSchema.from_json(tmp_path / "s.json") == schema
    assert TableSchema.from_yaml(str(tmp_path / "s.yaml")) == schema
    assert TableSchema(schema.to_dict(), schema.others) == schema


def test_yaml_is_that_of_version_1_2():
    schema = TableSchema.from_yaml(
        "reply: [yes, no]\nside: [on, off]\ntruth: [true, x]\nday: {bounds: [2000-01-01, 2001-01-01]}"
    )
    assert schema["reply"].categories == ("yes", "no")
    assert schema["side"].categories == ("on", "off")
    assert schema["truth"].categories == ("True", "x")
    assert schema["day"].kind == "date"


@over_rows(
    "read, text, message",
    [
        (TableSchema.from_json, '{"a": [18, 90]}', r"Column 'a' is ambiguous: \[18, 90\] can be bounds or categories"),
        (TableSchema.from_json, '{"a": ["2000-01-01", "2001-01-01"]}', "can be bounds or categories"),
        (TableSchema.from_json, '{"a": "flag", "a": "drop"}', "duplicate key 'a'"),
        (TableSchema.from_json, '{"a": }', "not valid JSON .line 1"),
        (
            TableSchema.from_json,
            '{"columns": {"a": "flag"}, "others": "keep"}',
            "`others` must be one of 'error', 'drop', 'estimate'",
        ),
        (TableSchema.from_json, '{"a": ' + 200_000 * "[" + 200_000 * "]" + "}", "not valid JSON .lists in lists"),
        (TableSchema.from_yaml, "a: flag\na: drop\n", "duplicate key 'a'"),
        (TableSchema.from_yaml, "a: [1\nb: 2", "not valid YAML"),
        (TableSchema.from_yaml, "- 1\n- 2", "must be a mapping of columns"),
        (TableSchema.from_yaml, "? [a]\n: flag\n? [a]\n: flag\n", "not valid YAML"),
        (TableSchema.from_yaml, "a: " + 2000 * "[" + 2000 * "]", "not valid YAML .lists in lists"),
    ],
)
def test_schema_from_wrong_file_is_rejected(read, text, message):
    with pytest.raises(ValueError, match=message) as rejection:
        read(text)
    assert "\n" not in str(rejection.value)


# --- drafts and code books ---


def test_a_draft_of_public_rows():
    frame = pd.DataFrame({
        "n": [1.0, 87.0, np.nan], "text": ["3", "41", ""], "day": ["2001-02-03", None, "2001-02-05"],
        "flag": ["yes", "no", None], "word": ["b", "a", "b"], "bit": [0, 1, 1], "empty": [None, None, None],
    })  # fmt: skip
    drafted = TableSchema.draft(frame).to_dict()
    assert drafted == {
        "n": {"kind": "number", "bounds": [1, 87]},
        "text": {"kind": "number", "bounds": [3, 41]},
        "day": {"kind": "date", "bounds": ["2001-02-03", "2001-02-05"]},
        "flag": {"kind": "flag"},
        "word": {"kind": "category", "categories": ["a", "b"]},
        "bit": {"kind": "flag"},
        "empty": {"kind": "drop"},
    }


@over_rows(
    "low, high, bounds",
    [(3, 87.2, (3, 88)), (-0.123, 0.5, (-0.13, 0.5)), (0, 0, (0, 1)), (7, 7, (7, 7.1)), (0, 99999, (0, 1e5))],
)
def test_bounds_of_a_draft_are_rounded_outward(low, high, bounds):
    assert TableSchema.draft(pd.DataFrame({"x": [float(low), float(high)]}))["x"].bounds == pytest.approx(bounds)


# --- gaps that are empty cells, and combinations that cannot occur ---


def test_empty_cells_are_said_to_be_gaps():
    for empty in (None, float("nan"), ""):
        column = TableSchema({"x": {"bounds": (0, 1), "missing_values": [-9, empty]}})["x"]
        assert column.missing_values == ("", "-9")
        assert TableSchema({"x": column})["x"] == column
        assert "missing: empty cells, -9" in str(TableSchema({"x": column}))
    rows = pd.DataFrame({"x": [0.5, None]})
    plain, said = (
        DPTableVectorizer({"x": {"bounds": (0, 1), "missing_values": gaps}}, sparse_output=False)
        for gaps in ([], [None])
    )
    np.testing.assert_array_equal(plain.fit_transform(rows), said.fit_transform(rows))


COMBINED = {"age": (0, 90), "job": ["a", "b"], "member": "flag", "since": ("2000-01-01", "2001-01-01"), "id": "drop"}
IMPOSSIBLE = [
    {"age": (0, 14), "job": ["a"]},
    {"since": ("2000-01-01", "2000-02-01"), "member": [True], "job": ["a", "b"]},
]


def test_impossible_combinations_belong_to_the_schema():
    schema = TableSchema(COMBINED, impossible=IMPOSSIBLE)
    assert [[name for name, _ in each.conditions] for each in schema.impossible] == [
        ["age", "job"],
        ["since", "member", "job"],
    ]
    assert schema.impossible[0].conditions[0][1] == (0.0, 14.0)
    assert schema != TableSchema(COMBINED)
    assert "2 combinations of cells" in str(schema)
    for again in (
        pickle.loads(pickle.dumps(schema)),
        TableSchema.from_json(schema.to_json()),
        TableSchema.from_yaml(schema.to_yaml()),
    ):
        assert again == schema


@over_rows(
    "given, message",
    [
        ({"age": (0, 1), "job": ["a"]}, "`impossible` must be a list of dicts"),
        ([{"age": (0, 1)}], "Each entry of `impossible`"),
        ([["age", "job"]], "Each entry of `impossible`"),
        ([{"age": (0, 1), "pay": (0, 1)}], "`impossible` has 'pay'"),
        ([{"age": (0, 1), "id": ["x"]}], "`impossible` has 'id'"),
        ([{"age": 3, "job": ["a"]}], "`impossible` must have a pair (low, high) for the number column 'age'"),
        ([{"age": (2, 1), "job": ["a"]}], "Invalid schema of column 'age': bounds=(2, 1)"),
        ([{"age": (0, 1), "job": ["z"]}], "`impossible` has unknown categories of column 'job'"),
        ([{"age": (0, 1), "member": ["z"]}], "`impossible` has unknown categories of column 'member'"),
        ([{"age": (0, 1), "job": "a"}], "Invalid schema of column 'job': categories='a'"),
    ],
)
def test_a_wrong_combination_is_rejected_by_one_line(given, message):
    with pytest.raises(ValueError, match=r"`impossible`|^Invalid schema") as rejection:
        TableSchema(COMBINED, impossible=given)
    assert str(rejection.value).startswith(message)
    assert "\n" not in str(rejection.value)


@pytest.mark.parametrize("n_gaps", [0, 3000])
def test_thousands_of_words_are_not_compared_with_one_another(n_gaps, monkeypatch):
    """Five thousand took ten seconds, once for the schema and once for each fit."""
    words = [f"a word of some length {number:04d}" for number in range(3000)]
    monkeypatch.setattr(kinds, "_key", Compared)
    Compared.times = 0
    found = TableSchema(
        {"a": {"kind": "category", "categories": words, "missing_values": [f"-{n}" for n in range(n_gaps)]}}
    )
    assert found["a"].categories == tuple(words)
    assert Compared.times < 100_000  # to sort gaps, and where hashes meet
