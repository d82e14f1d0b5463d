"""Public tables behind :mod:`skdp.datasets`: code books, probabilities of ``make_census``, and functions that use them.

Nothing here is computed from a file of people. The codes are those of the Census Bureau's printed code books; the
probabilities are round numbers, **made up to resemble the adults of a country, not an estimate of any population**.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
#: Lowest and highest code. Blank is refused among adults, except in ENG: they speak only English.
ACS_CODES = {
    "AGEP": (0, 99), "SEX": (1, 2), "SCHL": (1, 24), "MAR": (1, 5), "HISP": (1, 24), "RAC1P": (1, 9), "CIT": (1, 5),
    "ENG": (1, 4), "DIS": (1, 2), "MIL": (1, 5), "ESR": (1, 6),
}  # fmt: skip
ACS_OPTIONAL = {"RACBLK": (0, 1), "RACASN": (0, 1), "PWGTP": (1, 9999)}
#: The number of the household, a text since the data year 2018; of each person in group quarters it is another one.
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

ACS_FIRST_YEAR, ACS_LAST_YEAR = 2009, 2024
#: Postal code -> FIPS code, as in the column ST (STATE from 2023 on).
STATES = {
    "AL": 1, "AK": 2, "AZ": 4, "AR": 5, "CA": 6, "CO": 8, "CT": 9, "DE": 10, "DC": 11, "FL": 12, "GA": 13, "HI": 15,
    "ID": 16, "IL": 17, "IN": 18, "IA": 19, "KS": 20, "KY": 21, "LA": 22, "ME": 23, "MD": 24, "MA": 25, "MI": 26,
    "MN": 27, "MS": 28, "MO": 29, "MT": 30, "NE": 31, "NV": 32, "NH": 33, "NJ": 34, "NM": 35, "NY": 36, "NC": 37,
    "ND": 38, "OH": 39, "OK": 40, "OR": 41, "PA": 42, "RI": 44, "SC": 45, "SD": 46, "TN": 47, "TX": 48, "UT": 49,
    "VT": 50, "VA": 51, "WA": 53, "WV": 54, "WI": 55, "WY": 56, "PR": 72,
}  # fmt: skip

# --- Probabilities of make_census: round numbers, made up -------------------------------------------------------------

FEMALE = 0.52
#: First year, last year (both included), probability. Years are uniform within a band; 93 means 93 and older.
AGE_BANDS = (
    (18, 24, 0.13), (25, 34, 0.19), (35, 44, 0.20), (45, 54, 0.18), (55, 64, 0.12), (65, 74, 0.10), (75, 84, 0.06),
    (85, 95, 0.02),
)  # fmt: skip
#: (latino, black, asian), probability, citizen, good English given citizen, good English given not a citizen.
ORIGINS = (
    ((0, 0, 0), 0.69, 0.97, 0.99, 0.85),
    ((0, 1, 0), 0.12, 0.94, 0.99, 0.90),
    ((0, 0, 1), 0.05, 0.65, 0.90, 0.70),
    ((1, 0, 0), 0.12, 0.65, 0.88, 0.45),
    ((1, 1, 0), 0.01, 0.80, 0.95, 0.70),
    ((0, 1, 1), 0.01, 0.85, 0.98, 0.85),
)
#: educ 1 to 16, for: little English; good English and under 25; 25 to 64; 65 and older.
EDUC = (
    (0.10, 0.12, 0.16, 0.10, 0.08, 0.05, 0.05, 0.06, 0.16, 0.02, 0.04, 0.02, 0.03, 0.01, 0.00, 0.00),
    (0.01, 0.01, 0.01, 0.02, 0.03, 0.05, 0.06, 0.07, 0.28, 0.12, 0.20, 0.04, 0.09, 0.01, 0.00, 0.00),
    (0.01, 0.01, 0.01, 0.02, 0.02, 0.02, 0.03, 0.03, 0.27, 0.08, 0.16, 0.08, 0.17, 0.06, 0.02, 0.01),
    (0.02, 0.02, 0.03, 0.09, 0.05, 0.06, 0.05, 0.03, 0.31, 0.06, 0.11, 0.03, 0.08, 0.04, 0.01, 0.01),
)
#: The row of EDUC for each age band, with good English.
EDUC_ROW = (1, 2, 2, 2, 2, 3, 3, 3)
#: By sex (male, female) and age band.
MILITARY = (
    (0.05, 0.08, 0.15, 0.20, 0.30, 0.45, 0.50, 0.40),
    (0.01, 0.02, 0.03, 0.02, 0.01, 0.01, 0.02, 0.02),
)
MARRIED = (
    (0.12, 0.48, 0.65, 0.70, 0.75, 0.75, 0.68, 0.55),
    (0.18, 0.55, 0.66, 0.66, 0.65, 0.52, 0.33, 0.12),
)
#: Factor on MARRIED for black people.
MARRIED_BLACK = 0.7
DISABILITY = (0.10, 0.11, 0.13, 0.18, 0.26, 0.33, 0.45, 0.65)
#: Factor on DISABILITY for people with a college degree.
DISABILITY_COLLEGE = 0.6
#: Log-odds of being employed: a constant, a parabola in age (peak, unit, height per squared unit), products of columns.
EMPLOYED_CONSTANT = 1.25
EMPLOYED_AGE = (38.0, 10.0, -0.30)
EMPLOYED = {
    ("sex",): -0.2,
    ("married",): 0.5,
    ("married", "sex"): -0.8,
    ("collegedegree",): 0.6,
    ("collegedegree", "sex"): 0.2,
    ("collegedegree", "disability"): 0.4,
    ("disability",): -1.3,
    ("black",): -0.4,
    ("blackfemale",): 0.4,
    ("asian",): -0.2,
    ("uscitizen",): 0.2,
    ("englishability",): 0.4,
    ("militaryservice",): 0.1,
}

# --- Households of make_census: round numbers, made up ----------------------------------------------------------------

#: Share of married people whose spouse has their own level of education: a college degree, or none.
ALIKE = 0.85
#: Standard deviation of the difference of the ages of spouses, beside what the ages of all married people ask for.
AGE_OF_SPOUSES = 5.0
#: Share of people without a spouse who live with others, by chance, and the most adults of a household.
JOINING, MOST_ADULTS = 0.4, 6
#: Whether there are children, by the age band of the youngest adult, and the factor without a couple.
CHILDREN = (0.25, 0.60, 0.65, 0.25, 0.05, 0.02, 0.00, 0.00)
CHILDREN_ALONE = 0.5


# --- Descriptions -----------------------------------------------------------------------------------------------------

_UNIT = "One row is one person, not a household: people of one household can both be present."
_MEANING = (
    "Columns: sex (1 female), age in years, educ 1-16 (9 high school, 13 bachelor's, 16 doctorate); others are 0/1; "
    "collegedegree is educ >= 13, blackfemale is black and female, englishability is good or native English."
)
EVERYBODY = "employed = 1 includes the armed forces; employed = 0 includes people outside the labour force."
LABOUR_FORCE = "Only the labour force: employed = 1 includes the armed forces, employed = 0 is unemployed."
CENSUS_2000_TEXT = f"Adults of the Census 2000 PUMS, a teaching extract. {_UNIT} {_MEANING} {EVERYBODY} No weights."
ACS_TEXT = f"Adults (18+) of a Census Bureau ACS person file, coded as the Census 2000 extract. {_UNIT} {_MEANING} "
MADE_UP_TEXT = (
    "Made-up people (make_census): they resemble U.S. adults, estimate no population, and have no privacy to lose. "
    f"One row is one person. {_MEANING} {EVERYBODY} Weights are made up too."
)
HOUSEHOLDS = " groups has the household of each person."


# --- Reading the tables -----------------------------------------------------------------------------------------------


def import_extra(module: str) -> Any:
    """Import a module of the extra ``data``, or raise an error that names the extra."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ImportError(f'{module} is needed to read files and make frames: pip install "skdp[data]"') from None


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
    listed = f"there are {', '.join(there)}"
    if target not in BINARY or target not in there:
        raise ValueError(f"target={target!r}: give a 0/1 column; {listed}")
    if isinstance(features, str) and features != "all":
        raise ValueError(f"features={features!r}: give a list of columns, 'all' or None; {listed}")
    if features is None or isinstance(features, str):
        hidden = {target, *GIVEAWAYS.get(target, ())}
        asked = [c for c in (PREDICTORS if features is None else there) if c not in hidden]
    else:
        asked = list(features)
    missing = [str(c) for c in asked if c not in there]
    if missing:
        raise ValueError(f"features: no column {', '.join(missing)}; name some with features=[...]; {listed}")
    if target in asked:
        raise ValueError(f"features: {target} is the target; leave it out or choose another target")
    if not asked or len(set(asked)) < len(asked):
        raise ValueError(f"features={asked!r}: give at least one column, and each once; {listed}")
    return asked


def read_codes(column: Any, name: str, book: tuple[int, int], blank: int | None = None) -> NDArray[np.float64]:
    """Convert a column to integer codes of the code book; `blank` is the code of an empty field."""
    pandas = import_extra("pandas")
    low, high = book
    try:
        values = pandas.to_numeric(pandas.Series(column)).to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        raise ValueError(f"{name}: text found where the code book has {low} to {high}; correct those rows") from None
    right = (values >= low) & (values <= high) & (values == np.floor(values))
    if blank is not None:
        values = np.where(np.isnan(values), blank, values)
        right |= values == blank
    if not right.all():
        wrong = values[~right][0]
        found = "a blank" if np.isnan(wrong) else f"{wrong:g}"
        raise ValueError(f"{name}: {found} found where the code book has {low} to {high}; correct or drop those rows")
    return np.asarray(values, dtype=np.float64)


def check_state(state: str, year: int) -> str:
    """Check that a 1-year file exists, and return the postal code in capitals."""
    code = str(state).upper()
    if code not in STATES:
        raise ValueError(f"state={state!r}: give the postal code of a state, DC or PR, such as 'GA'")
    first, last = ACS_FIRST_YEAR, ACS_LAST_YEAR
    if year == 2020:
        raise ValueError("year=2020: there is no standard 1-year file, too few people answered; take 2019 or 2021")
    if not isinstance(year, (int, np.integer)) or not first <= year <= last:
        raise ValueError(f"year={year!r}: give a year from {first} to {last}, or load a file you have with load_pums")
    return code


def derive(columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Add collegedegree and blackfemale if the columns from which they derive are present."""
    if "educ" in columns:
        columns["collegedegree"] = (columns["educ"] >= 13).astype(np.int16)
    if "black" in columns and "sex" in columns:
        columns["blackfemale"] = columns["black"] * columns["sex"]
    return columns


def draw_people(n: int, rng: np.random.RandomState) -> dict[str, NDArray[Any]]:
    """Draw `n` people, each column given those before it; every column is int16 of shape (n,)."""

    def draw_flags(probability: Any) -> NDArray[np.int16]:
        return np.asarray(rng.random_sample(n) < probability, dtype=np.int16)

    def draw_indices(probabilities: Sequence[float] | NDArray[Any], size: int) -> NDArray[np.intp]:
        return np.searchsorted(np.cumsum(probabilities)[:-1], rng.random_sample(size), side="right")

    sex = draw_flags(FEMALE)
    first, last, share = (np.array(column) for column in zip(*AGE_BANDS, strict=True))
    band = draw_indices(share, n)
    years = (rng.random_sample(n) * (last - first + 1)[band]).astype(np.int64)
    age = np.minimum(first[band] + years, CENSUS_2000_AGE[1]).astype(np.int16)

    flags, share, citizen, english, english_foreign = (np.array(column) for column in zip(*ORIGINS, strict=True))
    origin = draw_indices(share, n)
    latino, black, asian = flags[origin].T.astype(np.int16)
    uscitizen = draw_flags(citizen[origin])
    englishability = draw_flags(np.where(uscitizen == 1, english[origin], english_foreign[origin]))

    row = np.where(englishability == 1, np.array(EDUC_ROW)[band], 0)
    educ = np.empty(n, dtype=np.int16)
    for i, probabilities in enumerate(EDUC):
        educ[row == i] = 1 + draw_indices(probabilities, int(np.sum(row == i)))
    militaryservice = draw_flags(np.array(MILITARY)[sex, band])
    married = draw_flags(np.array(MARRIED)[sex, band] * np.where(black == 1, MARRIED_BLACK, 1.0))
    disability = draw_flags(np.array(DISABILITY)[band] * np.where(educ >= 13, DISABILITY_COLLEGE, 1.0))
    people = derive({
        "sex": sex, "age": age, "educ": educ, "married": married, "black": black, "asian": asian, "latino": latino,
        "uscitizen": uscitizen, "disability": disability, "militaryservice": militaryservice,
        "englishability": englishability,
    })  # fmt: skip
    return people | {"employed": draw_flags(1.0 / (1.0 + np.exp(-_log_odds_employed(people))))}


def draw_households(people: Mapping[str, NDArray[Any]], rng: np.random.RandomState) -> NDArray[np.int64]:
    """Draw the household of each person, of shape (n,), numbered from 0.

    Married people of one origin, and mostly of one level of education, are paired in the order of their ages; who is
    left over lives without the spouse. Of the others some join a household of their origin.
    """
    n = len(people["age"])
    origin = people["latino"] + 2 * people["black"] + 4 * people["asian"]
    kind = 2 * origin + (people["collegedegree"] ^ (rng.random_sample(n) > ALIKE))
    by_age = np.argsort(people["age"] + AGE_OF_SPOUSES / np.sqrt(2) * rng.standard_normal(n))
    home, is_paired = np.arange(n), np.zeros(n, dtype=bool)
    for each in np.unique(kind):
        married = by_age[(people["married"][by_age] == 1) & (kind[by_age] == each)]
        sides = [married[people["sex"][married] == sex] for sex in (0, 1)]
        n_couples = min(map(len, sides))
        men, women = (side[np.sort(rng.permutation(len(side))[:n_couples])] for side in sides)
        home[women] = home[men]
        is_paired[men], is_paired[women] = True, True
    return _join(home, origin, np.flatnonzero(~is_paired & (rng.random_sample(n) < JOINING)), rng)


def _join(
    home: NDArray[np.int64], origin: NDArray[Any], guests: NDArray[np.int64], rng: np.random.RandomState
) -> NDArray[np.int64]:
    """Let people who live alone join households of their origin, as far as there is room."""
    stay = np.ones(len(home), dtype=bool)
    stay[guests] = False
    for each in np.unique(origin[guests]):
        hosts, coming = np.flatnonzero(stay & (origin == each)), guests[origin[guests] == each]
        if len(hosts):
            home[coming] = home[hosts[rng.randint(len(hosts), size=len(coming))]]
    by_home = np.lexsort((~stay, home))  # guests come last
    first = np.concatenate([[True], np.diff(home[by_home]) > 0])
    place = np.arange(len(home)) - np.maximum.accumulate(np.where(first, np.arange(len(home)), 0))
    too_many = by_home[place >= MOST_ADULTS]
    home[too_many] = too_many
    return np.unique(home, return_inverse=True)[1].astype(np.int64)


def draw_children(
    people: Mapping[str, NDArray[Any]], home: NDArray[np.int64], rng: np.random.RandomState
) -> NDArray[np.int16]:
    """Draw whether there are children in the household of each person, of shape (n,): the same for all of one."""
    youngest = np.full(home.max() + 1, CENSUS_2000_AGE[1])
    np.minimum.at(youngest, home, people["age"])
    married = np.bincount(home, weights=people["married"])
    band = np.digitize(youngest, [first for first, _, _ in AGE_BANDS]) - 1
    chance = np.array(CHILDREN)[band] * np.where(married >= 2, 1.0, CHILDREN_ALONE)
    return (rng.random_sample(len(chance)) < chance).astype(np.int16)[home]


def draw_weights(people: Mapping[str, NDArray[Any]], rng: np.random.RandomState) -> NDArray[np.float64]:
    """Draw whole person weights, of shape (n,), as of a survey that reaches some people less often than others."""
    expected = 80.0 * np.where(people["uscitizen"] == 1, 1.0, 1.3)
    for column, factor in (("employed", 1.3), ("disability", 0.8)):
        expected *= np.where(people[column] == 1, factor, 1.0)
    expected *= np.where(people["age"] < 35, 1.2, 1.0)
    return np.clip(np.round(expected * np.exp(0.25 * rng.standard_normal(len(expected)))), *MADE_UP_WEIGHT)


def _log_odds_employed(people: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
    peak, unit, height = EMPLOYED_AGE
    score = EMPLOYED_CONSTANT + height * ((people["age"] - peak) / unit) ** 2
    for term, weight in EMPLOYED.items():
        score += weight * np.prod([people[column] for column in term], axis=0)
    return score


def recode(frame: Any, year: int | None, labour_force_only: bool) -> Any:
    """See :func:`skdp.datasets.recode_acs`."""
    names = {str(name).upper(): name for name in frame.columns}
    missing = [name for name in ACS_CODES if name not in names]
    if missing:
        raise ValueError(f"no column {', '.join(missing)}: recoding an ACS person file needs {', '.join(ACS_CODES)}")
    keep = read_codes(frame[names["AGEP"]], "AGEP", ACS_CODES["AGEP"]) >= ACS_AGE[0]
    if labour_force_only:
        keep[keep] = read_codes(frame[names["ESR"]][keep], "ESR", ACS_CODES["ESR"]) != 6
    book = ACS_CODES | {name: span for name, span in ACS_OPTIONAL.items() if name in names}
    blank = {"ENG": 0}
    acs = {name: read_codes(frame[names[name]][keep], name, span, blank.get(name)) for name, span in book.items()}
    columns = _recode(acs, never_served(names, acs["MIL"], year))
    if "PWGTP" in acs:
        columns["sample_weight"] = acs["PWGTP"]
    return import_extra("pandas").DataFrame(columns, index=frame.index[keep])


def _recode(acs: dict[str, NDArray[np.float64]], never_served: int) -> dict[str, NDArray[Any]]:
    """Recode checked ACS codes (a blank ENG is 0) to the columns of the Census 2000 extract."""
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
        "militaryservice": acs["MIL"] < never_served,
        "employed": np.isin(acs["ESR"], (1, 2, 4, 5)),
        "englishability": acs["ENG"] <= 2,
    }
    return derive({name: column.astype(np.int16) for name, column in columns.items()})


def never_served(names: Collection[str], codes: NDArray[np.float64], year: int | None) -> int:
    """Find the code of MIL that means "never served": by the year, by the names of other columns, by the codes."""
    if year is not None and year < 2008:
        raise ValueError(f"year={year!r}: the codes are known from data year 2008 on")
    marks = {code for name, code in ACS_MARKS.items() if name in names}
    if year is not None:
        marks = {5 if year < 2013 else 4}
    elif len(marks) != 1:
        fours = np.mean(codes == 4) if codes.size else 0.0
        marks = {5} if np.any(codes == 5) else {4} if fours > 0.5 or fours == 0.0 else set()
    if not marks:
        raise ValueError("MIL: code 4 is 'never served' from 2013 on and 'training only' before: give the data year")
    (last,) = marks
    if np.any(codes > last):
        raise ValueError(f"MIL: 5 is not in the code book of 2013 and later; check year={year!r}")
    return last
