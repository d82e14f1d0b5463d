"""Census records: Census 2000 and ACS files, as extracts or as published, and simulated records."""

from __future__ import annotations

import gzip
import os
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch, check_random_state

from skdp._checks.parameters import without_removed
from skdp._checks.table import import_extra
from skdp.datasets import _tables as tables
from skdp.preprocessing.schema.table_schema import TableSchema

_Features = Sequence[str] | str | None


@without_removed
def load_pums(
    path: str | os.PathLike[str],
    *,
    target: str = "employed",
    features: _Features = None,
    labor_force_only: bool = False,
    year: int | None = None,
    as_frame: bool = False,
) -> Bunch:
    """Load a Census 2000 PUMS extract or an ACS person file.

    The two kinds of files are recognized by their column names.

    Parameters
    ----------
    path : path-like
        File with suffix ``.csv``, ``.csv.gz`` or ``.parquet``, or the ``.zip`` of the Census Bureau with its CSV
        inside.
    target : str, default="employed"
        Name of a 0/1 column.
    features : list of str, "all" or None, default=None
        Names of the columns of ``data``. None means the predictors sex, married, black, asian, collegedegree,
        militaryservice, uscitizen, disability, englishability, blackfemale and age. ``"all"`` means every column of the
        file with a public code book. Both exclude the target and columns that reveal it (``divorced`` for ``married``).
    labor_force_only : bool, default=False
        Whether to keep the labor force only, so that ``employed = 0`` means unemployed. Not available for a Census
        2000 extract, which does not record it.
    year : int or None, default=None
        Data year of an ACS file, 2008 or later. It determines the codes of MIL: five until 2012 and four from 2013 on;
        the last one is "never served". If None, the year is inferred from the names of other columns (MLPC, MLPCD), or
        else from the codes. Set `year` if it is known, because it is public and the codes are private.
    as_frame : bool, default=False
        Whether to return pandas objects instead of arrays.

    Returns
    -------
    bunch : sklearn.utils.Bunch
        Dictionary-like object with the following attributes.

        - ``data``: float32 array of shape (n, d).
        - ``target``: int8 array of shape (n,).
        - ``feature_names``, ``target_name``: names of the columns.
        - ``classes``, ``target_names``: public classes and their names.
        - ``bounds``: public (low, high) of each column, from the code book.
        - ``categories``: public values of each categorical column, from the code book.
        - ``schema``: `skdp.preprocessing.TableSchema` of the columns of ``data``, from the code book.
        - ``sample_weight``: float64 array of shape (n,), the number of people that a row represents (PWGTP), or None.
        - ``sample_weight_bounds``: public (low, high) of the weights, or None.
        - ``groups``: private group identifiers of shape (n,), the household of each row (SERIALNO), for ``fit``; or
          None.
        - ``DESCR``: description.

    Raises
    ------
    ValueError
        The file is of another kind, a column is missing, a value of an adult is blank or not in the code book, or the
        coding of MIL is ambiguous.
    FileNotFoundError
        The file does not exist.
    ImportError
        pandas is not installed, or pyarrow for a Parquet file.

    Notes
    -----
    Code books: U.S. Census Bureau, Census 2000 PUMS (through the CS 208 teaching extract) and ACS PUMS data dictionary.
    The 1-year ACS files of a state are at https://www2.census.gov/programs-surveys/acs/data/pums, such as
    ``2022/1-Year/csv_pga.zip``. Adults of an ACS file, 18 and older, are recoded to the columns of the Census 2000
    extract. ``employed`` is ESR 1, 2, 4 or 5. RACBLK and RACASN are "alone or in combination", as in the extract;
    without them black and asian are RAC1P 2 and 6, that race alone. AGEP is top-coded at 99 at most. A blank ENG means
    that the person speaks only English. Files before 2008, whose SCHL has 16 codes, are rejected because they lack DIS.
    Row numbers, geography, income, and ``race`` of the 1,000-row extract, which has no code book, are not available as
    columns.

    Households of an ACS file are numbered as in the survey. A person in group quarters has a separate number. A Census
    2000 extract has no household number.
    """
    parts = _open_tables(Path(path).expanduser())
    if tables.detect_layout(parts[0].names) == "acs":
        return _load_acs(parts, target, features, labor_force_only, year, as_frame)
    if labor_force_only:
        raise ValueError("`labor_force_only` must be False for a Census 2000 extract, which does not record it.")
    names = {name.lower(): name for name in parts[0].names}
    there = [c for c in tables.COLUMNS if all(s in names for s in tables.DERIVED.get(c, (c,)))]
    chosen = tables.choose_columns(there, target, features)
    sources = sorted({s for c in (*chosen, target) for s in tables.DERIVED.get(c, (c,))})
    frame = _read(parts, [names[s] for s in sources])
    bounds = tables.bounds(sources, tables.CENSUS_2000_AGE)
    columns = {s: tables.read_codes(frame[names[s]], s, bounds[s]).astype(np.int16) for s in sources}
    columns = tables.derive(columns)
    return _make_bunch(columns, chosen, target, tables.CENSUS_2000_AGE, as_frame, tables.CENSUS_2000_TEXT)


def make_census(
    n_samples: int = 20_000,
    *,
    random_state: int | np.random.RandomState | None = None,
    features: _Features = None,
    target: str = "employed",
    as_frame: bool = False,
    households: bool = False,
) -> Bunch:
    """Generate simulated records that resemble a Census 2000 extract.

    The function requires no file and no network. The records describe no real person, and do not estimate any
    population.

    Parameters
    ----------
    n_samples : int, default=20_000
        Number of records.
    random_state : int, RandomState instance or None, default=None
        Source of randomness. The same seed gives the same records.
    features : list of str, "all" or None, default=None
        As in :func:`load_pums`. The column ``divorced`` does not exist, and ``children`` only with `households`.
    target : str, default="employed"
        Name of a 0/1 column.
    as_frame : bool, default=False
        Whether to return pandas objects instead of arrays.
    households : bool, default=False
        Whether to return ``groups``, the household of each record. The records are the same.

    Returns
    -------
    bunch : sklearn.utils.Bunch
        Dictionary-like object with the attributes of :func:`load_pums`. Its ``sample_weight`` is simulated as well:
        integers from 1 to 200, larger for persons with a low response rate in a survey.

    Raises
    ------
    ValueError
        A column does not exist, or `n_samples` is not a positive integer.

    Notes
    -----
    Columns are drawn one after the other, each given the previous ones: sex, age, origin, citizenship, English,
    education, military service, marriage, disability, employment. The probabilities are in
    ``skdp/datasets/census_tables.json``. They are round, simulated numbers. About 63% of the persons are employed. With
    the weights, which are drawn last, the weighted fraction is about 71%.

    Households have 1 to 6 adults, 1.8 on average. More than half of the persons live with a spouse of the same origin,
    a similar age and, in most cases, the same level of education. Others live alone or join a household of their
    origin. ``children`` is the same for all persons of a household.
    """
    if isinstance(n_samples, bool) or not isinstance(n_samples, (int, np.integer)) or n_samples < 1:
        raise ValueError(f"`n_samples` must be a positive integer, got {n_samples!r}.")
    rng = check_random_state(random_state)
    people = tables.draw_people(int(n_samples), rng)
    weight = tables.draw_weights(people, rng)
    home = tables.draw_households(people, rng) if households else None
    if home is not None:
        people["children"] = tables.draw_children(people, home, rng)
    chosen = tables.choose_columns([c for c in tables.COLUMNS if c in people], target, features)
    text = tables.MADE_UP_TEXT + (tables.HOUSEHOLDS if households else "")
    ends, labels = tables.MADE_UP_WEIGHT, None if home is None else ("household", home)
    return _make_bunch(people, chosen, target, tables.CENSUS_2000_AGE, as_frame, text, weight, ends, labels)


def _make_bunch(
    columns: Mapping[str, np.ndarray],
    chosen: list[str],
    target: str,
    age: tuple[int, int],
    as_frame: bool,
    description: str,
    weight: np.ndarray | None = None,
    weight_bounds: tuple[float, float] = tables.ACS_WEIGHT,
    households: tuple[str, np.ndarray] | None = None,
) -> Bunch:
    """Collect rows, their private data, and public facts in a Bunch; `households` are a name and identifiers."""
    data: Any = np.ascontiguousarray(np.stack([columns[c] for c in chosen], axis=1), dtype=np.float32)
    labels: Any = columns[target].astype(np.int8)
    name, groups = households or ("", None)
    if as_frame:
        pandas = import_extra("pandas")
        data = pandas.DataFrame({c: columns[c] for c in chosen})
        labels = pandas.Series(labels, name=target)
        weight = None if weight is None else pandas.Series(weight, name="sample_weight")
        groups = None if groups is None else pandas.Series(groups, name=name)
    # The code book as a schema; columns of an array are named by their places.
    kinds: dict[str, Any] = {**dict.fromkeys(tables.BINARY, "flag"), "age": age}
    kinds["educ"] = {"kind": "ordinal", "categories": tables.CATEGORIES["educ"]}
    return Bunch(
        data=data,
        target=labels,
        feature_names=chosen,
        target_name=target,
        target_names=tables.TARGET_NAMES.get(target, (f"not {target}", target)),
        classes=tables.CATEGORIES[target],
        bounds=tables.bounds(chosen, age),
        categories={c: tables.CATEGORIES[c] for c in chosen if c in tables.CATEGORIES},
        schema=TableSchema({c if as_frame else f"x{j}": kinds[c] for j, c in enumerate(chosen)}),
        sample_weight=weight,
        sample_weight_bounds=None if weight is None else weight_bounds,
        groups=groups,
        DESCR=description,
    )


def _load_acs(
    parts: Sequence[_Table], target: str, features: _Features, labor_force_only: bool, year: int | None, as_frame: bool
) -> Bunch:
    chosen = tables.choose_columns([c for c in tables.COLUMNS if c != "children"], target, features)
    needed = {*tables.ACS_CODES, *tables.ACS_OPTIONAL, *tables.ACS_MARKS, tables.ACS_HOUSEHOLD}
    frame = _read(parts, [name for name in parts[0].names if name.upper() in needed]).reset_index(drop=True)
    people = tables.recode(frame, year, labor_force_only)
    columns = {name: people[name].to_numpy() for name in people.columns}
    description = tables.ACS_TEXT + (tables.LABOR_FORCE if labor_force_only else tables.EVERYBODY)
    weight = columns.pop("sample_weight", None)
    households = _read_households(frame.loc[people.index])
    description += tables.HOUSEHOLDS if households else ""
    ends = tables.ACS_WEIGHT
    return _make_bunch(columns, chosen, target, tables.ACS_AGE, as_frame, description, weight, ends, households)


def _read_households(frame: Any) -> tuple[str, np.ndarray] | None:
    """Return the name and the identifiers of the households, if the file has them."""
    names = [name for name in frame.columns if name.upper() == tables.ACS_HOUSEHOLD]
    if not names:
        return None
    labels = frame[names[0]]
    if labels.isna().any():
        raise ValueError(f"{names[0]}: expected a household for each person, got a blank. Correct or drop these rows.")
    return tables.ACS_HOUSEHOLD, labels.to_numpy(dtype=str)


@dataclass(frozen=True)
class _Table:
    """Table in a file: the names of its columns, and a function that reads some of them."""

    names: list[str]
    read: Callable[[list[str]], Any]


def _open_tables(path: Path) -> list[_Table]:
    """List the tables of persons in a file, all of one layout."""
    if not path.is_file():
        raise FileNotFoundError(f"`path` must be an existing file, got {str(path)!r}.")
    try:
        found = [(tables.detect_layout(table.names), table) for table in _list_tables(path)]
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(
            f"`path` must be a .csv, .csv.gz, .parquet or .zip file, got {str(path)!r}: {error}."
        ) from error
    kind = next((layout for layout, _ in found if layout is not None), None)
    if kind is None:
        raise ValueError(
            f"`path` must have ACS persons (AGEP, SEX, SCHL) or Census 2000 (age, sex, educ), got {str(path)!r}."
        )
    return [table for layout, table in found if layout == kind]


def _list_tables(path: Path) -> list[_Table]:
    name = path.name.lower()
    if name.endswith((".csv", ".csv.gz")):
        return [_make_csv_table(path)]
    if name.endswith(".parquet"):
        names = list(import_extra("pyarrow.parquet").read_schema(path).names)
        return [_Table(names, lambda columns: import_extra("pandas").read_parquet(path, columns=columns))]
    if name.endswith(".zip"):
        with zipfile.ZipFile(path) as archive:
            members = sorted(member for member in archive.namelist() if member.lower().endswith(".csv"))
        return [_make_csv_table(path, member) for member in members]
    raise ValueError("unknown suffix")


def _make_csv_table(path: Path, member: str | None = None) -> _Table:
    def read(**options: Any) -> Any:
        pandas = import_extra("pandas")
        if member is None:
            return pandas.read_csv(path, skipinitialspace=True, **options)
        with zipfile.ZipFile(path) as archive, archive.open(member) as file:
            return pandas.read_csv(file, skipinitialspace=True, **options)

    def read_columns(columns: list[str]) -> Any:
        texts = [name for name in columns if name.upper() == tables.ACS_HOUSEHOLD]  # some are numbers, some are not
        return read(usecols=columns, dtype=dict.fromkeys(texts, str))

    return _Table(list(read(nrows=0).columns), read_columns)


def _read(parts: Sequence[_Table], columns: list[str]) -> Any:
    try:
        frames = [part.read(columns) for part in parts]
    except (EOFError, zlib.error) as error:
        raise ValueError(f"The file is truncated or damaged ({error}). Download it again.") from error
    return frames[0] if len(frames) == 1 else import_extra("pandas").concat(frames, ignore_index=True)
