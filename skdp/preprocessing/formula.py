"""Rows of a formula: numbers, indicators of categories and their products, by a public schema."""

from __future__ import annotations

import itertools
import math
from functools import reduce
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import FunctionTransformer

from skdp._checks.cells import format_names
from skdp._checks.parameters import show
from skdp._checks.table import Table, as_keys, as_numbers, as_truth
from skdp._guard.row_wise import row_wise
from skdp._typing import Doubles
from skdp.preprocessing.schema.kinds import Column
from skdp.preprocessing.schema.matching import read_schema

Term = tuple[str, ...]


class FormulaRows(NamedTuple):
    """What `formula_rows` makes; all of it is public.

    Parameters
    ----------
    step : FunctionTransformer
        Step of a pipeline, before a private regression. It reads nothing of its rows and treats them one by one.
    names : list of str
        Of the columns that it makes, for ``summary``.
    units : ndarray of shape (n_columns,)
        By which numbers were divided: half the width of their bounds. For ``summary`` too.
    data_norm : float
        Norm that no row exceeds, for the regression.
    """

    step: FunctionTransformer
    names: list[str]
    units: Doubles
    data_norm: float

    def __getattr__(self, name: str) -> NoReturn:
        """Say what to do where a pipeline takes all of it for a step, and asks for its methods."""
        if name in ("fit", "fit_transform", "transform"):
            raise TypeError("what formula_rows returns is no step: put its .step in the pipeline.")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def formula_rows(formula: str, schema: Any) -> FormulaRows:
    """Make a step that turns a raw table into the rows of a regression formula, by what is public of it.

    A number becomes its place between its bounds, from -1 to 1, and is cut at them. A category becomes indicators of
    all levels but the first, which is the reference; levels are those of the schema, and never read from the rows.

    Parameters
    ----------
    formula : str
        Right side of a formula: ``"age + sex"``, ``"age * sex"`` for both and their product, ``"age:sex"`` for the
        product, which needs both. The intercept is the model's.
    schema : TableSchema or mapping
        Public bounds or categories of all columns that the formula names. Other columns are left alone.

    Returns
    -------
    rows : FormulaRows
        The step, and what the regression and its ``summary`` need to know of it.

    Raises
    ------
    ValueError
        The formula names a column of which bounds or categories are not public, or a product without its parts, or has
        anything but names, ``+``, ``*`` and ``:``. The step itself raises it, before any charge, for a table without
        such a column, or with cells that are gaps or that the schema does not list.

    See Also
    --------
    DPTableVectorizer : Indicators of all levels and gaps, for predictions.
    skdp.linear_model.CoefficientTable : What ``summary`` returns.

    Notes
    -----
    Numbers and indicators have sizes of 1 at most, and of the indicators of a category one is not 0. So a term of the
    formula adds 1 at most to the squared norm of a row, and `data_norm` is the root of the number of terms.

    A coefficient of ``age`` in ``age * sex`` is that of the reference level, and that of ``sex`` is at the middle of
    the bounds of ``age``, where its column is 0.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from sklearn.pipeline import make_pipeline
    >>> from skdp import DPLinearRegression
    >>> from skdp.preprocessing import formula_rows
    >>> rng = np.random.default_rng(0)
    >>> people = pd.DataFrame({"age": rng.uniform(20, 60, 20_000), "sex": rng.choice(["f", "m"], 20_000)})
    >>> hours = 0.5 * people["age"] + 4.0 * (people["sex"] == "m") + rng.normal(size=20_000)
    >>> rows = formula_rows("age * sex", {"age": (20, 60), "sex": ["f", "m"]})
    >>> model = DPLinearRegression((0, 50), data_norm=rows.data_norm, inference=True)
    >>> table = make_pipeline(rows.step, model).fit(people, hours)[-1].summary(names=rows.names, units=rows.units)
    >>> list(table.to_frame().index)
    ['age', 'sex[m vs f]', 'age:sex[m vs f]', '(intercept)']
    >>> bool(abs(table.to_frame().loc["age", "coef"] - 0.5) < 0.1)
    True
    """
    columns = dict(read_schema(schema, "such as {'age': (18, 90), 'sex': ['f', 'm']}").items())
    terms = _terms_of(formula)
    named = {name: _factor(name, columns.get(name)) for name in dict.fromkeys(itertools.chain(*terms))}
    encoder = _Encoder(tuple(named.values()), tuple(terms))
    step = FunctionTransformer(row_wise(encoder, encoder.example()), feature_names_out=encoder.names_out)
    return FormulaRows(step, encoder.names(), encoder.units(), math.sqrt(len(terms)))


class _Factor(NamedTuple):
    """A column of the table, and what is public of it."""

    name: str
    column: Column

    @property
    def labels(self) -> list[str]:
        """Names of the columns that are made of it."""
        levels = self.column.categories
        return [self.name] if levels is None else [f"{self.name}[{each} vs {levels[0]}]" for each in levels[1:]]

    @property
    def half(self) -> float:
        """Half the width of the bounds of a number."""
        return 1.0 if self.column.bounds is None else (self.column.bounds[1] - self.column.bounds[0]) / 2.0

    def read(self, table: Table) -> Doubles:
        """The columns of all rows, each of its own cell alone."""
        if self.name not in table.names:
            raise ValueError(f"X has no column {self.name!r}, which the formula names.")
        cells, column = table.cells(table.names.index(self.name)), self.column
        if column.kind == "number":
            low, high = column.bounds  # type: ignore[misc]  # checked
            made = ((np.clip(as_numbers(cells), low, high) - low) / self.half - 1.0)[:, None]
        elif column.kind == "flag":
            made = _known(as_truth(cells))[:, None]
        else:
            codes, keys = as_keys(cells)
            place = {key: k for k, key in enumerate(column.categories or ())}
            levels = np.array([*(place.get(key, -1) for key in keys), -1])[codes]
            made = (levels[:, None] == np.arange(1, len(place))) * np.where(levels < 0, np.nan, 1.0)[:, None]
        if np.isnan(made).any():
            raise ValueError(
                f"column {self.name!r} has gaps, or cells that the schema does not list: leave such rows out, or add "
                "what they hold to the schema."
            )
        return made

    def example(self) -> list[Any]:
        """Two public cells."""
        if self.column.bounds is not None:
            return list(self.column.bounds)
        return [False, True] if self.column.kind == "flag" else [(self.column.categories or ())[k] for k in (0, -1)]


class _Encoder:
    """A function of tables that gives the rows of a formula."""

    def __init__(self, factors: tuple[_Factor, ...], terms: tuple[Term, ...]) -> None:
        self.factors, self.terms = {each.name: each for each in factors}, terms

    def __call__(self, X: Any) -> Doubles:
        table = Table(X)
        made = {name: each.read(table) for name, each in self.factors.items()}
        return np.hstack([reduce(_products, (made[name] for name in term)) for term in self.terms])

    def names(self) -> list[str]:
        labels = [itertools.product(*(self.factors[name].labels for name in term)) for term in self.terms]
        return [":".join(each) for each in itertools.chain(*labels)]

    def names_out(self, step: Any, input_features: Any) -> NDArray[Any]:
        """As `FunctionTransformer` asks for them."""
        return np.array(self.names(), object)

    def units(self) -> Doubles:
        halves = [[[self.factors[name].half] * len(self.factors[name].labels) for name in term] for term in self.terms]
        return np.array([math.prod(each) for parts in halves for each in itertools.product(*parts)])

    def example(self) -> Any:
        """A public table of two rows, on which it is tested that rows are treated one by one."""
        import pandas as pd

        return pd.DataFrame({name: each.example() for name, each in self.factors.items()})


def _known(codes: NDArray[np.int64]) -> Doubles:
    return np.where(codes < 0, np.nan, codes.astype(np.float64))


def _products(one: Doubles, other: Doubles) -> Doubles:
    return (one[:, :, None] * other[:, None, :]).reshape(len(one), -1)


def _factor(name: str, column: Column | None) -> _Factor:
    if column is None:
        raise ValueError(f"formula has {name!r}, which the schema does not name: add what is public of it.")
    if column.kind == "number" and column.bounds is not None:
        if column.bounds[0] >= column.bounds[1]:
            raise ValueError(f"column {name!r} has bounds that are equal: leave it out of the formula.")
        return _Factor(name, column)
    if column.kind in ("category", "ordinal") and len(column.categories or ()) >= 2:
        return _Factor(name, Column("category", categories=column.categories))
    if column.kind == "flag":
        return _Factor(name, column)
    raise ValueError(
        f"column {name!r} has neither bounds of a number nor two categories in the schema: what a formula needs to "
        "know of it is never read from the rows."
    )


def _terms_of(formula: str) -> list[Term]:
    """Return terms in the order of their degree, each a tuple of names."""
    if not isinstance(formula, str):
        raise TypeError(f"formula={show(formula)} is no string: give one such as 'age * sex + income'.")
    found: dict[frozenset[str], Term] = {}
    for part in formula.split("+"):
        factors = [tuple(name.strip() for name in each.split(":")) for each in part.split("*")]
        for size in range(1, len(factors) + 1):
            for chosen in itertools.combinations(factors, size):
                term = tuple(dict.fromkeys(itertools.chain(*chosen)))
                found.setdefault(frozenset(term), term)
    if any(name in ("", "0", "1") or set("~-()^%") & set(name) for term in found.values() for name in term):
        raise ValueError(
            f"formula={show(formula)} has more than names, '+', '*' and ':': bring functions of columns as columns, "
            "and leave the intercept to fit_intercept."
        )
    for names, term in found.items():
        missing = [each for each in term if len(term) > 1 and names - {each} not in found]
        if missing:
            raise ValueError(
                f"formula has {':'.join(term)} without what it is a product of (all but {format_names(missing)}): "
                f"write {' * '.join(term)}, as levels are compared with the first one."
            )
    return sorted(found.values(), key=len)


__all__ = ["FormulaRows", "formula_rows"]
