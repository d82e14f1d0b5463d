"""Tests of the loaders: recodes value by value, files with the oddities of the real ones, and a local server."""

from __future__ import annotations

import functools
import gzip
import http.server
import itertools
import math
import os
import subprocess
import sys
import threading
import time
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from skdp.datasets import _tables as tables
from skdp.datasets import fetch_acs_pums, load_pums, make_census, recode_acs

PREDICTORS = [
    "sex", "married", "black", "asian", "collegedegree", "militaryservice", "uscitizen", "disability",
    "englishability", "blackfemale", "age",
]  # fmt: skip
ROOT = Path(__file__).parents[1]


# --- Files made by the tests ------------------------------------------------------------------------------------------


def census_2000(n=60, seed=0):
    """Rows with the eighteen columns of the Fulton extract."""
    rng = np.random.default_rng(seed)
    names = (
        "state puma sex age educ income latino black asian married divorced uscitizen children disability "
        "militaryservice employed englishability fips"
    )
    frame = pd.DataFrame({name: rng.integers(0, 2, n) for name in names.split()})
    frame["age"] = rng.integers(18, 94, n)
    frame["educ"] = np.arange(n) % 16 + 1
    frame["income"] = rng.integers(-10_000, 90_000, n)
    frame[["state", "puma", "fips"]] = 13, 1101, 13121
    return frame


def acs(n=80, seed=0, **columns):
    """Rows of an ACS person file (2013 and later), adults and children, with columns nobody needs."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"RT": ["P"] * n, "SERIALNO": [f"2018HU{i:07d}" for i in range(n)], "ST": 13})
    frame["AGEP"] = rng.integers(18, 100, n)
    frame["PWGTP"] = rng.integers(1, 400, n)
    for name, (low, high) in tables.ACS_CODES.items():
        if name not in ("AGEP", "MIL", "ENG"):
            frame[name] = rng.integers(low, high + 1, n)
    frame["MIL"] = rng.choice([1, 2, 3, 4], n, p=[0.02, 0.08, 0.02, 0.88])
    frame["ENG"] = rng.choice([np.nan, 1, 2, 3, 4], n)
    frame["RACBLK"] = rng.integers(0, 2, n)
    frame["RACASN"] = rng.integers(0, 2, n)
    frame["NAICSP"] = "5417"
    for name, values in columns.items():
        frame[name] = values
    child = pd.DataFrame({"RT": ["P"], "SERIALNO": "2018HU9999999", "ST": 13, "AGEP": 7, "PWGTP": 12, "SEX": 1})
    return pd.concat([frame, child], ignore_index=True)


def zip_bytes(path, frame, member="psam_p13.csv", **others):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ACS2018_PUMS_README.pdf", b"%PDF-1.4 not a table")
        archive.writestr(member, frame.to_csv(index=False))
        for name, text in others.items():
            archive.writestr(name, text)
    return path.read_bytes()


def one_line(error):
    text = str(error.value)
    assert "\n" not in text
    return text


# --- Recoding ---------------------------------------------------------------------------------------------------------


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
        (2008, [1, 2, 3, 4, 4], [1, 1, 1, 1, 1]),
        (2013, [1, 2, 3, 4, 1], [1, 1, 1, 0, 1]),
        (None, [1, 2, 3, 4, 5], [1, 1, 1, 1, 0]),
        (None, [4, 4, 4, 4, 2], [0, 0, 0, 0, 1]),
        (None, [1, 2, 3, 3, 2], [1, 1, 1, 1, 1]),
    ],
)
def test_military_coding_by_year_or_by_codes(year, codes, expected):
    assert recoded("militaryservice", codes, "MIL", year=year) == expected


@pytest.mark.parametrize(
    ("mark", "expected"), [("MLPC", [1, 1]), ("MLPF", [1, 1]), ("MLPCD", [1, 0]), ("mlpfg", [1, 0])]
)
def test_military_coding_by_the_names_of_other_columns(mark, expected):
    frame = acs(2, MIL=[2, 4], **{mark: [0, 0]})
    assert recode_acs(frame)["militaryservice"].tolist() == expected
    assert recode_acs(frame, year=2019)["militaryservice"].tolist() == [1, 0]


def test_military_coding_left_open_asks_for_the_year():
    with pytest.raises(ValueError, match="give the data year") as error:
        recode_acs(acs(4, MIL=[1, 2, 2, 4]))
    one_line(error)
    with pytest.raises(ValueError, match="5 is not in the code book of 2013"):
        recode_acs(acs(2, MIL=[4, 5]), year=2013)
    with pytest.raises(ValueError, match="from data year 2008 on"):
        recode_acs(acs(2), year=2007)


def test_adults_only_with_the_index_they_had():
    frame = acs(5, AGEP=[17, 18, 0, 99, 16]).set_index("SERIALNO")
    people = recode_acs(frame)
    assert people.index.tolist() == ["2018HU0000001", "2018HU0000003"]
    assert people["age"].tolist() == [18, 99]


def test_labour_force_only_and_weights():
    frame = acs(6, ESR=range(1, 7), PWGTP=[10, 20, 30, 40, 50, 60])
    people = recode_acs(frame, labour_force_only=True)
    assert people["employed"].tolist() == [1, 1, 0, 1, 1]
    assert people["sample_weight"].tolist() == [10.0, 20.0, 30.0, 40.0, 50.0]
    assert people["sample_weight"].dtype == np.float64
    assert "sample_weight" not in recode_acs(frame.drop(columns="PWGTP"))


def test_lower_case_names_give_the_same_people():
    frame = acs()
    pd.testing.assert_frame_equal(recode_acs(frame), recode_acs(frame.rename(columns=str.lower)))


@pytest.mark.parametrize("name", [name for name in tables.ACS_CODES if name not in ("AGEP", "ENG")])
def test_a_blank_or_unknown_code_of_an_adult_is_refused(name):
    for wrong, said in [(np.nan, "a blank"), (tables.ACS_CODES[name][1] + 1, None), (1.5, "1.5"), ("x", "text")]:
        values = [*[tables.ACS_CODES[name][0]] * 3, wrong]
        with pytest.raises(ValueError, match=f"{name}: {said or f'{wrong:g}'}") as error:
            recode_acs(acs(4, **{name: values}))
        one_line(error)


def test_missing_acs_columns_are_named():
    with pytest.raises(ValueError, match="no column DIS, ESR") as error:
        recode_acs(acs().drop(columns=["ESR", "DIS"]))
    one_line(error)


def test_every_educ_is_reached_and_schooling_never_falls():
    table = tables.SCHL_TO_EDUC
    assert sorted(table) == list(range(1, 25))
    assert sorted(set(table.values())) == list(range(1, 17))
    assert all(table[i] <= table[i + 1] for i in range(1, 24))


# --- Census 2000 extracts ---------------------------------------------------------------------------------------------


def write(frame, path):
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False)
    return path


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
    assert bunch.classes == (0, 1)
    assert bunch.target_names == ("not employed", "employed")
    for said in ("not a household", "outside the labour force", "No weights"):
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
        ({"features": ["age", "income"]}, "no column income"),
        ({"features": ["age", "employed"]}, "employed is the target"),
        ({"features": ["age", "age"]}, "each once"),
        ({"features": []}, "at least one"),
        ({"features": "age"}, "give a list"),
        ({"target": "age"}, "0/1 column"),
        ({"target": "wealth"}, "target='wealth'"),
        ({"labour_force_only": True}, "does not record"),
    ],
)
def test_wrong_arguments_say_so_in_one_line(tmp_path, kwargs, said):
    path = write(census_2000(), tmp_path / "people.csv")
    with pytest.raises(ValueError, match=said) as error:
        load_pums(path, **kwargs)
    one_line(error)


def test_missing_columns_are_named(tmp_path):
    path = write(census_2000()[["age", "sex", "educ", "married"]], tmp_path / "small.csv")
    with pytest.raises(ValueError, match=r"target='employed'.*there are sex, married, collegedegree, educ, age"):
        load_pums(path)
    with pytest.raises(ValueError, match="no column black, asian, militaryservice, uscitizen") as error:
        load_pums(path, target="married")
    one_line(error)
    assert load_pums(path, target="married", features=["age", "collegedegree"]).data.shape == (60, 2)


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("age", 12, "age: 12"),
        ("age", 94, "94"),
        ("sex", 2, "sex: 2"),
        ("educ", 0, "educ: 0"),
        ("black", np.nan, "a blank"),
    ],
)
def test_values_outside_of_the_code_book_are_refused(tmp_path, column, value, said):
    frame = census_2000().astype(float)
    frame.loc[3, column] = value
    with pytest.raises(ValueError, match=said) as error:
        load_pums(write(frame, tmp_path / "people.csv"), features=["age", "sex", "educ", "black"])
    one_line(error)


def test_other_files_are_refused_in_one_line(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file"):
        load_pums(tmp_path / "none.csv")
    (tmp_path / "a.csv").write_text("shoe,hat\n1,2\n")
    (tmp_path / "a.zip").write_bytes(b"no zip")
    (tmp_path / "a.csv.gz").write_bytes(b"no gzip")
    (tmp_path / "a.parquet").write_bytes(b"no parquet")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "a.xlsx").write_bytes(b"")
    for name in ("a.csv", "a.zip", "a.csv.gz", "a.parquet", "empty.csv", "a.xlsx"):
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


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet", ".zip"])
def test_acs_file(tmp_path, suffix):
    frame = acs()
    path = tmp_path / f"people{suffix}"
    if suffix == ".zip":
        zip_bytes(path, frame)
    else:
        write(frame, path)
    bunch = load_pums(path)
    people = recode_acs(frame)
    assert bunch.feature_names == PREDICTORS
    np.testing.assert_array_equal(bunch.data, people[PREDICTORS].to_numpy(np.float32))
    np.testing.assert_array_equal(bunch.target, people["employed"])
    np.testing.assert_array_equal(bunch.sample_weight, frame["PWGTP"][:-1].astype(float))
    assert bunch.bounds["age"] == (18, 99)
    assert bunch.sample_weight_bounds == (1.0, 9999.0)
    assert "outside the labour force" in bunch.DESCR


def test_acs_labour_force(tmp_path):
    frame = acs()
    bunch = load_pums(write(frame, tmp_path / "p.csv"), labour_force_only=True)
    assert len(bunch.target) == np.sum(frame["ESR"][:-1] != 6)
    assert np.mean(bunch.target == 0) == np.mean(frame["ESR"][frame["ESR"] < 6] == 3)
    assert "Only the labour force" in bunch.DESCR


def test_a_zip_of_two_parts_is_read_whole(tmp_path):
    one, two = acs(20, seed=1), acs(30, seed=2)
    zip_bytes(tmp_path / "csv_pus.zip", one, "psam_pusa.csv", **{"psam_pusb.csv": two.to_csv(index=False)})
    both = load_pums(tmp_path / "csv_pus.zip", year=2018)
    assert both.data.shape == (50, 11)
    np.testing.assert_array_equal(both.data[:20], load_pums(write(one, tmp_path / "one.csv"), year=2018).data)


def test_only_the_needed_columns_are_read(tmp_path, monkeypatch):
    path = write(acs().assign(**{f"pwgtp{i}": 1 for i in range(80)}), tmp_path / "people.csv")
    asked = []
    read_csv = pd.read_csv
    monkeypatch.setattr(pd, "read_csv", lambda *a, **k: asked.append(k.get("usecols")) or read_csv(*a, **k))
    load_pums(path)
    assert asked[0] is None  # the header
    assert set(asked[1]) == {*tables.ACS_CODES, "RACBLK", "RACASN", "PWGTP"}


def test_year_reaches_the_military_coding(tmp_path):
    path = write(acs(4, MIL=[1, 2, 2, 4]), tmp_path / "p.csv")
    bunch = load_pums(path, year=2012, features=["militaryservice"])
    assert bunch.data.ravel().tolist() == [1, 1, 1, 1]
    with pytest.raises(ValueError, match="give the data year"):
        load_pums(path)


def test_zero_padded_codes_and_blanks_of_spaces(tmp_path):
    frame = acs(3, SCHL=["01", "16", "24"], ENG=["  ", "1", "4"])
    people = load_pums(write(frame, tmp_path / "p.csv"), features=["educ", "englishability"])
    assert people.data.tolist() == [[1, 1], [9, 1], [16, 0]]


# --- The real files, where they are -----------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def shared():
    folder = os.environ.get("SKDP_DATA")
    if not folder:
        pytest.skip("SKDP_DATA is not set: the folder of the public data sets (pums_fulton_ga.csv.gz ...)")
    return Path(folder)


def test_fulton(shared):
    bunch = load_pums(shared / "pums_fulton_ga.csv.gz")
    assert bunch.data.shape == (25_766, 11)
    means = dict(zip(bunch.feature_names, bunch.data.mean(axis=0), strict=True))
    assert round(float(bunch.target.mean()), 3) == 0.628
    assert round(float(means["collegedegree"]), 3) == 0.375
    assert round(float(means["blackfemale"]), 3) == 0.243
    everything = load_pums(shared / "pums_fulton_ga.csv.gz", features="all")
    assert len(everything.feature_names) == 15


@pytest.mark.parametrize(
    ("name", "rows", "married", "features"),
    [
        ("pums_california_10000", 10_000, 0.5565, ["sex", "latino", "black", "asian", "educ", "blackfemale", "age"]),
        ("pums_california_10000b", 10_000, 0.5586, ["sex", "latino", "black", "asian", "educ", "blackfemale", "age"]),
        ("pums_california_1000", 1_000, 0.549, ["sex", "educ", "collegedegree", "age"]),
    ],
)
def test_california(shared, name, rows, married, features):
    path = shared / f"{name}.csv.gz"
    bunch = load_pums(path, target="married", features=features)
    assert bunch.data.shape == (rows, len(features))
    assert round(float(bunch.target.mean()), 4) == married
    assert set(load_pums(path, target="married", features="all").feature_names) == {*features, "collegedegree"}
    with pytest.raises(ValueError, match="militaryservice"):
        load_pums(path, target="married")


def test_acsincome_lacks_what_the_recode_needs(shared):
    with pytest.raises(ValueError, match="no column HISP, CIT, ENG, DIS, MIL, ESR"):
        load_pums(shared / "acsincome_2018_colorado.csv.gz")


# --- Fetching ---------------------------------------------------------------------------------------------------------


class Server:
    """A Census Bureau on this machine: `files` maps a path to bytes; `requests` lists what was asked for."""

    def __init__(self):
        self.files, self.requests, self.cut = {}, [], None
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.requests.append(self.path)
                body = outer.files.get(self.path)
                if body is None:
                    return self.send_error(404)
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body[: outer.cut])
                return None

            def log_message(self, *args):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/pums"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = Server()
    yield server
    server.http.shutdown()
    server.http.server_close()
    server.thread.join()


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


def fetch(server, home, state="GA", year=2018, **kwargs):
    return fetch_acs_pums(state, year, data_home=home, base_url=server.url, **kwargs)


def put(server, tmp_path, frame, state="ga", year=2018, **kwargs):
    body = zip_bytes(tmp_path / "upload.zip", frame, **kwargs)
    server.files[f"/pums/{year}/1-Year/csv_p{state}.zip"] = body
    return body


def nothing_kept(home):
    return [path for path in home.rglob("*") if path.is_file()] == []


def test_fetch_downloads_once(server, home, tmp_path):
    body = put(server, tmp_path, acs())
    first = fetch(server, home, "ga")
    assert server.requests == ["/pums/2018/1-Year/csv_pga.zip"]
    kept = sorted(path.name for path in home.rglob("*") if path.is_file())
    assert kept == ["csv_pga.zip", "csv_pga.zip.sha256"]
    assert (home / "acs_pums/2018/csv_pga.zip").read_bytes() == body
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = fetch(server, home, "GA", features=["age"], labour_force_only=True)
    assert len(server.requests) == 1
    np.testing.assert_array_equal(first.data, load_pums(tmp_path / "upload.zip", year=2018).data)
    assert again.feature_names == ["age"]
    assert len(again.target) == len(again.sample_weight) < len(first.target)


def test_fetch_gives_the_year_to_the_recode(server, home, tmp_path):
    put(server, tmp_path, acs(4, MIL=[1, 2, 2, 4]), year=2012)
    assert fetch(server, home, year=2012, features=["militaryservice"]).data.ravel().tolist() == [1, 1, 1, 1]


def test_fetch_of_2023_and_later_with_state_for_st(server, home, tmp_path):
    put(server, tmp_path, acs().rename(columns={"ST": "STATE"}), year=2023)
    assert fetch(server, home, year=2023).data.shape == (80, 11)
    put(server, tmp_path, acs().rename(columns={"ST": "STATE"}).assign(STATE=6), year=2022)
    with pytest.raises(ValueError, match="STATE is not 13"):
        fetch(server, home, year=2022)


def test_a_short_download_leaves_nothing(server, home, tmp_path):
    put(server, tmp_path, acs())
    server.cut = 1000
    with pytest.raises(OSError, match="cut short, 1000 of") as error:
        fetch(server, home)
    one_line(error)
    assert nothing_kept(home)
    server.cut = None
    assert fetch(server, home).data.shape == (80, 11)


def test_a_missing_file_is_told_with_its_address(server, home):
    with pytest.raises(OSError, match=r"/pums/2018/1-Year/csv_pga\.zip.*404") as error:
        fetch(server, home)
    assert "load_pums" in one_line(error)
    assert nothing_kept(home)


def test_no_server_at_all(server, home):
    server.http.shutdown()
    server.http.server_close()
    with pytest.raises(OSError, match="try again later") as error:
        fetch(server, home, timeout=5)
    one_line(error)
    assert nothing_kept(home)


def test_what_is_not_a_zip_is_refused(server, home):
    server.files["/pums/2018/1-Year/csv_pga.zip"] = b"<html>down for maintenance</html>"
    with pytest.raises(OSError, match="not a sound zip archive") as error:
        fetch(server, home)
    one_line(error)
    assert nothing_kept(home)


def test_a_damaged_member_is_refused(server, home, tmp_path):
    body = bytearray(put(server, tmp_path, acs()))
    middle = body.index(b"psam_p13.csv") + 600
    body[middle] ^= 0xFF
    server.files["/pums/2018/1-Year/csv_pga.zip"] = bytes(body)
    with pytest.raises(OSError, match=r"checksum|sound zip") as error:
        fetch(server, home)
    one_line(error)
    assert nothing_kept(home)


@pytest.mark.parametrize(
    "frame",
    [pd.DataFrame({"SERIALNO": [1], "WGTP": [2]}), census_2000(), acs().drop(columns="ESR")],
    ids=["housing", "census 2000", "without ESR"],
)
def test_a_zip_without_the_person_file_is_refused(server, home, tmp_path, frame):
    put(server, tmp_path, frame)
    with pytest.raises(ValueError, match="no ACS person file") as error:
        fetch(server, home)
    one_line(error)
    assert nothing_kept(home)


def test_another_state_is_refused(server, home, tmp_path):
    put(server, tmp_path, acs(ST=[13] * 79 + [12]))
    with pytest.raises(ValueError, match="ST is not 13 throughout") as error:
        fetch(server, home)
    one_line(error)
    assert nothing_kept(home)


@pytest.mark.parametrize("harm", ["flip", "truncate", "no digest", "wrong digest"])
def test_a_damaged_cache_is_downloaded_anew(server, home, tmp_path, harm):
    body = put(server, tmp_path, acs())
    fetch(server, home)
    kept, digest = home / "acs_pums/2018/csv_pga.zip", home / "acs_pums/2018/csv_pga.zip.sha256"
    if harm == "flip":
        kept.write_bytes(body[:500] + bytes([body[500] ^ 1]) + body[501:])
    elif harm == "truncate":
        kept.write_bytes(body[:700])
    elif harm == "no digest":
        digest.unlink()
    else:
        digest.write_text("0" * 64)
    with pytest.warns(UserWarning, match="downloaded again"):
        assert fetch(server, home).data.shape == (80, 11)
    assert len(server.requests) == 2
    assert kept.read_bytes() == body
    fetch(server, home)
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("state", "year", "said"),
    [
        ("XX", 2018, "state='XX'"),
        ("Georgia", 2018, "postal code"),
        (13, 2018, "state=13"),
        ("GA", 2020, "no standard 1-year file"),
        ("GA", 2008, "2009 to 2024"),
        ("GA", 2025, "2009 to 2024"),
        ("GA", "2018", "year='2018'"),
    ],
)
def test_unknown_states_and_years_ask_nobody(server, home, state, year, said):
    with pytest.raises(ValueError, match=said) as error:
        fetch(server, home, state, year)
    one_line(error)
    assert server.requests == []


def test_base_url_must_be_http(home):
    with pytest.raises(ValueError, match="not an http"):
        fetch_acs_pums("GA", 2018, data_home=home, base_url="file:///etc")
    assert nothing_kept(home)


def test_states_are_the_fifty_and_two():
    assert len(tables.STATES) == 52
    assert len(set(tables.STATES.values())) == 52
    assert {"DC", "PR", "GA"} <= set(tables.STATES)


# --- Made-up people ---------------------------------------------------------------------------------------------------


@functools.cache
def people(n=200_000):
    """Every column of `n` made-up people, as a frame."""
    bunch = make_census(n, random_state=20260101, features="all", as_frame=True)
    return bunch.data.assign(employed=bunch.target)


def test_make_census_shape_and_public_facts():
    bunch = make_census(500, random_state=0)
    assert bunch.feature_names == PREDICTORS
    assert bunch.data.shape == (500, 11)
    assert bunch.data.dtype == np.float32
    assert bunch.data.flags.c_contiguous
    assert bunch.target.dtype == np.int8
    assert bunch.bounds["age"] == (18, 93)
    assert bunch.classes == (0, 1)
    assert bunch.sample_weight is None
    assert "no privacy to lose" in bunch.DESCR
    assert make_census(random_state=0).data.shape == (20_000, 11)


def test_same_seed_same_people():
    one, two, other = (make_census(2000, random_state=seed) for seed in (7, np.random.RandomState(7), 8))
    np.testing.assert_array_equal(one.data, two.data)
    np.testing.assert_array_equal(one.target, two.target)
    assert not np.array_equal(one.data, other.data)
    all_of_them = make_census(2000, random_state=7, features="all")
    age = all_of_them.feature_names.index("age")
    np.testing.assert_array_equal(all_of_them.data[:, age], one.data[:, PREDICTORS.index("age")])


@pytest.mark.parametrize("n", [0, -1, 2.5, True, "9"])
def test_make_census_wants_a_positive_integer(n):
    with pytest.raises(ValueError, match="n_samples") as error:
        make_census(n)
    one_line(error)


def test_make_census_has_no_divorced():
    with pytest.raises(ValueError, match="no column divorced"):
        make_census(10, features=["divorced"])
    assert make_census(10, random_state=0, target="married").target_name == "married"


def test_made_up_people_stay_in_bounds_and_derived_columns_follow():
    frame = people()
    for column in frame.columns:
        low, high = tables.bounds([column], tables.CENSUS_2000_AGE)[column]
        assert (frame[column].min(), frame[column].max()) == (low, high)
    np.testing.assert_array_equal(frame["collegedegree"], frame["educ"] >= 13)
    np.testing.assert_array_equal(frame["blackfemale"], frame["black"] * frame["sex"])


@pytest.mark.parametrize(
    "table", [[b[2] for b in tables.AGE_BANDS], [o[1] for o in tables.ORIGINS], *tables.EDUC], ids=str
)
def test_tables_are_round_and_sum_to_one(table):
    assert math.isclose(sum(table), 1.0, abs_tol=1e-12)
    assert all(p >= 0 and math.isclose(100 * p, round(100 * p), abs_tol=1e-9) for p in table)


def cells():
    """Every written probability as (name, successes, trials, probability)."""
    f = people()
    band = np.digitize(f["age"], [first for first, _, _ in tables.AGE_BANDS]) - 1

    def cell(name, who, what, probability):
        return name, int(np.sum(who & what)), int(np.sum(who)), probability

    everybody = np.ones(len(f), dtype=bool)
    yield cell("female", everybody, f["sex"] == 1, tables.FEMALE)
    for i, (first, last, p) in enumerate(tables.AGE_BANDS):
        yield cell(f"age {first}", everybody, band == i, p)
        years = last - first + 1
        for age in range(first, min(last, 93) + 1):
            share = (years - (93 - first)) / years if age == 93 else 1 / years
            yield cell(f"age {age}", band == i, f["age"] == age, share)
    for flags, p, citizen, english, english_foreign in tables.ORIGINS:
        who = (f[["latino", "black", "asian"]].to_numpy() == flags).all(axis=1)
        yield cell(f"origin {flags}", everybody, who, p)
        yield cell(f"citizen {flags}", who, f["uscitizen"] == 1, citizen)
        yield cell(f"english {flags}", who & (f["uscitizen"] == 1), f["englishability"] == 1, english)
        yield cell(f"english, foreign {flags}", who & (f["uscitizen"] == 0), f["englishability"] == 1, english_foreign)
    row = np.where(f["englishability"] == 1, np.array(tables.EDUC_ROW)[band], 0)
    for i, k in itertools.product(range(4), range(16)):
        yield cell(f"educ {k + 1} in row {i}", row == i, f["educ"] == k + 1, tables.EDUC[i][k])
    for sex, i in itertools.product((0, 1), range(8)):
        who = (f["sex"] == sex) & (band == i)
        yield cell(f"military {sex} {i}", who, f["militaryservice"] == 1, tables.MILITARY[sex][i])
        for black, factor in ((0, 1.0), (1, tables.MARRIED_BLACK)):
            p = tables.MARRIED[sex][i] * factor
            yield cell(f"married {sex} {i} {black}", who & (f["black"] == black), f["married"] == 1, p)
    for college, i in itertools.product((0, 1), range(8)):
        p = tables.DISABILITY[i] * (tables.DISABILITY_COLLEGE if college else 1.0)
        who = (f["collegedegree"] == college) & (band == i)
        yield cell(f"disability {college} {i}", who, f["disability"] == 1, p)


def test_made_up_people_follow_the_written_tables():
    """Exact binomial tests, Bonferroni: a false alarm in at most 1e-6 of seeds."""
    found = list(cells())
    assert len(found) > 200
    for name, successes, trials, probability in found:
        assert trials > 0, name
        p_value = stats.binomtest(successes, trials, probability).pvalue
        assert p_value > 1e-6 / len(found), (name, successes, trials, probability)


def log_odds(person):
    """The score read off the table, one person at a time."""
    peak, unit, height = tables.EMPLOYED_AGE
    score = tables.EMPLOYED_CONSTANT + height * ((person["age"] - peak) / unit) ** 2
    return score + sum(w for term, w in tables.EMPLOYED.items() if all(person[column] for column in term))


def test_employment_follows_the_written_score():
    """In 20 groups by score the number employed is a sum of known Bernoullis; false alarm at most about 1e-6."""
    frame = people().head(40_000)
    p = np.array([1 / (1 + math.exp(-log_odds(person))) for person in frame.to_dict("records")])
    employed = frame["employed"].to_numpy()
    limit = stats.norm.isf(0.5e-6 / 40)
    for group in [
        *np.array_split(np.argsort(p), 20),
        *(np.flatnonzero(frame[c] == 1) for c in tables.BINARY if c in frame and c != "employed"),
    ]:
        spread = math.sqrt(np.sum(p[group] * (1 - p[group])))
        # The half keeps the normal limit honest where few are employed.
        assert abs(employed[group].sum() - p[group].sum()) < limit * spread + 0.5


def test_employment_is_as_hard_to_predict_as_it_should_be():
    bunch = make_census(60_000, random_state=3)
    assert 0.61 < bunch.target.mean() < 0.65
    low, high = np.array([bunch.bounds[c] for c in bunch.feature_names]).T
    X = (bunch.data - low) / (high - low)
    model = LogisticRegression(C=100.0, max_iter=500).fit(X[:30_000], bunch.target[:30_000])
    score = roc_auc_score(bunch.target[30_000:], model.predict_proba(X[30_000:])[:, 1])
    assert 0.75 < score < 0.80


def test_a_million_people_take_a_moment():
    start = time.process_time()
    make_census(1_000_000, random_state=0)
    assert time.process_time() - start < 6.0  # about 0.5 s; the rest is for a busy machine


# --- Without pandas ---------------------------------------------------------------------------------------------------


def test_make_census_needs_numpy_only_and_loaders_say_what_they_need(tmp_path):
    (tmp_path / "people.csv").write_text("age,sex,educ\n")
    code = f"""
import sys
sys.modules["pandas"] = sys.modules["pyarrow"] = None
from skdp.datasets import fetch_acs_pums, load_pums, make_census
assert make_census(10, random_state=0).data.shape == (10, 11)
for call in (
    lambda: load_pums({str(tmp_path / "people.csv")!r}),
    lambda: make_census(10, as_frame=True),
    lambda: fetch_acs_pums("GA", 2018, data_home={str(tmp_path)!r}, base_url="http://127.0.0.1:9"),
):
    try:
        call()
    except ImportError as error:
        assert 'pip install "skdp[data]"' in str(error), error
    else:
        raise AssertionError("no ImportError")
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("end", "said"), [(2000, "ended before"), (-100, "ends early")], ids=["header", "rows"])
def test_gzip_that_ends_early_is_told(tmp_path, end, said):
    path = tmp_path / "people.csv.gz"
    path.write_bytes(gzip.compress(census_2000(20_000).to_csv(index=False).encode())[:end])
    with pytest.raises(ValueError, match=said) as error:
        load_pums(path)
    one_line(error)
