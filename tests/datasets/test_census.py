"""Loaders of census files: those the tests make, and the real ones where they are."""

import gzip
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from census_files import PREDICTORS, ROOT, acs, census_2000, one_line, write, zip_bytes

from skdp.datasets import _tables, load_pums

# --- Census 2000 extracts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_census_2000_extract(tmp_path, suffix):
    frame = census_2000()
    bunch = load_pums(write(frame, tmp_path / f"people{suffix}"))
    assert bunch.feature_names == PREDICTORS
    assert bunch.data.shape == (60, 11)
    assert bunch.data.dtype == np.float32
    assert bunch.data.flags.c_contiguous
    assert bunch.target.dtype == np.int8
    expected = frame.assign(collegedegree=frame.educ >= 13, blackfemale=(frame.black == 1) & (frame.sex == 1))
    np.testing.assert_array_equal(bunch.data, expected[PREDICTORS].to_numpy(np.float32))
    np.testing.assert_array_equal(bunch.target, frame["employed"])
    assert bunch.sample_weight is None
    assert bunch.sample_weight_bounds is None
    assert bunch.groups is None  # there is no household number
    assert bunch.classes == (0, 1)
    assert bunch.target_names == ("not employed", "employed")
    for said in ("not a household", "outside the labor force", "No weights"):
        assert said in bunch.DESCR


def test_bounds_and_categories_come_from_the_code_book(tmp_path):
    path = write(census_2000().assign(age=30, educ=9, sex=1), tmp_path / "people.csv")
    bunch = load_pums(path, features=["age", "educ", "sex"])
    assert bunch.bounds == {"age": (18, 93), "educ": (1, 16), "sex": (0, 1)}
    assert bunch.categories == {"educ": tuple(range(1, 17)), "sex": (0, 1)}
    assert list(bunch.bounds) == bunch.feature_names


def test_all_features_leave_out_ids_geography_and_the_target(tmp_path):
    path = write(census_2000().assign(X=range(60), pid=range(60)), tmp_path / "people.csv")
    bunch = load_pums(path, features="all")
    assert set(bunch.feature_names) == {*PREDICTORS, "latino", "divorced", "children", "educ"}
    assert "divorced" not in load_pums(path, features="all", target="married").feature_names
    assert "educ" not in load_pums(path, features="all", target="collegedegree").feature_names
    assert not {"black", "blackfemale"} & {*load_pums(path, target="black").feature_names}


def test_a_row_number_as_unnamed_first_column_does_no_harm(tmp_path):
    frame = census_2000()
    frame.to_csv(tmp_path / "people.csv")
    np.testing.assert_array_equal(
        load_pums(tmp_path / "people.csv").data, load_pums(write(frame, tmp_path / "b.csv")).data
    )


@pytest.mark.parametrize(
    ("kwargs", "said"),
    [
        ({"features": ["age", "shoe_size"]}, "shoe_size"),
        ({"features": ["age", "employed"]}, "must not contain the target employed"),
        ({"features": []}, "at least one"),
        ({"target": "age"}, "0/1 column"),
        ({"labor_force_only": True}, "does not record"),
    ],
)
def test_wrong_arguments_say_so_in_one_line(tmp_path, kwargs, said):
    path = write(census_2000(), tmp_path / "people.csv")
    with pytest.raises(ValueError, match=said) as error:
        load_pums(path, **kwargs)
    one_line(error)


def test_missing_columns_are_named(tmp_path):
    path = write(census_2000()[["age", "sex", "educ", "married"]], tmp_path / "small.csv")
    with pytest.raises(ValueError, match=r"got 'employed'; available columns: sex, married, collegedegree, educ, age"):
        load_pums(path)
    with pytest.raises(ValueError, match="got black, asian, militaryservice, uscitizen") as error:
        load_pums(path, target="married")
    one_line(error)
    assert load_pums(path, target="married", features=["age", "collegedegree"]).data.shape == (60, 2)


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [("age", 12, "age: .* got 12"), ("educ", 0, "educ: .* got 0"), ("black", np.nan, "a blank")],
)
def test_values_outside_of_the_code_book_are_rejected(tmp_path, column, value, said):
    frame = census_2000().astype(float)
    frame.loc[3, column] = value
    with pytest.raises(ValueError, match=said) as error:
        load_pums(write(frame, tmp_path / "people.csv"), features=["age", "sex", "educ", "black"])
    one_line(error)


def test_other_files_are_rejected_in_one_line(tmp_path):
    with pytest.raises(FileNotFoundError, match="must be an existing file"):
        load_pums(tmp_path / "none.csv")
    (tmp_path / "a.csv").write_text("shoe,hat\n1,2\n")
    (tmp_path / "a.zip").write_bytes(b"no zip")
    (tmp_path / "a.csv.gz").write_bytes(b"no gzip")
    (tmp_path / "a.parquet").write_bytes(b"no parquet")
    (tmp_path / "a.xlsx").write_bytes(b"")
    for name in ("a.csv", "a.zip", "a.csv.gz", "a.parquet", "a.xlsx"):
        with pytest.raises(ValueError, match=name) as error:
            load_pums(tmp_path / name)
        one_line(error)


def test_as_frame(tmp_path):
    frame = census_2000()
    bunch = load_pums(write(frame, tmp_path / "people.csv"), as_frame=True)
    assert list(bunch.data.columns) == PREDICTORS
    pd.testing.assert_series_equal(bunch.target, frame["employed"], check_dtype=False)
    bunch = load_pums(write(acs(), tmp_path / "acs.csv"), as_frame=True)
    assert isinstance(bunch.sample_weight, pd.Series)


# --- ACS files --------------------------------------------------------------------------------------------------------


def test_acs_file(tmp_path):
    frame, path = acs(), tmp_path / "people.zip"
    zip_bytes(path, frame)
    bunch = load_pums(path)
    people = _tables.recode(frame, None, False)
    assert bunch.feature_names == PREDICTORS
    np.testing.assert_array_equal(bunch.data, people[PREDICTORS].to_numpy(np.float32))
    np.testing.assert_array_equal(bunch.target, people["employed"])
    np.testing.assert_array_equal(bunch.sample_weight, frame["PWGTP"][:-1].astype(float))
    assert bunch.bounds["age"] == (18, 99)
    assert bunch.sample_weight_bounds == (1.0, 9999.0)
    assert "outside the labor force" in bunch.DESCR


def test_acs_labor_force(tmp_path):
    frame = acs()
    bunch = load_pums(write(frame, tmp_path / "p.csv"), labor_force_only=True)
    assert len(bunch.target) == np.sum(frame["ESR"][:-1] != 6)
    assert np.mean(bunch.target == 0) == np.mean(frame["ESR"][frame["ESR"] < 6] == 3)
    assert "Only the labor force" in bunch.DESCR


def test_a_zip_of_two_parts_is_read_whole(tmp_path):
    one, two = acs(20, seed=1), acs(30, seed=2)
    zip_bytes(tmp_path / "csv_pus.zip", one, "psam_pusa.csv", **{"psam_pusb.csv": two.to_csv(index=False)})
    both = load_pums(tmp_path / "csv_pus.zip", year=2018)
    assert both.data.shape == (50, 11)
    np.testing.assert_array_equal(both.data[:20], load_pums(write(one, tmp_path / "one.csv"), year=2018).data)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".zip"])
def test_households_of_an_acs_file(tmp_path, suffix):
    serials = ["2018HU0000002", "2018GQ0000001", "2018HU0000002", "2018HU0000007", "2018HU0000002"]
    frame, path = acs(5, SERIALNO=serials, AGEP=[40, 30, 40, 50, 17]), tmp_path / f"people{suffix}"
    _ = zip_bytes(path, frame) if suffix == ".zip" else write(frame, path)
    bunch = load_pums(path, year=2018)
    assert bunch.groups.tolist() == serials[:4]  # adults alone
    assert "groups contains the household" in bunch.DESCR
    framed = load_pums(path, year=2018, as_frame=True)
    assert (framed.groups.name, framed.groups.tolist()) == ("SERIALNO", serials[:4])


def test_household_numbers_are_compared_as_texts(tmp_path):
    """Files of several years have numbers and texts, and numbers with zeros in front."""
    serials = ["0000016", "16", "2018HU0000001", "0000016"]
    bunch = load_pums(write(acs(4, SERIALNO=serials), tmp_path / "p.csv"), year=2018)
    assert bunch.groups.tolist() == serials
    numbers = load_pums(write(acs(4, SERIALNO=[7, 7, 8, 9]).iloc[:4], tmp_path / "p.parquet"), year=2018)
    assert numbers.groups.tolist() == ["7", "7", "8", "9"]


def test_an_acs_file_without_households_is_read_as_before(tmp_path):
    frame = acs()
    bunch = load_pums(write(frame.drop(columns="SERIALNO"), tmp_path / "p.csv"))
    assert bunch.groups is None
    assert "groups" not in bunch.DESCR
    np.testing.assert_array_equal(bunch.data, load_pums(write(frame, tmp_path / "q.csv")).data)


def test_a_person_without_a_household_is_rejected(tmp_path):
    with pytest.raises(ValueError, match="SERIALNO: expected a household") as error:
        load_pums(write(acs(2, SERIALNO=["2018HU0000001", None]), tmp_path / "p.csv"), year=2018)
    one_line(error)


def test_year_reaches_the_military_coding(tmp_path):
    path = write(acs(4, MIL=[1, 2, 2, 4]), tmp_path / "p.csv")
    bunch = load_pums(path, year=2012, features=["militaryservice"])
    assert bunch.data.ravel().tolist() == [1, 1, 1, 1]
    with pytest.raises(ValueError, match="Set `year`"):
        load_pums(path)


def test_zero_padded_codes_and_blanks_of_spaces(tmp_path):
    frame = acs(3, SCHL=["01", "16", "24"], ENG=["  ", "1", "4"])
    people = load_pums(write(frame, tmp_path / "p.csv"), features=["educ", "englishability"])
    assert people.data.tolist() == [[1, 1], [9, 1], [16, 0]]


# --- Without pandas ---------------------------------------------------------------------------------------------------


def test_make_census_needs_numpy_only_and_loaders_say_what_they_need(tmp_path):
    (tmp_path / "people.csv").write_text("age,sex,educ\n")
    code = f"""
import sys
sys.modules["pandas"] = sys.modules["pyarrow"] = None
from skdp.datasets import load_pums, make_census
assert make_census(10, random_state=0).data.shape == (10, 11)
for call in (
    lambda: load_pums({str(tmp_path / "people.csv")!r}),
    lambda: make_census(10, as_frame=True),
):
    try:
        call()
    except ImportError as error:
        assert 'pip install ".[data]"' in str(error), error
    else:
        raise AssertionError("no ImportError")
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("end", "said"), [(2000, "ended before"), (-100, "is truncated or damaged")], ids=["header", "rows"]
)
def test_gzip_that_ends_early_is_told(tmp_path, end, said):
    path = tmp_path / "people.csv.gz"
    path.write_bytes(gzip.compress(census_2000(20_000).to_csv(index=False).encode())[:end])
    with pytest.raises(ValueError, match=said) as error:
        load_pums(path)
    one_line(error)
