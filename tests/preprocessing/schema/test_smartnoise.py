"""Schemas from metadata of SmartNoise SQL, as its documentation describes the format."""

import re

import pytest

from skdp import TableSchema

pytest.importorskip("yaml")

METADATA = """
engine: postgres
"":
  MySchema:
    Visits:
      rows: 1000
      row_privacy: False
      max_ids: 5
      sample_max_ids: True
      censor_dims: False
      clamp_counts: True
      user_id: {type: int, private_id: True}
      age: {name: age, type: int, lower: 0, upper: 100, nullable: False}
      income: {type: float, lower: 0.5, upper: 500000, sensitivity: 500000, missing_value: 0}
      height: {type: float, lower: 0}
      job: {type: string, cardinality: 12}
      member: {type: boolean, nullable: false}
      since: {type: datetime, lower: 2000-01-01, upper: "2020-12-31"}
      until: {type: datetime}
      note: {type: unknown}
    Offices:
      place: {type: string}
"""


def test_smartnoise_metadata_gives_schema():
    schema = TableSchema.from_smartnoise_yaml(METADATA, "MySchema.Visits")
    empty = {"missing_values": [None]}
    assert schema == TableSchema({
        "user_id": "drop",
        "age": (0, 100),
        "income": {"bounds": (0.5, 500_000), **empty},
        "height": {"kind": "number", **empty},
        "job": {"kind": "category", **empty},
        "member": "flag",
        "since": {"bounds": ("2000-01-01", "2020-12-31"), **empty},
        "until": {"kind": "date", **empty},
        "note": "drop",
    })  # fmt: skip
    assert (schema.others, schema.is_complete) == ("error", False)


def test_smartnoise_metadata_is_read_from_file(tmp_path):
    path = tmp_path / "meta.yaml"
    path.write_text(
        "Database:\n  PUMS:\n    PUMS:\n      age:\n        type: int\n        lower: 0\n        upper: 9\n"
    )
    assert TableSchema.from_smartnoise_yaml(path)["age"].bounds == (0.0, 9.0)
    assert TableSchema.from_smartnoise_yaml(str(path), table="PUMS.PUMS")["age"].missing_values == ("",)


@pytest.mark.parametrize(
    ("text", "table", "message"),
    [
        (METADATA, None, "`table` must be one of the tables of the metadata, ['MySchema.Visits', 'MySchema.Offices']"),
        (METADATA, "Visits", "got 'Visits'"),
        ("a: 1", None, "`table` must be one of the tables of the metadata, [], got None"),
        ("- a\n- b", None, "`table` must be one of the tables"),
        (
            "a: {b: {c: {x: {type: text}}}}",
            None,
            "Invalid schema of column 'x': unknown type 'text'. Use one of ['int', 'float', 'string'",
        ),
        ("a: {b: {c: {x: {lower: 1}}}}", None, "Invalid schema of column 'x': unknown type"),
        ("a: {b: {c: {x: {type: [int]}}}}", None, "Invalid schema of column 'x': unknown type"),
        ("a: {b: {c: {x: {type: int, lower: 2, upper: 1}}}}", None, "bounds=(2, 1) must be ascending"),
        ("a: {b: {c: {x: {type: string, lower: 1, upper: 2}}}}", None, "column 'x': 'bounds' is not a valid key"),
        ("a: {b: {c: {1: {type: int}}}}", None, "Column names in a schema must be strings, got 1"),
        ("a: {b: {c: {x: {type: int}, x: {type: float}}}}", None, "duplicate key 'x'"),
        ("a: [1\nb: 2", None, "The schema is not valid YAML"),
        ("a: !!python/object/apply:os.system ['true']\n", None, "The schema is not valid YAML"),
    ],
)
def test_smartnoise_metadata_is_rejected_in_one_line(text, table, message):
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        TableSchema.from_smartnoise_yaml(text, table)
    assert "\n" not in str(caught.value)
