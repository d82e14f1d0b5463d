"""The recode of ACS columns, value by value."""

import numpy as np
import pandas as pd
import pytest
from census_files import acs, one_line

from skdp.datasets import _tables as tables


def recode_acs(frame, year=None, labor_force_only=False):
    return tables.recode(frame, year, labor_force_only)


def recoded(column, values, name, **kwargs):
    return recode_acs(acs(len(values), **{name: values}), **kwargs)[column].tolist()


EDUC = [1, 2, 2, 2, 2, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 9, 9, 10, 11, 12, 13, 14, 15, 16]


@pytest.mark.parametrize(
    ("column", "name", "codes", "expected"),
    [
        ("sex", "SEX", [1, 2], [0, 1]),
        ("age", "AGEP", [18, 40, 99], [18, 40, 99]),
        ("educ", "SCHL", range(1, 25), EDUC),
        ("collegedegree", "SCHL", range(1, 25), [0] * 20 + [1] * 4),
        ("latino", "HISP", range(1, 25), [0] + [1] * 23),
        ("married", "MAR", range(1, 6), [1, 0, 0, 0, 0]),
        ("divorced", "MAR", range(1, 6), [0, 0, 1, 0, 0]),
        ("uscitizen", "CIT", range(1, 6), [1, 1, 1, 1, 0]),
        ("disability", "DIS", [1, 2], [1, 0]),
        ("employed", "ESR", range(1, 7), [1, 1, 0, 1, 1, 0]),
        ("englishability", "ENG", [np.nan, 1, 2, 3, 4], [1, 1, 1, 0, 0]),
        ("black", "RACBLK", [0, 1], [0, 1]),
        ("asian", "RACASN", [0, 1], [0, 1]),
    ],
)
def test_recode_value_by_value(column, name, codes, expected):
    assert recoded(column, list(codes), name, year=2018) == expected


def test_race_alone_where_the_combined_columns_are_missing():
    frame = acs(9, RAC1P=range(1, 10)).drop(columns=["RACBLK", "RACASN"])
    people = recode_acs(frame)
    assert people["black"].tolist() == [0, 1, 0, 0, 0, 0, 0, 0, 0]
    assert people["asian"].tolist() == [0, 0, 0, 0, 0, 1, 0, 0, 0]


def test_blackfemale_is_black_and_female():
    people = recode_acs(acs(4, RACBLK=[0, 0, 1, 1], SEX=[1, 2, 1, 2]), year=2018)
    assert people["blackfemale"].tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize(
    ("year", "codes", "expected"),
    [
        (2012, [1, 2, 3, 4, 5], [1, 1, 1, 1, 0]),
        (2013, [1, 2, 3, 4, 1], [1, 1, 1, 0, 1]),
        (None, [1, 2, 3, 4, 5], [1, 1, 1, 1, 0]),
        (None, [4, 4, 4, 4, 2], [0, 0, 0, 0, 1]),
    ],
)
def test_military_coding_by_year_or_by_codes(year, codes, expected):
    assert recoded("militaryservice", codes, "MIL", year=year) == expected


@pytest.mark.parametrize(("mark", "expected"), [("MLPC", [1, 1]), ("mlpfg", [1, 0])])
def test_military_coding_by_the_names_of_other_columns(mark, expected):
    frame = acs(2, MIL=[2, 4], **{mark: [0, 0]})
    assert recode_acs(frame)["militaryservice"].tolist() == expected
    assert recode_acs(frame, year=2019)["militaryservice"].tolist() == [1, 0]


def test_military_coding_left_open_asks_for_the_year():
    with pytest.raises(ValueError, match="Set `year`") as error:
        recode_acs(acs(4, MIL=[1, 2, 2, 4]))
    one_line(error)
    with pytest.raises(ValueError, match="code 5 does not exist from 2013 on"):
        recode_acs(acs(2, MIL=[4, 5]), year=2013)
    with pytest.raises(ValueError, match="must be 2008 or later"):
        recode_acs(acs(2), year=2007)


def test_adults_only_with_the_index_they_had():
    frame = acs(5, AGEP=[17, 18, 0, 99, 16]).set_index("SERIALNO")
    people = recode_acs(frame)
    assert people.index.tolist() == ["2018HU0000001", "2018HU0000003"]
    assert people["age"].tolist() == [18, 99]


def test_labor_force_only_and_weights():
    frame = acs(6, ESR=range(1, 7), PWGTP=[10, 20, 30, 40, 50, 60])
    people = recode_acs(frame, labor_force_only=True)
    assert people["employed"].tolist() == [1, 1, 0, 1, 1]
    assert people["sample_weight"].tolist() == [10.0, 20.0, 30.0, 40.0, 50.0]
    assert people["sample_weight"].dtype == np.float64
    assert "sample_weight" not in recode_acs(frame.drop(columns="PWGTP"))


def test_lower_case_names_give_the_same_people():
    frame = acs()
    pd.testing.assert_frame_equal(recode_acs(frame), recode_acs(frame.rename(columns=str.lower)))


@pytest.mark.parametrize("name", ["SCHL", "MIL", "ESR"])
def test_a_blank_or_unknown_code_of_an_adult_is_rejected(name):
    for wrong, said in [(np.nan, "a blank"), (tables.ACS_CODES[name][1] + 1, None), (1.5, "1.5"), ("x", "a string")]:
        values = [*[tables.ACS_CODES[name][0]] * 3, wrong]
        with pytest.raises(ValueError, match=f"{name}: .* got {said or f'{wrong:g}'}") as error:
            recode_acs(acs(4, **{name: values}))
        one_line(error)


def test_missing_acs_columns_are_named():
    with pytest.raises(ValueError, match="but lacks DIS, ESR") as error:
        recode_acs(acs().drop(columns=["ESR", "DIS"]))
    one_line(error)
