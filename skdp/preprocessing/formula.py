"""Features of a regression formula: numbers, indicators of categories and their products."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from functools import partial, reduce
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.polynomial.legendre import legvander
from sklearn.preprocessing import FunctionTransformer

from skdp._checks.parameters import show
from skdp._checks.table import Table, as_keys, as_numbers, as_truth
from skdp.base.row_wise import row_wise
from skdp.preprocessing.raw_columns import read_schema
from skdp.preprocessing.schema.column import Column

Term = tuple[str, ...]

FUNCTIONS: dict[str, Callable[[Any], Any]] = {"log": np.log, "log1p": np.log1p, "sqrt": np.sqrt, "exp": np.exp}
"""Functions of a number. All are increasing, so that bounds are mapped to bounds."""

MOST_POWER = 9

_FACTOR = re.compile(
    r"(?P<call>\w+)\((?P<of>[^(),]+)(?:,\s*(?P<degree>\d+)\s*)?\)|(?P<base>[^(),^]+)\^\s*(?P<power>\d+)"
)  # with ^ for **


class FormulaRows(NamedTuple):
    """Result of `formula_rows`; all of it is public.

    Parameters
    ----------
    step : FunctionTransformer
        Data-independent transformer for a pipeline, before a private regression. It processes each row independently.
    names : list of str
        Names of the output columns, for ``summary``.
    scales : ndarray of shape (n_columns,)
        Scale by which each number was divided: half the width of its bounds, or 1 for ``poly``. For ``summary``.
    data_norm : float
        Bound on the norm of a row, for the regression.
    """

    step: FunctionTransformer
    names: list[str]
    scales: np.ndarray
    data_norm: float

    def __getattr__(self, name: str) -> NoReturn:
        """Explain the usage if a pipeline uses the object as a step."""
        if name in ("fit", "fit_transform", "transform"):
            raise TypeError(
                "The result of formula_rows is not a pipeline step. Use its attribute .step in the pipeline."
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def formula_rows(formula: str, schema: Any) -> FormulaRows:
    """Create a data-independent transformer for the terms of a regression formula.

    Numbers are scaled from their bounds to [-1, 1] and clipped to them. A category becomes indicators of all categories
    but the first, which is the reference. Categories come from the schema and are never read from the rows.

    Parameters
    ----------
    formula : str
        Right-hand side of a formula: ``"age + sex"``; ``"age * sex"`` for both and their product; ``"age:sex"`` for the
        product, which requires both; ``"."`` for all columns of the schema. Functions of a number are ``log(pay)``,
        ``log1p``, ``sqrt``, ``exp``, ``age**2`` and ``poly(age, 3)``, three columns for a cubic polynomial. The
        estimator adds the intercept.
    schema : TableSchema or mapping
        Public bounds or categories of all columns in the formula. Other columns are ignored.

    Returns
    -------
    rows : FormulaRows
        The transformer, and the parameters for the regression and its ``summary``.

    Raises
    ------
    ValueError
        The formula is invalid, has an interaction without its main effects, or uses a column without public bounds or
        categories, or a function that is undefined within the bounds. The step raises it, before any charge, if a table
        does not have such a column, or has missing values or unknown categories.

    See Also
    --------
    DPTableVectorizer : Indicators of all categories and of missing values, for predictions.
    skdp.linear_model.CoefficientTable : Table that ``summary`` returns.

    Notes
    -----
    Scaled numbers and indicators are at most 1 in absolute value, and at most one indicator of a category is nonzero.
    Each term therefore adds at most 1 to the squared norm of a row, and `data_norm` is the square root of the number of
    terms. Functions are applied to clipped numbers and scaled by their own bounds. ``poly`` uses Legendre polynomials
    of the scaled number, each of which counts as one term.

    Prefer ``poly(age, 2)`` to ``age + age**2``: for a column far from 0, both terms of the latter are nearly collinear,
    and the noise hides the curvature.

    Offsets such as ``offset(log(time))`` are not supported. Fit rates ``count / time`` with ``time`` as weights instead
    (`skdp.DPPoissonRegressor`).

    In ``age * sex``, the coefficient of ``age`` applies to the reference category, and the coefficient of ``sex`` holds
    at the middle of the bounds of ``age``, where the scaled column is 0.

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
    >>> table = make_pipeline(rows.step, model).fit(people, hours)[-1].summary(names=rows.names, scales=rows.scales)
    >>> list(table.to_frame().index)
    ['age', 'sex[m vs f]', 'age:sex[m vs f]', '(intercept)']
    >>> print(table.to_frame().loc["age", "coef"].round(1))
    0.5
    """
    columns = dict(read_schema(schema, "such as {'age': (18, 90), 'sex': ['f', 'm']}").items())
    terms = _terms_of(formula, [name for name, column in columns.items() if column.kind != "drop"])
    named = {text: _factor(text, columns) for text in dict.fromkeys(itertools.chain(*terms))}
    encoder = _Encoder(named, tuple(terms))
    step = FunctionTransformer(row_wise(encoder, encoder.example()), feature_names_out=encoder.names_out)
    return FormulaRows(step, encoder.names(), encoder.scales(), math.sqrt(encoder.squared_norm()))


class _Factor(NamedTuple):
    """A column of the table, its description, and a function or polynomial of it."""

    name: str
    text: str
    column: Column
    function: Callable[[Any], Any] | None = None
    ends: tuple[float, float] = (-1.0, 1.0)  # of the function of a number
    degree: int = 0  # of `poly`

    @property
    def labels(self) -> list[str]:
        """Names of the columns that are made of it."""
        if self.degree:
            return [f"{self.text}[{k}]" for k in range(1, self.degree + 1)]
        levels = self.column.categories
        return [self.text] if levels is None else [f"{self.text}[{each} vs {levels[0]}]" for each in levels[1:]]

    @property
    def unit(self) -> float:
        """Scale of a number."""
        return 1.0 if self.degree or self.column.kind != "number" else (self.ends[1] - self.ends[0]) / 2.0

    def read(self, table: Table) -> np.ndarray:
        """The columns of all rows, each of its own cell alone."""
        if self.name not in table.names:
            raise ValueError(f"X does not have the column {self.name!r} of the formula.")
        cells, column = table.cells(table.names.index(self.name)), self.column
        if column.kind == "number":
            made = self._places(np.clip(as_numbers(cells), *column.bounds))  # type: ignore[misc]  # checked
        elif column.kind == "flag":
            truth = as_truth(cells)
            made = np.where(truth < 0, np.nan, truth)[:, None]
        else:
            codes, keys = as_keys(cells)
            place = {key: k for k, key in enumerate(column.categories or ())}
            levels = np.array([*(place.get(key, -1) for key in keys), -1])[codes]
            made = (levels[:, None] == np.arange(1, len(place))) * np.where(levels < 0, np.nan, 1.0)[:, None]
        if np.isnan(made).any():
            raise ValueError(
                f"Column {self.name!r} has missing values, or values that `schema` does not list. Remove these rows, "
                "or add the values to `schema`."
            )
        return made

    def _places(self, numbers: np.ndarray) -> np.ndarray:
        """Places between the bounds, from -1 to 1, of numbers between them."""
        low, high = self.ends
        values = numbers if self.function is None else self.function(numbers)
        places = np.clip((values - low) / ((high - low) / 2.0) - 1.0, -1.0, 1.0)  # functions round
        if not self.degree:
            return places[:, None]
        return np.clip(legvander(places, self.degree)[:, 1:], -1.0, 1.0)

    def example(self) -> list[Any]:
        """Two public cells."""
        if self.column.bounds is not None:
            return list(self.column.bounds)
        return [False, True] if self.column.kind == "flag" else [(self.column.categories or ())[k] for k in (0, -1)]


class _Encoder:
    """A function of tables that gives the rows of a formula."""

    def __init__(self, factors: dict[str, _Factor], terms: tuple[Term, ...]) -> None:
        self.factors, self.terms = factors, terms

    def __call__(self, X: Any) -> np.ndarray:
        table = Table(X)
        made = {name: each.read(table) for name, each in self.factors.items()}
        return np.hstack([reduce(_products, (made[name] for name in term)) for term in self.terms])

    def names(self) -> list[str]:
        labels = [itertools.product(*(self.factors[name].labels for name in term)) for term in self.terms]
        return [":".join(each) for each in itertools.chain(*labels)]

    def names_out(self, step: Any, input_features: Any) -> np.ndarray:
        """As `FunctionTransformer` asks for them."""
        return np.array(self.names(), object)

    def scales(self) -> np.ndarray:
        scales = [[[self.factors[name].unit] * len(self.factors[name].labels) for name in term] for term in self.terms]
        return np.array([math.prod(each) for parts in scales for each in itertools.product(*parts)])

    def squared_norm(self) -> int:
        """That of a row, at most: of a product it is the product, of a polynomial its degree."""
        return sum(math.prod(max(self.factors[name].degree, 1) for name in term) for term in self.terms)

    def example(self) -> Any:
        """A public table of two rows, on which it is tested that rows are treated one by one."""
        import pandas as pd

        return pd.DataFrame({each.name: each.example() for each in self.factors.values()})


def _products(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return (one[:, :, None] * other[:, None, :]).reshape(len(one), -1)


def _factor(text: str, columns: dict[str, Column]) -> _Factor:
    if text in columns or not (found := _FACTOR.fullmatch(text)):
        return _column(text, columns.get(text))
    call, power = found["call"], found["power"]
    name = (found["of"] or found["base"]).strip()
    factor = _column(name, columns.get(name))._replace(text=text.replace("^", "**"))
    if factor.column.kind != "number":
        raise ValueError(
            f"`formula` has {factor.text!r}, but column {name!r} is not numeric. Use the column name alone."
        )
    if call in FUNCTIONS and found["degree"] is None:
        return _of_function(factor, FUNCTIONS[call])
    degree = found["degree"] if call == "poly" else power
    if degree is None or not 2 <= int(degree) <= MOST_POWER:
        known = ", ".join(f"{each}(x)" for each in FUNCTIONS)
        raise ValueError(
            f"`formula` has an unknown function {factor.text!r}. Use {known}, or x**k or poly(x, k) with k from 2 to "
            f"{MOST_POWER}."
        )
    return factor._replace(degree=int(degree)) if call else _of_function(factor, partial(_power, degree=int(degree)))


def _power(numbers: Any, degree: int) -> Any:
    return np.power(numbers, degree)


def _of_function(factor: _Factor, function: Callable[[Any], Any]) -> _Factor:
    """The same of a function that grows with a number, or with its size."""
    low, high = factor.ends
    with np.errstate(all="ignore"):
        values = [float(function(np.float64(each))) for each in ([low, 0.0, high] if low < 0.0 < high else [low, high])]
    ends = min(values), max(values)
    if not all(map(math.isfinite, values)) or not 0.0 < ends[1] - ends[0] < math.inf:
        raise ValueError(
            f"`formula` has {factor.text!r}, which is undefined at a bound of column {factor.name!r}, or equal at both "
            "bounds. Narrow the bounds."
        )
    return factor._replace(function=function, ends=ends)


def _one_form(text: str) -> str:
    """The same name or function of a name, without spaces of choice."""
    found = _FACTOR.fullmatch(text)
    if found is None:
        return text
    if found["base"]:
        return f"{found['base'].strip()}^{found['power']}"
    return f"{found['call']}({found['of'].strip()}{', ' * bool(found['degree'])}{found['degree'] or ''})"


def _column(name: str, column: Column | None) -> _Factor:
    if column is None:
        raise ValueError(f"`formula` has {name!r}, which `schema` does not declare. Add it to `schema`.")
    if column.kind == "number" and column.bounds is not None:
        if column.bounds[0] >= column.bounds[1]:
            raise ValueError(f"Column {name!r} has equal bounds. Remove it from `formula`.")
        return _Factor(name, name, column, ends=column.bounds)
    if column.kind in ("category", "ordinal") and len(column.categories or ()) >= 2:
        return _Factor(name, name, Column("category", categories=column.categories))
    if column.kind == "flag":
        return _Factor(name, name, column)
    raise ValueError(
        f"Column {name!r} must have numeric bounds or at least two categories in `schema`, because a formula does not "
        "read them from the rows."
    )


def _terms_of(formula: str, columns: list[str]) -> list[Term]:
    """Return terms in the order of their degree, each a tuple of names of columns or functions of one."""
    if not isinstance(formula, str):
        raise TypeError(f"`formula` must be a string such as 'age * sex + income', got {show(formula)}.")
    if "offset(" in formula:
        raise ValueError(
            f"formula={show(formula)} has an offset, which is not supported. For DPPoissonRegressor, pass counts "
            "divided by their exposure as `y`, and the exposure as `sample_weight`."
        )
    if "^" in formula:
        raise ValueError(
            f"formula={show(formula)} has '^', which is not supported. Use x**2 for a power, and a * b for products."
        )
    found: dict[frozenset[str], Term] = {}
    for part in formula.replace("**", "^").split("+"):
        if part.strip() == ".":
            found |= {frozenset([name]): (name,) for name in columns}
            continue
        factors = [tuple(_one_form(name.strip()) for name in each.split(":")) for each in part.split("*")]
        for size in range(1, len(factors) + 1):
            for chosen in itertools.combinations(factors, size):
                term = tuple(dict.fromkeys(itertools.chain(*chosen)))
                found.setdefault(frozenset(term), term)
    for name in itertools.chain(*found.values()):
        is_known = name in columns or _FACTOR.fullmatch(name)
        if name in ("", "0", "1") or (set("~-()^%") & set(name) and not is_known):
            raise ValueError(
                f"formula={show(formula)} must contain only column names, '+', '*', ':' and functions of a column. "
                "Compute other terms as columns, and set the intercept by `fit_intercept`."
            )
    for names, term in found.items():
        if len(term) > 1 and any(names - {each} not in found for each in term):
            raise ValueError(
                f"`formula` has the interaction {':'.join(term)}, which requires its lower-order terms. Use "
                f"{' * '.join(term)}, which includes them."
            )
    return sorted(found.values(), key=len)
