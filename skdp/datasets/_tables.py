"""Public tables of :mod:`skdp.datasets`: code books, probabilities of ``make_census``, and functions that use them.

Nothing here is computed from a file of people. The codes are those of the Census Bureau's printed code books. The
probabilities, in ``census_tables.json``, are round numbers, **simulated to resemble the adults of a country, not an
estimate of any population**.
"""

from __future__ import annotations

import functools
import importlib
import importlib.resources
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from skdp._checks.table import import_extra

# --- Columns, in the coding of the Census 2000 PUMS extract -----------------------------------------------------------

BINARY = (
    "sex", "latino", "black", "asian", "married", "divorced", "uscitizen", "children", "disability",
    "militaryservice", "employed", "englishability", "collegedegree", "blackfemale",
)  # fmt: skip
CATEGORIES: dict[str, tuple[int, ...]] = {**dict.fromkeys(BINARY, (0, 1)), "educ": tuple(range(1, 17))}
COLUMNS = (*CATEGORIES, "age")
PREDICTORS = (
    "sex", "married", "black", "asian", "collegedegree", "militaryservice", "uscitizen", "disability",
    "englishability", "blackfemale", "age",
)  # fmt: skip
DERIVED = {"collegedegree": ("educ",), "blackfemale": ("black", "sex")}
TARGET_NAMES = {"sex": ("male", "female")}
#: Columns that reveal the target. They are not among the features unless requested by name.
GIVEAWAYS = {
    "married": ("divorced",), "divorced": ("married",), "black": ("blackfemale",), "sex": ("blackfemale",),
    "blackfemale": ("black", "sex"), "collegedegree": ("educ",),
}  # fmt: skip
CENSUS_2000_AGE = (18, 93)

# --- ACS person files, from the 2008 data year on ---------------------------------------------------------------------

ACS_AGE = (18, 99)
ACS_WEIGHT = (1.0, 9999.0)
MADE_UP_WEIGHT = (1.0, 200.0)
#: Lowest and highest code. Blank is rejected among adults, except in ENG: they speak only English.
ACS_CODES = {
    "AGEP": (0, 99), "SEX": (1, 2), "SCHL": (1, 24), "MAR": (1, 5), "HISP": (1, 24), "RAC1P": (1, 9), "CIT": (1, 5),
    "ENG": (1, 4), "DIS": (1, 2), "MIL": (1, 5), "ESR": (1, 6),
}  # fmt: skip
ACS_OPTIONAL = {"RACBLK": (0, 1), "RACASN": (0, 1), "PWGTP": (1, 9999)}
#: The number of the household, a string since the data year 2018; persons in group quarters have separate numbers.
ACS_HOUSEHOLD = "SERIALNO"
#: Names of columns that distinguish the military questions from 2013 on from the earlier ones (never values).
ACS_MARKS = {"MLPCD": 4, "MLPFG": 4, "MLPC": 5, "MLPF": 5}
#: SCHL (2008 and later) -> educ. Kindergarten counts as "nursery to 4th grade", a GED as a high school graduate.
SCHL_TO_EDUC = {
    1: 1,  # no schooling
    2: 2, 3: 2, 4: 2, 5: 2, 6: 2, 7: 2,  # nursery, kindergarten, grades 1 to 4
    8: 3, 9: 3,  # grades 5 and 6
    10: 4, 11: 4,  # grades 7 and 8
    12: 5, 13: 6, 14: 7,  # grades 9, 10, 11
    15: 8,  # grade 12, no diploma
    16: 9, 17: 9,  # high school diploma, GED
    18: 10, 19: 11,  # some college: under a year, a year or more
    20: 12, 21: 13, 22: 14, 23: 15, 24: 16,  # associate, bachelor, master, professional, doctorate
}  # fmt: skip


@functools.cache
def probabilities() -> dict[str, Any]:
    """Read the probabilities of ``make_census`` from the data file of the package."""
    return json.loads(importlib.resources.files(__package__).joinpath("census_tables.json").read_text("utf-8"))


# --- Descriptions -----------------------------------------------------------------------------------------------------

_UNIT = "One row is one person, not a household: several persons of one household can be present."
_MEANING = (
    "Columns: sex (1 female), age in years, educ 1-16 (9 high school, 13 bachelor's, 16 doctorate); others are 0/1; "
    "collegedegree is educ >= 13, blackfemale is black and female, englishability is good or native English."
)
EVERYBODY = "employed = 1 includes the armed forces; employed = 0 includes people outside the labor force."
LABOR_FORCE = "Only the labor force: employed = 1 includes the armed forces, employed = 0 is unemployed."
CENSUS_2000_TEXT = f"Adults of the Census 2000 PUMS, a teaching extract. {_UNIT} {_MEANING} {EVERYBODY} No weights."
ACS_TEXT = f"Adults (18+) of a Census Bureau ACS person file, coded as the Census 2000 extract. {_UNIT} {_MEANING} "
MADE_UP_TEXT = (
    "Simulated records (make_census): they resemble U.S. adults, do not estimate any population, and describe no real "
    f"person. One row is one person. {_MEANING} {EVERYBODY} Weights are simulated too."
)
HOUSEHOLDS = " groups contains the household of each person."


# --- Reading the tables -----------------------------------------------------------------------------------------------


def detect_layout(names: Iterable[str]) -> str | None:
    """Return the kind of file that has these columns: "acs", "census 2000", or None."""
    present = {name.lower() for name in names}
    if {"agep", "sex", "schl"} <= present:
        return "acs"
    return "census 2000" if {"age", "sex", "educ"} <= present else None


def bounds(columns: Iterable[str], age: tuple[int, int]) -> dict[str, tuple[int, int]]:
    """Return the public bounds of columns, from the code book and never from the data."""
    return {c: age if c == "age" else (CATEGORIES[c][0], CATEGORIES[c][-1]) for c in columns}


def choose_columns(there: Sequence[str], target: str, features: Sequence[str] | str | None) -> list[str]:
    """Resolve `features` to names of available columns."""
    listed = f"available columns: {', '.join(there)}"
    if target not in BINARY or target not in there:
        raise ValueError(f"`target` must be a 0/1 column, got {target!r}; {listed}")
    if isinstance(features, str) and features != "all":
        raise ValueError(f"`features` must be a list of columns, 'all' or None, got {features!r}; {listed}")
    if features is None or isinstance(features, str):
        hidden = {target, *GIVEAWAYS.get(target, ())}
        asked = [c for c in (PREDICTORS if features is None else there) if c not in hidden]
    else:
        asked = list(features)
    missing = [str(c) for c in asked if c not in there]
    if missing:
        raise ValueError(f"`features` must be among the columns, got {', '.join(missing)}; {listed}")
    if target in asked:
        raise ValueError(f"`features` must not contain the target {target}. Remove it, or choose another target.")
    if not asked or len(set(asked)) < len(asked):
        raise ValueError(f"`features` must contain at least one column, and each once, got {asked!r}; {listed}")
    return asked


def read_codes(column: Any, name: str, book: tuple[int, int], blank: int | None = None) -> np.ndarray:
    """Convert a column to integer codes of the code book; `blank` is the code of an empty field."""
    pandas = import_extra("pandas")
    low, high = book
    try:
        values = pandas.to_numeric(pandas.Series(column)).to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        raise ValueError(f"{name}: expected codes from {low} to {high}, got a string. Correct these rows.") from None
    right = (values >= low) & (values <= high) & (values == np.floor(values))
    if blank is not None:
        values = np.where(np.isnan(values), blank, values)
        right |= values == blank
    if not right.all():
        wrong = values[~right][0]
        found = "a blank" if np.isnan(wrong) else f"{wrong:g}"
        raise ValueError(f"{name}: expected codes from {low} to {high}, got {found}. Correct or drop these rows.")
    return np.asarray(values, dtype=np.float64)


def derive(columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Add collegedegree and blackfemale if the columns from which they derive are present."""
    if "educ" in columns:
        columns["collegedegree"] = (columns["educ"] >= 13).astype(np.int16)
    if "black" in columns and "sex" in columns:
        columns["blackfemale"] = columns["black"] * columns["sex"]
    return columns


def draw_people(n: int, rng: np.random.RandomState) -> dict[str, np.ndarray]:
    """Draw `n` people, each column given those before it; every column is int16 of shape (n,)."""

    def draw_flags(probability: Any) -> np.ndarray:
        return np.asarray(rng.random_sample(n) < probability, dtype=np.int16)

    def draw_indices(probabilities: Sequence[float] | np.ndarray, size: int) -> np.ndarray:
        return np.searchsorted(np.cumsum(probabilities)[:-1], rng.random_sample(size), side="right")

    # Sex, age and origin, and what depends on the origin.
    table = probabilities()
    sex = draw_flags(table["female"])
    first, last, share = _columns(table["age_bands"])
    band = draw_indices(share, n)
    years = (rng.random_sample(n) * (last - first + 1)[band]).astype(np.int64)
    age = np.minimum(first[band] + years, CENSUS_2000_AGE[1]).astype(np.int16)

    flags, share, citizen, english, english_foreign = _columns(table["origins"])
    origin = draw_indices(share, n)
    latino, black, asian = flags[origin].T.astype(np.int16)
    uscitizen = draw_flags(citizen[origin])
    englishability = draw_flags(np.where(uscitizen == 1, english[origin], english_foreign[origin]))

    # Education by age, and what depends on it.
    education, marriage, disabilities = table["education"], table["married"], table["disability"]
    row = np.where(englishability == 1, np.array(education["row_of_age_band"])[band], 0)
    educ = np.empty(n, dtype=np.int16)
    for i, levels in enumerate(education["probabilities"]):
        educ[row == i] = 1 + draw_indices(levels, int(np.sum(row == i)))
    militaryservice = draw_flags(np.array(table["military"])[sex, band])
    if_black = np.where(black == 1, marriage["factor_if_black"], 1.0)
    married = draw_flags(np.array(marriage["probabilities"])[sex, band] * if_black)
    with_degree = np.where(educ >= 13, disabilities["factor_with_college_degree"], 1.0)
    disability = draw_flags(np.array(disabilities["probabilities"])[band] * with_degree)
    people = derive({
        "sex": sex, "age": age, "educ": educ, "married": married, "black": black, "asian": asian, "latino": latino,
        "uscitizen": uscitizen, "disability": disability, "militaryservice": militaryservice,
        "englishability": englishability,
    })  # fmt: skip
    # Employment by its log-odds: a parabola of the age, and products of the other columns.
    employed, by_age = table["employed"], table["employed"]["age"]
    score = employed["constant"] + by_age["height"] * ((people["age"] - by_age["peak"]) / by_age["unit"]) ** 2
    for term in employed["products"]:
        score += term["log_odds"] * np.prod([people[column] for column in term["columns"]], axis=0)
    return people | {"employed": draw_flags(1.0 / (1.0 + np.exp(-score)))}


def _columns(rows: Sequence[Mapping[str, Any]]) -> Iterable[np.ndarray]:
    """Return an array of each column of a table that is written row by row."""
    return (np.array([row[name] for row in rows]) for name in rows[0])


def draw_households(people: Mapping[str, np.ndarray], rng: np.random.RandomState) -> np.ndarray:
    """Draw the household of each person, of shape (n,), numbered from 0.

    Married persons of one origin, and mostly of one level of education, are paired in the order of their ages; the
    others live without the spouse. Some of the unmarried persons join a household of their origin.
    """
    n, table = len(people["age"]), probabilities()["households"]
    origin = people["latino"] + 2 * people["black"] + 4 * people["asian"]
    kind = 2 * origin + (people["collegedegree"] ^ (rng.random_sample(n) > table["same_education_of_spouses"]))
    by_age = np.argsort(people["age"] + table["age_difference_of_spouses"] / np.sqrt(2) * rng.standard_normal(n))
    home, is_paired = np.arange(n), np.zeros(n, dtype=bool)
    for each in np.unique(kind):
        married = by_age[(people["married"][by_age] == 1) & (kind[by_age] == each)]
        sides = [married[people["sex"][married] == sex] for sex in (0, 1)]
        n_couples = min(map(len, sides))
        men, women = (side[np.sort(rng.permutation(len(side))[:n_couples])] for side in sides)
        home[women] = home[men]
        is_paired[men], is_paired[women] = True, True
    guests = np.flatnonzero(~is_paired & (rng.random_sample(n) < table["joining"]))
    return _join(home, origin, guests, table["most_adults"], rng)


def _join(
    home: np.ndarray, origin: np.ndarray, guests: np.ndarray, most: int, rng: np.random.RandomState
) -> np.ndarray:
    """Move persons who live alone to households of their origin, of at most `most` adults."""
    stay = np.ones(len(home), dtype=bool)
    stay[guests] = False
    for each in np.unique(origin[guests]):
        hosts, coming = np.flatnonzero(stay & (origin == each)), guests[origin[guests] == each]
        if len(hosts):
            home[coming] = home[hosts[rng.randint(len(hosts), size=len(coming))]]
    by_home = np.lexsort((~stay, home))  # guests come last
    first = np.concatenate([[True], np.diff(home[by_home]) > 0])
    place = np.arange(len(home)) - np.maximum.accumulate(np.where(first, np.arange(len(home)), 0))
    too_many = by_home[place >= most]
    home[too_many] = too_many
    return np.unique(home, return_inverse=True)[1].astype(np.int64)


def draw_children(people: Mapping[str, np.ndarray], home: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """Draw whether each household has children, for each person, of shape (n,)."""
    table = probabilities()
    youngest = np.full(home.max() + 1, CENSUS_2000_AGE[1])
    np.minimum.at(youngest, home, people["age"])
    married = np.bincount(home, weights=people["married"])
    band = np.digitize(youngest, [each["first"] for each in table["age_bands"]]) - 1
    alone = np.where(married >= 2, 1.0, table["households"]["children_factor_without_couple"])
    chance = np.array(table["households"]["children_by_age_of_youngest"])[band] * alone
    return (rng.random_sample(len(chance)) < chance).astype(np.int16)[home]


def draw_weights(people: Mapping[str, np.ndarray], rng: np.random.RandomState) -> np.ndarray:
    """Draw integer person weights, of shape (n,), as of a survey with unequal response rates."""
    expected = 80.0 * np.where(people["uscitizen"] == 1, 1.0, 1.3)
    for column, factor in (("employed", 1.3), ("disability", 0.8)):
        expected *= np.where(people[column] == 1, factor, 1.0)
    expected *= np.where(people["age"] < 35, 1.2, 1.0)
    return np.clip(np.round(expected * np.exp(0.25 * rng.standard_normal(len(expected)))), *MADE_UP_WEIGHT)


def recode(frame: Any, year: int | None, labor_force_only: bool) -> Any:
    """Recode the adults of an ACS person file to the columns of the Census 2000 extract; see `load_pums`."""
    names = {str(name).upper(): name for name in frame.columns}
    missing = [name for name in ACS_CODES if name not in names]
    if missing:
        raise ValueError(
            f"An ACS person file must have the columns {', '.join(ACS_CODES)}, but lacks {', '.join(missing)}."
        )
    keep = read_codes(frame[names["AGEP"]], "AGEP", ACS_CODES["AGEP"]) >= ACS_AGE[0]
    if labor_force_only:
        keep[keep] = read_codes(frame[names["ESR"]][keep], "ESR", ACS_CODES["ESR"]) != 6
    book = ACS_CODES | {name: span for name, span in ACS_OPTIONAL.items() if name in names}
    blank = {"ENG": 0}
    acs = {name: read_codes(frame[names[name]][keep], name, span, blank.get(name)) for name, span in book.items()}
    # The codes are checked, a blank ENG being 0.
    educ = np.zeros(25, dtype=np.int16)
    educ[list(SCHL_TO_EDUC)] = list(SCHL_TO_EDUC.values())
    columns = {
        "sex": acs["SEX"] == 2,
        "age": acs["AGEP"],
        "educ": educ[acs["SCHL"].astype(np.intp)],
        "latino": acs["HISP"] > 1,
        "black": acs["RACBLK"] == 1 if "RACBLK" in acs else acs["RAC1P"] == 2,
        "asian": acs["RACASN"] == 1 if "RACASN" in acs else acs["RAC1P"] == 6,
        "married": acs["MAR"] == 1,
        "divorced": acs["MAR"] == 3,
        "uscitizen": acs["CIT"] < 5,
        "disability": acs["DIS"] == 1,
        "militaryservice": acs["MIL"] < never_served(names, acs["MIL"], year),
        "employed": np.isin(acs["ESR"], (1, 2, 4, 5)),
        "englishability": acs["ENG"] <= 2,
    }
    columns = derive({name: column.astype(np.int16) for name, column in columns.items()})
    if "PWGTP" in acs:
        columns["sample_weight"] = acs["PWGTP"]
    return import_extra("pandas").DataFrame(columns, index=frame.index[keep])


def never_served(names: Collection[str], codes: np.ndarray, year: int | None) -> int:
    """Find the code of MIL that means "never served": by the year, by the names of other columns, by the codes."""
    if year is not None and year < 2008:
        raise ValueError(f"`year` must be 2008 or later, got {year!r}.")
    marks = {code for name, code in ACS_MARKS.items() if name in names}
    if year is not None:
        marks = {5 if year < 2013 else 4}
    elif len(marks) != 1:
        fours = np.mean(codes == 4) if codes.size else 0.0
        marks = {5} if np.any(codes == 5) else {4} if fours > 0.5 or fours == 0.0 else set()
    if not marks:
        raise ValueError("MIL: code 4 is 'never served' from 2013 on and 'training only' before. Set `year`.")
    (last,) = marks
    if np.any(codes > last):
        raise ValueError(f"MIL: code 5 does not exist from 2013 on, got year={year!r}. Check `year`.")
    return last
