"""`rehearse`: expected quality of a private fit from public numbers alone, on simulated rows.

Simulated tables have the columns of a schema, and a target with a given signal. A few columns are informative and many
are weakly informative, some categories are frequent and most are rare, and columns are correlated. The strengths were
set on one census table (benchmarks/README.md).
"""

from __future__ import annotations

import math
import numbers
import time
import tracemalloc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_softmax, ndtr
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.metrics import r2_score, roc_auc_score

from skdp._checks.leaks import config_context, report_leak, silence
from skdp._checks.numbers import day_text
from skdp._checks.parameters import check_count, check_real, is_private, last_step, show, without_removed
from skdp._checks.rows import indexable, table_shape, take_rows
from skdp._checks.table import import_extra
from skdp.accounting.ledger.report import escaped, html_table
from skdp.preprocessing.schema.column import Column
from skdp.preprocessing.schema.table_schema import TableSchema


def draw_rows(schema: TableSchema | int, n: int, n_scores: int, rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    """Draw rows, and their scores for a target.

    Parameters
    ----------
    schema : TableSchema or int
        Columns, or the number of numeric columns in [-1, 1].
    n : int
        Number of rows.
    n_scores : int
        Scores of each row.
    rng : Generator

    Returns
    -------
    X : DataFrame, or ndarray of shape (n, d)
    scores : ndarray of shape (n_scores, n)
        Contribution of the rows to the target, each with a mean of 0 and a variance of 1.
    """
    columns = [Column("number", (-1.0, 1.0))] * schema if isinstance(schema, int) else [c for _, c in schema.items()]
    common = rng.normal(size=n)
    # The k-th column has the signal of the first divided by the root of k, in another order for each score.
    weights = np.array([rng.permutation(np.arange(1.0, len(columns) + 1.0) ** -0.5) for _ in range(n_scores)])
    alone, made = [], []
    for column in columns:
        # Half of the variance is common to all columns, and their signal agrees with it.
        ranks = ndtr(math.sqrt(0.5) * common + math.sqrt(0.5) * rng.normal(size=n))
        # Numbers are squares of uniform ones between their bounds: most columns are rarely near their upper bound.
        cells, says = _draw_column(column, 1.0 if isinstance(schema, int) else 2.0, ranks, n_scores, rng)
        made.append(cells)
        says = _standard(says)
        says[0] *= 1.0 if says[0] @ common >= 0.0 else -1.0
        alone.append(says)
    scores = _standard(np.einsum("kd,dkn->kn", weights, alone))
    # A tenth of the variance is due to interactions of pairs of columns, as many pairs as columns.
    order = rng.permutation(len(columns))
    pairs = zip(order, np.roll(order, 1), strict=True) if len(columns) > 1 else ()
    together = _standard(sum((alone[i] * alone[j] for i, j in pairs), np.zeros((n_scores, n))))
    scores = _standard(math.sqrt(1.0 - 0.1) * scores + math.sqrt(0.1) * together)
    if isinstance(schema, int):
        return np.column_stack(made), scores
    return import_extra("pandas").DataFrame(dict(zip(schema, made, strict=True))), scores


def _standard(values: np.ndarray) -> np.ndarray:
    """Each row with a mean of 0 and a variance of 1, or of zeros if it is constant."""
    centered = values - values.mean(axis=1, keepdims=True)
    spread = centered.std(axis=1, keepdims=True)
    return centered / np.where(spread > 1e-12, spread, np.inf)


# --- columns ---


def _draw_column(
    column: Column, low: float, ranks: np.ndarray, n_scores: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Cells, and the contribution of each to the target, of shape (n_scores, n); `ranks` are uniform."""
    if column.kind == "drop":
        return np.zeros(ranks.size), np.zeros((n_scores, ranks.size))
    if column.kind in ("number", "date"):
        ends = column.bounds or (0.0, 100.0)
        cells = ends[0] + (ends[1] - ends[0]) * ranks**low
        if column.kind == "date":
            cells = np.array([day_text(math.floor(day), column.form) for day in cells])
        z = math.sqrt(12.0) * (ranks - 0.5)
        says = z + 0.3 * rng.normal(size=(n_scores, 1)) * (z * z - 1.0)  # a line, and some curvature
    else:
        known = ("0", "1") if column.kind == "flag" else column.categories or tuple("abcdefghij")
        says = rng.normal(size=(n_scores, len(known)))
        if column.kind == "ordinal":
            places = np.linspace(-1.0, 1.0, len(known))
            shares = np.exp(-2.0 * (places - rng.uniform(-0.5, 0.5)) ** 2)
            says = np.broadcast_to(places, says.shape)
        else:  # the frequency of the k-th category is that of the first divided by k squared
            shares = rng.permutation(np.arange(1.0, len(known) + 1.0) ** -2.0)
        codes = np.searchsorted(np.cumsum(shares)[:-1] / shares.sum(), ranks)
        cells, says = np.array(known, dtype=object)[codes], says[:, codes]
    if column.missing_values:
        cells = cells.astype(object)
        cells[rng.random(ranks.size) < 0.02] = column.missing_values[0] or None
    return cells, says


# --- targets ---


def draw_classes(scores: np.ndarray, shares: np.ndarray, auc: float, rng: np.random.Generator) -> np.ndarray:
    """Draw the index of a class for each row.

    Parameters
    ----------
    scores : ndarray of shape (n_classes - 1, n)
    shares : ndarray of shape (n_classes,)
        Class prevalences, with a sum of 1.
    auc : float
        ROC AUC of the true probabilities, in (0.5, 1): of one class against the others, averaged.
    rng : Generator

    Returns
    -------
    y : ndarray of shape (n,)
    """
    scores = np.vstack([np.zeros((1, scores.shape[1])), scores])
    some = scores[:, :4_000]  # rows for the scale of the signal
    low, high = -5.0, 7.0
    for _ in range(25):
        middle = 0.5 * (low + high)
        reached = _area(_chances(some, math.exp(middle), _offsets(some, math.exp(middle), shares))) >= auc
        low, high = (low, middle) if reached else (middle, high)
    scale = math.exp(high)
    chances = _chances(scores, scale, _offsets(some, scale, shares))
    drawn = rng.random(scores.shape[1])
    return np.minimum((np.cumsum(chances, axis=0) < drawn).sum(axis=0), len(shares) - 1)


def _chances(scores: np.ndarray, scale: float, offsets: np.ndarray) -> np.ndarray:
    return np.exp(log_softmax(scale * scores + offsets[:, None], axis=0))


def _offsets(scores: np.ndarray, scale: float, shares: np.ndarray) -> np.ndarray:
    """Intercepts for which classes have approximately these prevalences."""
    offsets = np.log(shares)
    for _ in range(20):
        offsets = offsets + np.log(shares / np.maximum(_chances(scores, scale, offsets).mean(axis=1), 1e-12))
    return offsets


def _area(chances: np.ndarray) -> float:
    """The ROC AUC of these probabilities if they are true, averaged over classes."""
    areas = []
    for p in chances if len(chances) > 2 else chances[1:]:
        p = np.sort(p)
        below = np.cumsum(1.0 - p) - 0.5 * (1.0 - p)
        areas.append(float((p * below).sum() / (p.sum() * (1.0 - p).sum())))
    return float(np.mean(areas))


_TEST_ROWS = 10_000
_FEWEST = 8  # public rows, two of which are test rows
_SPREAD = 3.0
"""Standard deviations of a target between the middle of its bounds and either bound."""


@dataclass(frozen=True)
class Rehearsal:
    """Results of fits to simulated rows. Created by `rehearse`.

    Parameters
    ----------
    estimator : str
        Name of the estimator, or of the last step of a pipeline.
    n : int
        Number of rows.
    n_columns : int
        Number of columns before any step of a pipeline.
    metric : {"AUROC", "R2"}
        Metric of the scores.
    signal : float or None
        Metric of the best possible model on the simulated rows; None for public rows.
    without_noise : float
        Metric of the estimator at an epsilon of 100.
    target : float
        Acceptable loss.
    epsilons : tuple of float
        Values of epsilon, in ascending order.
    scores, errors : tuple of float
        Mean of the metric at each epsilon, and the standard error of that mean.
    coefficient_noise : tuple of float
        Standard deviation of a coefficient between fits at each epsilon, as the root mean square over all coefficients;
        NaN for models without coefficients, and for a single repeat.
    seconds : float
        Median time of a fit.
    megabytes : float
        Peak memory that Python and NumPy allocate during a fit.

    See Also
    --------
    rehearse : Run a rehearsal.
    """

    estimator: str
    n: int
    n_columns: int
    metric: str
    signal: float | None
    without_noise: float
    target: float
    epsilons: tuple[float, ...]
    scores: tuple[float, ...]
    errors: tuple[float, ...]
    coefficient_noise: tuple[float, ...]
    seconds: float
    megabytes: float

    @property
    def losses(self) -> tuple[float, ...]:
        """Loss of the metric due to noise at each epsilon.

        Returns
        -------
        losses : tuple of float
            Difference to the metric at an epsilon of 100.
        """
        return tuple(self.without_noise - score for score in self.scores)

    @property
    def epsilon(self) -> float | None:
        """Smallest epsilon such that the loss is at most `target` at this and all larger values.

        Returns
        -------
        epsilon : float or None
            One of `epsilons`; None if the loss at the largest one exceeds `target`.
        """
        enough = None
        for epsilon, loss in zip(reversed(self.epsilons), reversed(self.losses), strict=True):
            if loss > self.target:
                break
            enough = epsilon
        return enough

    def to_frame(self) -> Any:
        """Return a data frame with one row for each epsilon.

        Returns
        -------
        frame : pandas.DataFrame
            Columns score, loss, error and coefficient_noise.
        """
        import pandas as pd

        names = ("score", "loss", "error", "coefficient_noise")
        columns = (self.scores, self.losses, self.errors, self.coefficient_noise)
        return pd.DataFrame(dict(zip(names, columns, strict=True)), index=pd.Index(self.epsilons, name="epsilon"))

    def __str__(self) -> str:
        header, *rows = self._table()
        lines = ["  ".join(f"{cell:>10}" for cell in row) for row in (header, *rows)]
        return "\n".join([self._headline(), *lines, *self._remarks()])

    def _repr_html_(self) -> str:
        header, *rows = self._table()
        remarks = "".join(f"<p>{escaped(line)}</p>" for line in self._remarks())
        return f"<p>{escaped(self._headline())}</p>{html_table(header, rows)}{remarks}"

    def _headline(self) -> str:
        rows = "public rows" if self.signal is None else f"simulated rows (best possible: {self.signal:.3g})"
        return f"{self.estimator}, {self.n} rows, {self.n_columns} columns: {self.metric} on {rows}"

    def _table(self) -> list[list[str]]:
        found = zip(self.epsilons, self.scores, self.losses, self.errors, self.coefficient_noise, strict=True)
        with_noise = not np.isnan(self.coefficient_noise).any()
        rows = [
            [f"{epsilon:g}", *(f"{value:.4f}" for value in values), *([f"{noise:.3g}"] if with_noise else [])]
            for epsilon, *values, noise in found
        ]
        return [["epsilon", "score", "loss", "std error", *(["coef noise"] if with_noise else [])], *rows]

    def _remarks(self) -> list[str]:
        found = self.epsilon
        told = f"at epsilon {found:g} and above" if found is not None else "at none of these epsilons"
        remarks = [
            f"Score without noise: {self.without_noise:.4f}. The loss is at most {self.target:g} {told}.",
            f"A fit takes {self.seconds:.2g} s and {self.megabytes:.0f} MB. No budget was consumed.",
        ]
        if self.signal is not None and self.metric != "R2":
            remarks.append(
                "The simulated loss was accurate within 0.02 on four census and credit tables with class prevalences "
                "of 20% or more. For a rare class with skewed columns the true loss was 3 to 5 times as large. Use "
                "public records instead of a schema in this case."
            )
        return remarks


@without_removed
def rehearse(
    estimator: Any,
    schema_or_shape: TableSchema | Mapping[str, Any] | int | tuple[Any, ...],
    *,
    n: int,
    epsilons: Sequence[float],
    target: float | None = None,
    signal: float | None = None,
    class_prevalences: Sequence[float] | None = None,
    n_repeats: int = 3,
    random_state: int = 0,
) -> Rehearsal:
    """Simulate private fits at several values of epsilon, from public numbers alone.

    The result shows how large `n` and epsilon must be for a given model, before any private row is read. It draws a
    table with the columns of the schema and a target of strength `signal`. It fits the estimator to `n` rows at each
    epsilon, and at an epsilon of 100 as the reference, and computes the scores on 10,000 other rows. No budget is
    consumed. See ``docs/epsilon.md``.

    Parameters
    ----------
    estimator : private estimator or pipeline
        Classifier or regressor with its intended parameters. It is cloned; its budget, accountant and seed are ignored.
    schema_or_shape : TableSchema, mapping, int, shape, or (X, y)
        One of the following: the schema of the simulated table; the number of numeric columns in [-1, 1], or a shape
        whose last entry is that number; or public rows, a quarter of which are test rows, while `n` training rows are
        drawn from the others.
    n : int
        Public number of training rows.
    epsilons : sequence of float
        Values of epsilon.
    target : float or None, default=None
        Acceptable loss, in units of the score. None is 0.01.
    signal : float or None, default=None
        Score of the best possible model on the simulated rows: for classifiers the ROC AUC (averaged over one class
        against the others), between 0.5 and 1, with default 0.8; for regressors R^2, between 0 and 1, with default 0.5.
        Not allowed with public rows.
    class_prevalences : sequence of float or None, default=None
        Public class prevalences, in the order of the parameter `classes` of the estimator (0 and 1 if it has none). If
        None, they are equal. Not allowed with public rows.
    n_repeats : int, default=3
        Number of fits at each epsilon, with independent noise.
    random_state : int, default=0
        Seed of the simulated rows and the noise, which are not private.

    Returns
    -------
    rehearsal : Rehearsal
        Scores, losses, and the smallest sufficient epsilon. Print it for a table.

    Raises
    ------
    TypeError
        `estimator` is not private, or neither a classifier nor a regressor.
    ValueError
        A parameter is invalid.
    ImportError
        pandas is not installed, which a schema requires.

    Warns
    -----
    PrivacyLeakWarning
        Rows were passed, which must be public. An error under ``config_context(on_leak="raise")``.

    Notes
    -----
    The loss on real rows differs from the simulated loss. On three census and credit tables, the difference was below
    0.01 ROC AUC for a linear model at epsilons of 0.1 and above; random trees lost up to 0.02 more at 0.1, and 0.01
    more at 0.5 (benchmarks/README.md). For a rare class with skewed columns, the loss was 3 to 5 times as large as
    simulated. Use public records in this case.

    Time and memory are those of a fit on this machine. For models with ``coef_``, the noise of a coefficient is its
    standard deviation between fits to the same rows.

    Examples
    --------
    >>> import skdp
    >>> model = skdp.DPLogisticRegression(data_norm=2.0, classes=[0, 1])
    >>> rehearsal = skdp.rehearse(model, 4, n=2000, epsilons=[0.01, 10.0])
    >>> rehearsal.epsilon
    10.0
    """
    if isinstance(estimator, type) or not hasattr(type(estimator), "_private_parts"):
        raise TypeError(f"`estimator` must be a private estimator such as a tabular_pipeline, got {show(estimator)}.")
    if not (is_classifier(estimator) or is_regressor(estimator)):
        raise TypeError(f"`estimator` must be a classifier or a regressor, got {type(estimator).__name__}.")
    budgets = sorted({check_real("epsilons", each, above=0, constraint="numbers above 0") for each in epsilons})
    if not budgets:
        raise ValueError("`epsilons` must contain at least one number above 0, such as [0.1, 1.0].")
    n = check_count("n", n, at_least=2, constraint="an integer of at least 2, the public number of rows")
    n_repeats = check_count("n_repeats", n_repeats, constraint="a positive integer")
    metric = "AUROC" if is_classifier(estimator) else "R2"
    most_lost = check_real(
        "target", 0.01 if target is None else target, above=0, constraint="a number above 0, such as 0.01"
    )
    rng = np.random.default_rng(random_state)
    given: Any = schema_or_shape
    if isinstance(given, tuple) and len(given) in (1, 2) and all(isinstance(size, numbers.Integral) for size in given):
        given = given[-1]  # the number of columns, of a shape
    if isinstance(given, tuple):
        stage, signal = _public_rows(given, n, rng), None
    else:
        least, usual = (0.5, 0.8) if metric == "AUROC" else (0.0, 0.5)
        stated = usual if signal is None else signal
        signal = check_real("signal", stated, above=least, below=1, constraint=f"a number in ({least:g}, 1)")
        stage = _made_up_rows(estimator, given, n, signal, class_prevalences, rng)
    return _play(estimator, stage, metric, signal, most_lost, budgets, n_repeats, rng)


class _Stage(NamedTuple):
    """Training rows and test rows, which are not private."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


def _public_rows(given: tuple[Any, Any], n: int, rng: np.random.Generator) -> _Stage:
    if len(given) != 2 or np.ndim(given[1]) != 1:
        raise ValueError(
            "`schema_or_shape` must be a schema, a number of columns, a shape, or a pair (X, y) of public rows, got "
            "another tuple."
        )
    X, y = indexable(given[0]), np.asarray(given[1])
    if table_shape(X)[0] != len(y):
        raise ValueError(f"`y` must have one target per row of `X` ({table_shape(X)[0]}), got {len(y)}.")
    if len(y) < _FEWEST:
        raise ValueError(f"`X` must have at least {_FEWEST} public rows, got {len(y)}.")
    report_leak(
        "schema_or_shape=(X, y) must be public or simulated rows: their scores are computed without noise and without "
        "a charge. Pass a schema to simulate rows."
    )
    rows = rng.permutation(len(y))
    kept = len(y) // 4
    drawn = rng.choice(rows[kept:], n, replace=n > len(y) - kept)
    return _Stage(take_rows(X, drawn), y[drawn], take_rows(X, rows[:kept]), y[rows[:kept]])


def _made_up_rows(
    estimator: Any, described: Any, n: int, signal: float, class_prevalences: Any, rng: np.random.Generator
) -> _Stage:
    """Simulated rows with the columns of a schema, with labels or targets for the estimator."""
    if isinstance(described, numbers.Integral):
        described = check_count(
            "schema_or_shape", described, constraint="a schema, or a positive integer (the number of columns)"
        )
    else:
        described = TableSchema(described)
    if is_classifier(estimator):
        labels = _parameter(estimator, "classes", [0, 1])
        shares = np.full(len(labels), 1.0 / len(labels))
        if class_prevalences is not None:
            shares = np.asarray(class_prevalences, dtype=np.float64)
        if shares.shape != (len(labels),) or not (shares > 0.0).all() or not abs(shares.sum() - 1.0) < 1e-6:
            raise ValueError(
                f"`class_prevalences` must contain {len(labels)} numbers above 0 with sum 1, one per class, got "
                f"{class_prevalences!r}."
            )
        X, scores = draw_rows(described, n + _TEST_ROWS, len(labels) - 1, rng)
        y = np.asarray(labels)[draw_classes(scores, shares, signal, rng)]
    else:
        low, high = _parameter(estimator, "y_bounds", (-_SPREAD, _SPREAD))
        X, scores = draw_rows(described, n + _TEST_ROWS, 1, rng)
        # A mean of 0 and a variance of 1, of which the rows explain the fraction `signal`.
        drawn = math.sqrt(signal) * scores[0] + math.sqrt(1.0 - signal) * rng.normal(size=scores.shape[1])
        y = np.clip(0.5 * (low + high) + 0.5 * (high - low) / _SPREAD * drawn, low, high)
    fitted, held = np.arange(n), np.arange(n, n + _TEST_ROWS)
    return _Stage(take_rows(X, fitted), y[fitted], take_rows(X, held), y[held])


def _parameter(estimator: Any, name: str, default: Any) -> Any:
    """The value of a parameter of the estimator or of one of its parts, if it is set."""
    found = estimator.get_params(deep=True)
    values = (value for key, value in found.items() if key.rpartition("__")[2] == name and value is not None)
    return next(values, default)


def _play(
    estimator: Any, stage: _Stage, metric: str, signal: float | None, target: float, budgets: list[float],
    n_repeats: int, rng: np.random.Generator,
) -> Rehearsal:  # fmt: skip
    """Fit at each budget, and collect the results."""
    started = not tracemalloc.is_tracing()
    if started:
        tracemalloc.start()
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    try:
        whole = _fitted(estimator, 100.0, stage, rng)[0]  # noise is negligible at this epsilon
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        if started:
            tracemalloc.stop()
    # Then fits at each budget, with their mean loss and standard error.
    fits = [[_fitted(estimator, epsilon, stage, rng) for _ in range(n_repeats)] for epsilon in budgets]
    scores = np.array([[_score(model, stage, metric) for model, _ in row] for row in fits])
    spread = scores.std(axis=1, ddof=1) if n_repeats > 1 else np.full(len(fits), np.nan)
    return Rehearsal(
        estimator=type(last_step(estimator)).__name__,
        n=len(stage.y),
        n_columns=table_shape(stage.X)[1],
        metric=metric,
        signal=signal,
        without_noise=_score(whole, stage, metric),
        target=target,
        epsilons=tuple(budgets),
        scores=tuple(scores.mean(axis=1).tolist()),
        errors=tuple((spread / np.sqrt(n_repeats)).tolist()),
        coefficient_noise=tuple(_coefficient_noise([model for model, _ in row]) for row in fits),
        seconds=float(np.median([seconds for row in fits for _, seconds in row])),
        megabytes=peak / 1e6,
    )


def _fitted(estimator: Any, epsilon: float, stage: _Stage, rng: np.random.Generator) -> tuple[Any, float]:
    """A clone fitted at this budget, without an accountant, and the time in seconds."""
    made = clone(estimator)
    own = made.get_params(deep=False)
    made.set_params(epsilon=epsilon, **({"noise_multiplier": None} if "noise_multiplier" in own else {}))
    parts = made.get_params(deep=True)
    free: dict[str, None] = {}
    seeds: dict[str, int] = {}
    for key in parts:
        prefix, _, name = key.rpartition("__")
        if name == "accountant":
            free[key] = None
        elif name == "random_state" and is_private(parts.get(prefix, made)):
            seeds[key] = int(rng.integers(2**31))
    made.set_params(**free, **seeds)
    with config_context(), silence():  # the rows are not private
        start = time.perf_counter()
        made.fit(stage.X, stage.y)
        return made, time.perf_counter() - start


def _score(model: Any, stage: _Stage, metric: str) -> float:
    with silence():
        if metric == "R2":
            return float(r2_score(stage.y_test, model.predict(stage.X_test)))
        chances = model.predict_proba(stage.X_test)
        if chances.shape[1] == 2:
            return float(roc_auc_score(stage.y_test == model.classes_[1], chances[:, 1]))
        return float(roc_auc_score(stage.y_test, chances, multi_class="ovr", labels=model.classes_))


def _coefficient_noise(models: list[Any]) -> float:
    """Root mean square of the standard deviations of all coefficients between models; NaN without coefficients."""
    last = [last_step(model) for model in models]
    if len(last) < 2 or not all(hasattr(model, "coef_") for model in last):
        return float("nan")
    coefficients = np.array([np.ravel(model.coef_) for model in last])
    return float(np.sqrt(coefficients.var(axis=0, ddof=1).mean()))
