"""Census files made by the tests, with the oddities of the real ones."""

import functools
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd

from skdp.datasets import _tables as tables
from skdp.datasets import make_census

PREDICTORS = [
    "sex", "married", "black", "asian", "collegedegree", "militaryservice", "uscitizen", "disability",
    "englishability", "blackfemale", "age",
]  # fmt: skip
ROOT = Path(__file__).parents[1]


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


def write(frame, path):
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False)
    return path


@functools.cache
def people(n=200_000):
    """Every column of `n` made-up people, as a frame."""
    bunch = make_census(n, random_state=20260101, features="all", as_frame=True)
    return bunch.data.assign(employed=bunch.target)
