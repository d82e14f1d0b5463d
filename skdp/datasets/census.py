"""Census people: Census 2000 and ACS files, as extracts or as published, and made-up ones."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import os
import shutil
import tempfile
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch, check_random_state

from skdp.datasets import _tables as tables
from skdp.exceptions import warn

__all__ = ["fetch_acs_pums", "load_pums", "make_census", "recode_acs"]

_Features = Sequence[str] | str | None
CENSUS_URL = "https://www2.census.gov/programs-surveys/acs/data/pums"


def load_pums(
    path: str | os.PathLike[str],
    *,
    target: str = "employed",
    features: _Features = None,
    labour_force_only: bool = False,
    year: int | None = None,
    as_frame: bool = False,
) -> Bunch:
    """Load a Census 2000 PUMS extract or an ACS person file, told apart by their column names.

    Parameters
    ----------
    path : path-like
        ``.csv``, ``.csv.gz``, ``.parquet``, or the Census Bureau's ``.zip`` with its CSV inside.
    target : str, default="employed"
        A 0/1 column.
    features : list of str, "all" or None, default=None
        None: the predictors sex, married, black, asian, collegedegree, militaryservice, uscitizen, disability,
        englishability, blackfemale, age. ``"all"``: every column with a public code book that the file has. Both leave
        out the target and what gives it away (``divorced`` for ``married``).
    labour_force_only : bool, default=False
        Keep the labour force only, so that ``employed = 0`` means unemployed. A Census 2000 extract does not tell.
    year : int or None, default=None
        Data year of an ACS file; it settles the coding of MIL, see :func:`recode_acs`.
    as_frame : bool, default=False
        Give pandas objects instead of arrays.

    Returns
    -------
    bunch : sklearn.utils.Bunch
        ``data`` (n, d) float32; ``target`` (n,) int8; ``feature_names``; ``target_name``; ``classes`` and
        ``target_names`` (what each class is called); ``bounds``, column -> (low, high), and ``categories``,
        column -> values, from the code book and hence public; ``sample_weight`` (n,) float64 (PWGTP: people represented
        by this one), or None where there are no weights, with ``sample_weight_bounds``; ``DESCR``.

    Raises
    ------
    ValueError
        For a file of another kind, a column that is not there, or a value outside of the code book.
    FileNotFoundError
        If there is no such file.
    ImportError
        If pandas (or, for Parquet, pyarrow) is missing.

    Notes
    -----
    Code books: U.S. Census Bureau, Census 2000 PUMS (through the CS 208 teaching extract) and ACS PUMS data dictionary.
    Not offered as columns: row numbers, geography, income, and ``race`` of the 1,000-row extract (no code book).
    """
    parts = _open(Path(path).expanduser())
    if tables.layout(parts[0].names) == "acs":
        return _load_acs(parts, target, features, labour_force_only, year, as_frame)
    if labour_force_only:
        raise ValueError("labour_force_only=True: a Census 2000 extract does not tell who is in it; take an ACS file")
    names = {name.lower(): name for name in parts[0].names}
    there = [c for c in tables.COLUMNS if all(s in names for s in tables.DERIVED.get(c, (c,)))]
    chosen = tables.choose(there, target, features)
    sources = sorted({s for c in (*chosen, target) for s in tables.DERIVED.get(c, (c,))})
    frame = _read(parts, [names[s] for s in sources])
    bounds = tables.bounds(sources, tables.CENSUS_2000_AGE)
    columns = {s: tables.codes(frame[names[s]], s, bounds[s]).astype(np.int16) for s in sources}
    return _bunch(tables.derive(columns), chosen, target, tables.CENSUS_2000_AGE, as_frame, tables.CENSUS_2000_TEXT)


def recode_acs(frame: Any, *, year: int | None = None, labour_force_only: bool = False) -> Any:
    """Recode the adults of an ACS person file to the columns of the Census 2000 extract.

    Parameters
    ----------
    frame : pandas.DataFrame
        With AGEP, SEX, SCHL, MAR, HISP, RAC1P, CIT, ENG, DIS, MIL and ESR, in either case of letters. Used where they
        are there: PWGTP, and RACBLK and RACASN (alone or in combination, as in the Census 2000 extract; without them
        black and asian are RAC1P 2 and 6, that race alone).
    year : int or None, default=None
        Data year, 2008 or later. Until 2012 MIL has five codes, from 2013 on four, with "never served" always the last.
        Without `year` the coding is told by the names of other columns (MLPC, MLPCD) or else by the codes: a 5 is never
        found among four, and most adults never served. Give `year` where it is known: it is public, the codes are not.
    labour_force_only : bool, default=False
        Keep the employed (ESR 1, 2), the unemployed (3) and the armed forces (4, 5) only.

    Returns
    -------
    people : pandas.DataFrame
        People of 18 and older with the index they had: sex, age, educ, latino, black, asian, married, divorced,
        uscitizen, disability, militaryservice, employed, englishability, collegedegree, blackfemale, and
        ``sample_weight`` if there is PWGTP. ``employed`` is ESR 1, 2, 4 or 5.

    Raises
    ------
    ValueError
        For a missing column, an adult's code that is blank or not in the code book, or a coding of MIL left open.

    Notes
    -----
    Source: U.S. Census Bureau, ACS PUMS data dictionary, data years 2008 and later (earlier SCHL has 16 codes; those
    files are refused because they lack DIS). AGEP is top-coded, at 99 at most. A blank ENG: speaks only English.
    """
    return tables.recode(frame, year, labour_force_only)


def fetch_acs_pums(
    state: str,
    year: int,
    *,
    data_home: str | os.PathLike[str] | None = None,
    base_url: str = CENSUS_URL,
    target: str = "employed",
    features: _Features = None,
    labour_force_only: bool = False,
    as_frame: bool = False,
    timeout: float = 60.0,
) -> Bunch:
    """Fetch the Census Bureau's 1-year ACS person file of a state, once, and load it.

    Parameters
    ----------
    state : str
        Postal code of a state, DC or PR.
    year : int
        Data year, 2009 to 2024 except 2020.
    data_home : path-like or None, default=None
        Where files are kept; None is :func:`sklearn.datasets.get_data_home`.
    base_url : str, default=CENSUS_URL
        Folder that holds ``{year}/1-Year/csv_p{state}.zip``.
    target, features, labour_force_only, as_frame
        As in :func:`load_pums`.
    timeout : float, default=60.0
        Seconds without an answer after which the download is given up.

    Returns
    -------
    bunch : sklearn.utils.Bunch
        As from :func:`load_pums`, with ``sample_weight``.

    Raises
    ------
    ValueError
        For an unknown state or year, or a file that is not the person file of that state.
    OSError
        If the download fails or is cut short. Nothing is left behind.

    Notes
    -----
    A download is checked (length, archive, checksums of its members, columns, state) before it takes its place in the
    cache, and again by its SHA-256 each time it is read: the Bureau publishes no digest, so the first download is
    trusted as far as HTTPS is. Source: https://www.census.gov/programs-surveys/acs/microdata.html.
    """
    code = tables.state_code(state, year)
    tables.need("pandas")
    from sklearn.datasets import get_data_home

    folder = Path(get_data_home(data_home)) / "acs_pums" / str(year)
    path = folder / f"csv_p{code.lower()}.zip"
    if not _is_intact(path):
        folder.mkdir(parents=True, exist_ok=True)
        _download(f"{base_url.rstrip('/')}/{year}/1-Year/{path.name}", path, tables.STATES[code], timeout)
    return _load_acs(_open(path), target, features, labour_force_only, year, as_frame)


def make_census(
    n_samples: int = 20_000,
    *,
    random_state: int | np.random.RandomState | None = None,
    features: _Features = None,
    target: str = "employed",
    as_frame: bool = False,
) -> Bunch:
    """Make up people who resemble a Census 2000 extract, with no file and no network.

    They are nobody: no privacy is at stake, and nothing about a population can be learned from them.

    Parameters
    ----------
    n_samples : int, default=20_000
        How many.
    random_state : int, RandomState instance or None, default=None
        The same seed gives the same people.
    features, target, as_frame
        As in :func:`load_pums`; there are no ``divorced`` and ``children``.

    Returns
    -------
    bunch : sklearn.utils.Bunch
        As from :func:`load_pums`; ``sample_weight`` is None.

    Raises
    ------
    ValueError
        For a column that is not there, or an `n_samples` that is not a positive integer.

    Notes
    -----
    Columns are drawn one after the other, each given those before it: sex, age, origin, citizenship, English,
    education, military service, marriage, disability, employment. The probabilities stand in
    ``skdp/datasets/_tables.py``; they are round numbers, made up. About 63% are employed.
    """
    if isinstance(n_samples, bool) or not isinstance(n_samples, (int, np.integer)) or n_samples < 1:
        raise ValueError(f"n_samples={n_samples!r}: give a positive integer")
    people = tables.draw_people(int(n_samples), check_random_state(random_state))
    chosen = tables.choose([c for c in tables.COLUMNS if c in people], target, features)
    return _bunch(people, chosen, target, tables.CENSUS_2000_AGE, as_frame, tables.MADE_UP_TEXT)


def _bunch(
    columns: Mapping[str, NDArray[Any]],
    chosen: list[str],
    target: str,
    age: tuple[int, int],
    as_frame: bool,
    description: str,
    weight: NDArray[np.float64] | None = None,
) -> Bunch:
    """Put rows and public facts side by side."""
    data: Any = np.ascontiguousarray(np.stack([columns[c] for c in chosen], axis=1), dtype=np.float32)
    labels: Any = columns[target].astype(np.int8)
    if as_frame:
        pandas = tables.need("pandas")
        data = pandas.DataFrame({c: columns[c] for c in chosen})
        labels = pandas.Series(labels, name=target)
        weight = None if weight is None else pandas.Series(weight, name="sample_weight")
    return Bunch(
        data=data,
        target=labels,
        feature_names=chosen,
        target_name=target,
        target_names=tables.TARGET_NAMES.get(target, (f"not {target}", target)),
        classes=tables.CATEGORIES[target],
        bounds=tables.bounds(chosen, age),
        categories={c: tables.CATEGORIES[c] for c in chosen if c in tables.CATEGORIES},
        sample_weight=weight,
        sample_weight_bounds=None if weight is None else tables.ACS_WEIGHT,
        DESCR=description,
    )


def _load_acs(
    parts: Sequence[_Table], target: str, features: _Features, labour_force_only: bool, year: int | None, as_frame: bool
) -> Bunch:
    chosen = tables.choose([c for c in tables.COLUMNS if c != "children"], target, features)
    needed = {*tables.ACS_CODES, *tables.ACS_OPTIONAL, *tables.ACS_MARKS}
    frame = _read(parts, [name for name in parts[0].names if name.upper() in needed])
    people = recode_acs(frame, year=year, labour_force_only=labour_force_only)
    columns = {name: people[name].to_numpy() for name in people.columns}
    description = tables.ACS_TEXT + (tables.LABOUR_FORCE if labour_force_only else tables.EVERYBODY)
    weight = columns.pop("sample_weight", None)
    return _bunch(columns, chosen, target, tables.ACS_AGE, as_frame, description, weight)


@dataclass(frozen=True)
class _Table:
    """A table in a file: the names of its columns, and how to read some of them."""

    names: list[str]
    read: Callable[[list[str]], Any]


def _open(path: Path) -> list[_Table]:
    """List the tables of people in a file, all of one layout."""
    if not path.is_file():
        raise FileNotFoundError(f"path={str(path)!r}: no such file")
    try:
        found = [(tables.layout(table.names), table) for table in _tables(path)]
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"path={str(path)!r}: {error}; give a .csv, .csv.gz, .parquet or .zip file") from error
    kind = next((layout for layout, _ in found if layout is not None), None)
    if kind is None:
        raise ValueError(f"path={str(path)!r}: neither ACS people (AGEP, SEX, SCHL) nor Census 2000 (age, sex, educ)")
    return [table for layout, table in found if layout == kind]


def _tables(path: Path) -> list[_Table]:
    name = path.name.lower()
    if name.endswith((".csv", ".csv.gz")):
        return [_csv_table(path)]
    if name.endswith(".parquet"):
        names = list(tables.need("pyarrow.parquet").read_schema(path).names)
        return [_Table(names, lambda columns: tables.need("pandas").read_parquet(path, columns=columns))]
    if name.endswith(".zip"):
        with zipfile.ZipFile(path) as archive:
            members = sorted(member for member in archive.namelist() if member.lower().endswith(".csv"))
        return [_csv_table(path, member) for member in members]
    raise ValueError("unknown suffix")


def _csv_table(path: Path, member: str | None = None) -> _Table:
    def read(**options: Any) -> Any:
        pandas = tables.need("pandas")
        if member is None:
            return pandas.read_csv(path, skipinitialspace=True, **options)
        with zipfile.ZipFile(path) as archive, archive.open(member) as file:
            return pandas.read_csv(file, skipinitialspace=True, **options)

    return _Table(list(read(nrows=0).columns), lambda columns: read(usecols=columns))


def _read(parts: Sequence[_Table], columns: list[str]) -> Any:
    try:
        frames = [part.read(columns) for part in parts]
    except (EOFError, zlib.error) as error:
        raise ValueError(f"the file ends early or is damaged ({error}); get it anew") from error
    return frames[0] if len(frames) == 1 else tables.need("pandas").concat(frames, ignore_index=True)


def _is_intact(path: Path) -> bool:
    """Tell whether a cached file is there and still is what was checked when it came."""
    if not path.exists():
        return False
    seal = path.with_suffix(".zip.sha256")
    if seal.is_file() and seal.read_text().strip() == _digest(path):
        return True
    warn(f"{path} does not match {seal.name}: it is damaged and is downloaded anew")
    return False


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _download(url: str, path: Path, fips: int, timeout: float) -> None:
    """Bring a checked archive to `path`; until it is checked it has another name."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".part-", suffix=".zip")
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            _transfer(url, file, timeout)
        _check_archive(part, url, fips)
        digest = _digest(part)
        # A crash between these two lines leaves an archive without its digest, which is downloaded anew.
        part.replace(path)
        path.with_suffix(".zip.sha256").write_text(f"{digest}\n")
    finally:
        part.unlink(missing_ok=True)


def _transfer(url: str, file: BinaryIO, timeout: float) -> None:
    if not url.lower().startswith(("http://", "https://")):
        raise ValueError(f"base_url: {url} is not an http(s) address; to load a file you have use load_pums")
    request = urllib.request.Request(url, headers={"User-Agent": "skdp"})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            length = answer.headers.get("Content-Length")
            shutil.copyfileobj(answer, file)
    except (OSError, http.client.HTTPException) as error:
        raise OSError(f"{url}: {error}; try again later, or load a file you have with load_pums") from error
    if length is not None and file.tell() != int(length):
        raise OSError(f"{url}: cut short, {file.tell()} of {length} bytes came; try again")


def _check_archive(part: Path, url: str, fips: int) -> None:
    """Refuse what is not a sound archive with the person file of that state."""
    try:
        with zipfile.ZipFile(part) as archive:
            damaged = archive.testzip()
    except (zipfile.BadZipFile, zlib.error, EOFError):
        raise OSError(f"{url}: what came is not a sound zip archive; try again, or check base_url") from None
    if damaged is not None:
        raise OSError(f"{url}: {damaged} in the archive fails its checksum; try again")
    try:
        people = _open(part)
    except ValueError:
        people = [_Table([], list)]
    if not {*tables.ACS_CODES} <= {name.upper() for name in people[0].names}:
        raise ValueError(f"{url}: no ACS person file in the archive; check year and base_url")
    for name in people[0].names:
        if name.upper() in ("ST", "STATE") and np.any(tables.codes(_read(people, [name])[name], name, (1, 72)) != fips):
            raise ValueError(f"{url}: {name} is not {fips} throughout, the file of another state; check base_url")
