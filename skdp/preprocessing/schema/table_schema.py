"""Public description of the columns of a table."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from skdp._checks.numbers import day_text, number_of, truth_of
from skdp._checks.parameters import check_choice
from skdp._checks.table import CellValues, Table, as_days, as_keys, as_numbers
from skdp.accounting.ledger.report import html_table
from skdp.preprocessing.schema.blocks import Combination, read_combinations
from skdp.preprocessing.schema.column import Column, read_column, read_smartnoise

_DEEPEST = 50  # levels of lists in lists; a schema has five


def _import_yaml() -> Any:
    try:
        import yaml
    except ImportError:
        raise ImportError('YAML requires PyYAML. Install it with pip install ".[yaml]", or use JSON.') from None
    return yaml


def load(text: str) -> Any:
    """Read YAML.

    Parameters
    ----------
    text : str
        Keys may not repeat.

    Returns
    -------
    object
    """
    yaml = _import_yaml()

    class Loader(yaml.SafeLoader):  # type: ignore[name-defined]
        """Safe loader without the booleans of YAML 1.1 and without duplicate keys.

        Nesting is limited, and anchors contain no aliases, because a few lines of nested aliases could expand to huge
        lists.
        """

        depth, n_anchors = 0, 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            event = self.peek_event()
            is_alias, has_anchor = isinstance(event, yaml.AliasEvent), getattr(event, "anchor", None) is not None
            if self.depth > _DEEPEST:
                raise RecursionError
            if is_alias and self.n_anchors:
                raise yaml.YAMLError("aliases of aliases")
            opened = int(has_anchor and not is_alias)
            self.depth, self.n_anchors = self.depth + 1, self.n_anchors + opened
            node = super().compose_node(parent, index)
            self.depth, self.n_anchors = self.depth - 1, self.n_anchors - opened
            return node

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            found: set[Any] = set()
            for node_of_key, _ in node.value:
                key = self.construct_object(node_of_key, deep=True)
                if not isinstance(key, Hashable):
                    break  # which raises an error below
                if key in found:
                    raise ValueError(f"The schema has the duplicate key {key!r}. Declare each column once.")
                found.add(key)
            return super().construct_mapping(node, deep=deep)

    Loader.yaml_implicit_resolvers = {
        letter: [
            (tag, pattern)
            for tag, pattern in resolvers
            if tag != "tag:yaml.org,2002:bool" or letter in "tTfF"  # true and false remain
        ]
        for letter, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    fault, found = "", None
    try:
        found = yaml.load(text, Loader)  # derives from SafeLoader
    except yaml.YAMLError as error:
        fault = " ".join(str(getattr(error, "problem", "") or next(iter(error.args), "it cannot be read")).split())
    except RecursionError:
        fault = "lists in lists, too deep"
    if fault:
        raise ValueError(f"The schema is not valid YAML ({fault}). Pass the output of TableSchema.to_yaml.")
    return found


class TableSchema:
    """Public description of the columns of a table: types, bounds and categories.

    The schema is published with the model. Use knowledge that does not come from the private rows: a code book, a form,
    domain knowledge, or public rows (`draft`).

    Parameters
    ----------
    columns : mapping of str to object
        Description of each column, by name. The columns of an array are named ``"x0"``, ``"x1"``, and so on. Values are

        - ``(low, high)``: a number between public bounds, or a date between two dates or ISO strings. Values beyond a
          bound are moved to it.
        - ``[value, ...]``: a categorical column, with the list of its categories.
        - a type: ``"number"``, ``"category"`` or ``"date"``, whose bounds or categories are estimated privately;
          ``"flag"`` for true and false, 1 and 0, or yes and no; ``"drop"``.
        - a dict with the following keys:

          - ``"kind"``: the type, which can also be ``"ordinal"``.
          - ``"bounds"`` or ``"edges"`` (all bin edges) of a number or a date.
          - ``"categories"`` of a category, or of an ordinal column in their order.
          - ``"scale"`` of a number: ``"linear"`` or ``"log"`` (the sign times ``log(1 + |x|)``).
          - ``"other"``: the cell that represents unlisted categories in synthetic data.
          - ``"format"`` of dates that are strings and not in ISO format, for example ``"%d.%m.%Y"``.
          - ``"features"`` of a date, some of ``["month", "weekday"]``: parts that `DPTableVectorizer` encodes as
            categories, at no privacy cost.
          - ``"missing_values"``: a list of values that represent a missing value, such as -999. None in the list
            declares that cells can be empty.
    others : {"error", "drop", "estimate"}, default="error"
        Treatment of undeclared columns: rejected, dropped, or estimated privately with the type given by their dtype.
    impossible : list of mapping of str to object, default=()
        Combinations of cells that cannot occur, for synthetic data (`skdp.DPMarginalSynthesizer`). Each one
        maps two or more column names to a list of categories, or, for a number or a date, to a pair (low, high) that
        matches all bins within it. Private rows are not used for them.

    Attributes
    ----------
    is_complete : bool
        Whether the schema declares all bounds and categories.

    See Also
    --------
    DPTableVectorizer : Encoding of a table by its schema.

    Notes
    -----
    Categories and cells are compared by a key: 1, 1.0 and ``"1"`` are equal, bytes are decoded, and other strings are
    unchanged. In strings of a numeric column, thousands separators, currency signs and percent signs are ignored:
    ``"$1,234"`` is 1234, ``"12 %"`` is 12 and ``"(5)"`` is -5. A decimal comma is not supported. Strings of a date
    column are read by its format, otherwise as ISO dates. Unreadable cells are missing values. Each cell is read
    independently. Schemas are immutable and hashable.

    Examples
    --------
    >>> from skdp.preprocessing import TableSchema
    >>> schema = TableSchema({
    ...     "age": (18, 90),
    ...     "job": ["clerk", "nurse"],
    ...     "income": {"bounds": (0, 1e6), "scale": "log", "missing_values": [-999]},
    ...     "since": ("2000-01-01", "2025-12-31"),
    ...     "member": "flag",
    ...     "id": "drop",
    ... })
    >>> print(schema)
    column  type      public values
    age     number    18 to 90
    job     category  clerk, nurse
    income  number    0 to 1000000, log scale; missing: -999
    since   date      2000-01-01 to 2025-12-31
    member  flag
    id      drop
    >>> TableSchema.from_json(schema.to_json()) == schema
    True
    """

    __slots__ = ("_columns", "_impossible", "_others")

    def __init__(self, columns: Mapping[str, Any], others: str = "error", impossible: Any = ()) -> None:
        if isinstance(columns, TableSchema):
            columns = dict(columns.items())
        if not isinstance(columns, Mapping):
            raise TypeError(
                f"`columns` must be a dict such as {{'age': (18, 90)}}, got <{type(columns).__name__}>. "
                "TableSchema.draft creates a schema from public rows."
            )
        for name in columns:
            if not isinstance(name, str):
                raise TypeError(
                    f"Column names in a schema must be strings, got {name!r}. Columns of an array are 'x0', 'x1', ..."
                )
        check_choice("others", others, ("error", "drop", "estimate"))
        object.__setattr__(self, "_columns", tuple((name, read_column(name, each)) for name, each in columns.items()))
        object.__setattr__(self, "_others", others)
        object.__setattr__(self, "_impossible", read_combinations(impossible, dict(self.items())))

    # --- reading ---

    @property
    def others(self) -> str:
        """Treatment of columns that are not declared.

        Returns
        -------
        others : {"error", "drop", "estimate"}
        """
        return self._others  # type: ignore[attr-defined]

    @property
    def impossible(self) -> tuple[Combination, ...]:
        """Combinations of cells that cannot occur.

        Returns
        -------
        impossible : tuple of Combination
            Combinations of cells that cannot occur, for synthetic data (`skdp.DPMarginalSynthesizer`). Each
            one maps two or more column names to a list of categories, or, for a number or a date, to a pair (low, high)
            that matches all bins within it. Private rows are not used for them.
        """
        return self._impossible  # type: ignore[attr-defined]

    @property
    def is_complete(self) -> bool:
        """Whether the schema declares all bounds and categories.

        Returns
        -------
        complete : bool
        """
        return self.others != "estimate" and not any(column.is_estimated for _, column in self.items())

    def items(self) -> tuple[tuple[str, Column], ...]:
        """Return names and columns, in order.

        Returns
        -------
        items : tuple of (str, Column)
            Types, bounds and categories by name.
        """
        return self._columns  # type: ignore[attr-defined]

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.items())

    def __len__(self) -> int:
        return len(self.items())

    def __getitem__(self, name: str) -> Column:
        return dict(self.items())[name]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TableSchema):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return self.items(), self.others, self.impossible

    def __setattr__(self, name: str, value: Any = None) -> None:
        raise AttributeError("A TableSchema is immutable. Create another one from to_dict().")

    __delattr__ = __setattr__

    def __reduce__(self) -> Any:
        return TableSchema, (dict(self.items()), self.others, self.impossible)

    def __deepcopy__(self, memo: Any) -> TableSchema:
        return self

    # --- text ---

    def __repr__(self) -> str:
        names = ", ".join(map(repr, list(self)[:3])) + (", ..." if len(self) > 3 else "")
        return f"TableSchema(<{len(self)} columns: {names}>, others={self.others!r})"

    def __str__(self) -> str:
        rows = [("column", "type", "public values"), *self._rows()]
        widths = [max(len(row[i]) for row in rows) for i in range(2)]
        return "\n".join(f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c}".rstrip() for a, b, c in rows)

    def _repr_html_(self) -> str:
        return html_table(("column", "type", "public values"), self._rows())

    def describe(self) -> list[tuple[str, str, str]]:
        """Return a summary of each column.

        Returns
        -------
        rows : list of (str, str, str)
            Name, type, and bounds or categories of each column, in order.
        """
        return [(name, column.kind, _what_is_public(column)) for name, column in self.items()]

    def _rows(self) -> list[tuple[str, str, str]]:
        rows = [(" ".join(name.split()), kind, known) for name, kind, known in self.describe()]
        if self.others != "error":
            rows.append(("(others)", self.others, "estimated privately" if self.others == "estimate" else ""))
        if self.impossible:
            rows.append(("(impossible)", "", f"{len(self.impossible)} combinations of cells"))
        return rows

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Return the columns as a dictionary that can be stored as JSON or YAML.

        Returns
        -------
        columns : dict of str to dict
            Arguments of ``TableSchema``.
        """
        return {name: column.describe() for name, column in self.items()}

    def _entries(self) -> dict[str, Any]:
        """Return all that a file holds."""
        found: dict[str, Any] = {"columns": self.to_dict(), "others": self.others}
        if self.impossible:
            found["impossible"] = [each.describe(dict(self.items())) for each in self.impossible]
        return found

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the schema as JSON, and optionally write it to a file.

        Parameters
        ----------
        path : path-like or None, default=None
            File to write.

        Returns
        -------
        text : str
            The JSON text.
        """
        text = json.dumps(self._entries(), indent=1)
        if path is not None:
            Path(path).write_text(text + "\n", encoding="utf-8")
        return text

    def to_yaml(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the schema as YAML, and optionally write it to a file.

        Parameters
        ----------
        path : path-like or None, default=None
            File to write.

        Returns
        -------
        text : str
            The YAML text. Requires PyYAML.
        """
        text = str(_import_yaml().safe_dump(self._entries(), sort_keys=False, allow_unicode=True))
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    @classmethod
    def from_json(cls, source: str | os.PathLike[str]) -> TableSchema:
        """Read a schema from JSON.

        Parameters
        ----------
        source : str or path-like
            JSON text that begins with a brace, or the path of a file. It maps column names to descriptions, or has the
            keys ``columns`` and ``others``.

        Returns
        -------
        schema : TableSchema
            The schema.

        Raises
        ------
        ValueError
            The text is not valid JSON, or describes an invalid column. A list of two numbers or dates is ambiguous and
            rejected: write ``{"bounds": [...]}`` or ``{"categories": [...]}``.
        """
        is_text = isinstance(source, str) and source.lstrip().startswith("{")
        text = str(source) if is_text else Path(source).read_text(encoding="utf-8")
        fault = ""
        try:
            found = json.loads(text, object_pairs_hook=once_each)
        except json.JSONDecodeError as error:
            fault = f"line {error.lineno}, {error.msg}"
        except RecursionError:
            fault = "lists in lists, too deep"
        if fault:
            raise ValueError(f"The schema is not valid JSON ({fault}). Pass the output of TableSchema.to_json.")
        return cls._of_file(found)

    @classmethod
    def from_yaml(cls, source: str | os.PathLike[str]) -> TableSchema:
        """Read a schema from YAML 1.2, in which yes and no are strings.

        Parameters
        ----------
        source : str or path-like
            YAML text that has several lines or a colon followed by a space, or the path of a file. See `from_json`.

        Returns
        -------
        schema : TableSchema
            The schema. Requires PyYAML.

        Raises
        ------
        ValueError
            As for `from_json`.
        """
        return cls._of_file(_load_source(source))

    @classmethod
    def from_smartnoise_yaml(cls, source: str | os.PathLike[str], table: str | None = None) -> TableSchema:
        """Read a schema from the metadata of SmartNoise SQL.

        Parameters
        ----------
        source : str or path-like
            YAML text of several lines, or the path of a file.
        table : str or None, default=None
            Name of the table, as ``"schema.table"``. Required if the file describes several tables.

        Returns
        -------
        schema : TableSchema
            The schema. PyYAML is needed.

        Raises
        ------
        ValueError
            The file is not YAML, does not contain the table, or a type or bounds are invalid.

        Notes
        -----
        Types ``int`` and ``float`` become numbers, ``string`` categories, ``boolean`` flags and ``datetime`` dates.
        ``lower`` and ``upper`` become bounds. Cells may be empty unless ``nullable`` is false. Columns of type
        ``unknown`` and with ``private_id`` are dropped; pass the latter as `groups` to ``fit``.

        The format has a ``cardinality`` but no categories, so categories are estimated privately, as are bounds that
        the file does not contain. The other options, such as ``row_privacy``, ``max_ids`` and ``sensitivity``, concern
        SQL queries and are ignored.

        Examples
        --------
        >>> from skdp.preprocessing import TableSchema
        >>> text = '''
        ... Database:
        ...   Census:
        ...     Persons:
        ...       row_privacy: true
        ...       age: {type: int, lower: 0, upper: 100, nullable: false}
        ...       job: {type: string, cardinality: 12}
        ... '''
        >>> TableSchema.from_smartnoise_yaml(text)["age"].bounds
        (0.0, 100.0)
        """
        tables = read_smartnoise(_load_source(source))
        chosen = next(iter(tables)) if table is None and len(tables) == 1 else table
        if chosen not in tables:
            raise ValueError(f"`table` must be one of the tables of the metadata, {list(tables)}, got {table!r}.")
        return cls._of_file({"columns": tables[chosen]})

    @classmethod
    def _of_file(cls, found: Any) -> TableSchema:
        if not isinstance(found, Mapping):
            raise ValueError("The schema must be a mapping of columns. Pass the output of TableSchema.to_json.")
        others, impossible = "error", ()
        if set(found) <= {"columns", "others", "impossible"} and isinstance(found.get("columns"), Mapping):
            impossible = found.get("impossible", ())
            found, others = found["columns"], found.get("others", "error")
        for name, given in found.items():
            if not isinstance(name, str):  # of YAML: a file is damaged, where an argument is of a wrong type
                raise ValueError(f"Column names in a schema must be strings, got {name!r}. Write it in quotes.")
            if isinstance(given, list) and len(given) == 2 and not _are_words(given):
                raise ValueError(
                    f"Column {name!r} is ambiguous: {given!r} can be bounds or categories. Use "
                    f'{{"bounds": {given!r}}} or {{"categories": {given!r}}}.'
                )
        return cls(found, others, impossible)

    @classmethod
    def draft(cls, public_frame: Any) -> TableSchema:
        """Draft a schema from public rows, for review.

        Parameters
        ----------
        public_frame : table of shape (n, d)
            Rows that need no protection: a public sample, an earlier release or simulated data. Their values appear in
            the draft.

        Returns
        -------
        schema : TableSchema
            Numbers get bounds rounded outward, strings get the observed categories. String columns with more than 50
            values have their categories estimated privately, or are dropped if nearly all values are distinct.
        """
        table = Table(public_frame)
        return cls({name: _draft_column(table.cells(j), table.kind(j)) for j, name in enumerate(table.names)})


def _load_source(source: str | os.PathLike[str]) -> Any:
    """Read YAML: text of several lines or with a colon and a blank, or a file."""
    is_text = isinstance(source, str) and ("\n" in source or ": " in source)
    return load(str(source) if is_text else Path(source).read_text(encoding="utf-8"))


def _what_is_public(column: Column) -> str:
    parts = []
    if column.is_estimated:
        parts.append("estimated privately")
    if column.bounds is not None:
        low, high = (day_text(end) if column.kind == "date" else f"{end:.12g}" for end in column.bounds)
        parts.append(f"{low} to {high}")
    if column.edges is not None:
        parts[-1] += f", {len(column.edges) - 1} bins"
    if column.categories is not None:
        listed = [" ".join(key.split()) for key in column.categories]
        parts.append(", ".join(listed[:6]) + (f", ... ({len(listed)})" if len(listed) > 6 else ""))
    if column.other is not None:
        parts.append(f"others as {' '.join(column.other.split())}")
    if column.form:
        parts.append(f"format {column.form}")
    if column.features:
        parts.append(f"with {' and '.join(column.features)}")
    if column.scale != "linear":
        parts.append(f"{column.scale} scale")
    keys = ", ".join(key or "empty cells" for key in column.missing_values)
    return "; ".join(filter(None, [", ".join(parts), keys and f"missing: {keys}"]))


def _are_words(given: list[Any]) -> bool:
    """Whether two items are categories for sure: there is text, and they cannot be bounds of dates."""
    try:
        kind = read_column("", tuple(given)).kind
    except ValueError:
        kind = "category"
    return kind == "category" and any(isinstance(each, str) for each in given)


def once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON, or reject a key that repeats."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"The JSON text has the duplicate key {repeated!r}. Write each key once.")
    return found


# --- draft of a schema from public rows ---


def _draft_column(cells: CellValues, kind: str) -> dict[str, Any]:
    """Return entries for a column of a public table, whose values they show.

    Numbers get bounds, rounded outward to two digits; numbers 0 and 1 are flags. Text is a date or a number if all of
    it is, else a category with the values found. More than 50 values are dropped if nearly each row has one of its own,
    else left to be estimated.
    """
    codes, keys = as_keys(cells)
    if cells.kind == "boolean" or ({truth_of(key) for key in keys} == {0, 1} and len(keys) == 2):
        return {"kind": "flag"}
    if kind == "date" or (keys and kind != "number" and not np.isnan(as_days(cells)[codes >= 0]).any()):
        return _draft_date(as_days(cells))
    if kind == "number" or (keys and not any(math.isnan(number_of(key)) for key in keys)):
        return _draft_number(as_numbers(cells))
    if len(keys) <= 50:
        return {"kind": "category", "categories": sorted(keys)} if keys else {"kind": "drop"}
    return {"kind": "drop" if len(keys) > 0.9 * np.count_nonzero(codes >= 0) else "category"}


def _draft_number(values: np.ndarray) -> dict[str, Any]:
    values = np.clip(values[np.isfinite(values)], -9e299, 9e299)  # bounds lie within 1e300
    if not len(values):
        return {"kind": "drop"}
    low, high = round_outward(float(values.min()), float(values.max()))
    return {"kind": "number", "bounds": [low, high]}


def _draft_date(days: np.ndarray) -> dict[str, Any]:
    days = days[~np.isnan(days)]
    if not len(days):
        return {"kind": "drop"}
    low, high = math.floor(days.min()), math.ceil(days.max())
    return {"kind": "date", "bounds": [day_text(low), day_text(max(high, low + 1))]}


def round_outward(low: float, high: float) -> tuple[float, float]:
    """Round bounds outward to two significant digits of the larger one."""
    largest = max(abs(low), abs(high))
    if largest == 0.0:
        return 0.0, 1.0
    unit = 10.0 ** (math.floor(math.log10(largest)) - 1)
    bounds = math.floor(low / unit) * unit, math.ceil(high / unit) * unit
    lower, upper = (float(f"{bound:.12g}") for bound in bounds)
    return (lower, upper) if lower < upper else (lower, lower + unit)
