"""Synthetic rows and tables of a mixture that was fitted to noisy marginals, and estimates on several of them.

All of this is post-processing, at no additional privacy cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from sklearn.utils.validation import check_is_fitted

from skdp._checks.numbers import days_of, format_names, key_of, number_of
from skdp._checks.parameters import check_count, check_real, show, without_removed
from skdp.mechanisms.streams import SecretStream
from skdp.preprocessing.schema.table_schema import TableSchema
from skdp.synthesis.generator import PrivateGenerator, generator_of
from skdp.synthesis.marginals.column_levels import Ends, Exclusion, LevelColumn
from skdp.synthesis.marginals.contingency_tables import ColumnSet, Interaction
from skdp.synthesis.marginals.denoising import TargetTables, targets_of
from skdp.synthesis.marginals.noisy_tables import LevelRows, Measurement, ModelTerms, iterations
from skdp.synthesis.marginals.product_mixture import Mixture, draw_levels, fit_mixture
from skdp.synthesis.marginals.table_form import TableForm


class Redrawing(NamedTuple):
    """The measurement of the rows of a fit, and its releases.

    Attributes
    ----------
    measurement : Measurement
    terms : ModelTerms
    noisy : mapping of tuple of int to Interaction
    estimates_label_shares : bool
        Whether labels of samples are drawn by noisy class prevalences.

    Notes
    -----
    **Guarantees.** It contains public numbers and releases alone, so its methods are post-processing.

    It is a parametric bootstrap: as many rows as the fit had are drawn from a model, and are measured in the same way,
    with noise of the same size. The result is as far from the model as the model is from the truth, by sampling and
    noise together, if the model holds. Tables are not shrunk: if noise hides an interaction, shrinking removes it in
    each of them, and the spread with it.
    """

    measurement: Measurement
    terms: ModelTerms
    noisy: Mapping[ColumnSet, Interaction]
    estimates_label_shares: bool

    def model_of(self, noisy: Mapping[ColumnSet, Interaction], rng: np.random.Generator) -> Mixture:
        """Return a model of noisy tables, which are not shrunk: as if they had no noise."""
        terms, how = self.terms, self.measurement
        exact = {columns: each._replace(deviation=0.0) for columns, each in noisy.items()}
        by_rule = iterations(how.n / how.noise_of_rows, terms.with_triples) if terms.n_iter is None else terms.n_iter
        targets = targets_of(terms.levels, exact, terms.exclusions)
        # A fit that ends early shrinks the interactions.
        return fit_mixture(terms.levels, targets, terms.n_components, max(by_rule, 1000), rng)

    def measure_again(self, components: Any, prevalences: np.ndarray | None, rng: np.random.Generator) -> TargetTables:
        """Return noisy tables of rows that are drawn from a model.

        Parameters
        ----------
        components : ndarray of shape (n_components, sum of levels)
            Of the model.
        prevalences : ndarray of shape (n_classes,) or None
            Of the classes among these rows; None without labels.
        rng : numpy.random.Generator
        """
        n = round(self.measurement.n)
        labels = None if prevalences is None else rng.choice(len(prevalences), n, p=prevalences)
        rows = Mixture(tuple(self.terms.levels), components).draw(n, rng, self.terms.exclusions, labels)
        codes = LevelRows([np.ascontiguousarray(column) for column in rows.T])
        # A model that selects no pairs is of no use here.
        terms = self.terms if self.measurement.n_rounds else self.terms._replace(n_iter=1)
        return self.measurement.measure(codes, terms, SecretStream(rng.bytes(32)))[0]


class SampledTables(PrivateGenerator):
    """Published attributes of `DPMarginalSynthesizer`, and samples from them.

    Notes
    -----
    Nothing here reads a private row: a subclass fits the attributes below, all of them functions of noisy releases and
    of public quantities.
    """

    within_bins: Any
    n_samples_: float
    schema_: TableSchema
    components_: np.ndarray
    marginals_: list[np.ndarray]
    _fitted_form: TableForm
    _fitted_levels: tuple[int, ...]
    _fitted_exclusions: tuple[Exclusion, ...]
    _fitted_redrawing: Redrawing | None

    def _publish(
        self, form: TableForm, impossible: Any, terms: ModelTerms, targets: TargetTables, mixture: Mixture
    ) -> None:
        """Store the fit to a table of this form, with its impossible combinations."""
        self._fitted_form, self._fitted_levels = form, tuple(terms.levels)
        self._fitted_exclusions, self.has_triples_ = tuple(terms.exclusions), terms.with_triples
        names = [*form.names, "y"]
        self.marginals_, self.components_ = targets.ones, mixture.probabilities
        if terms.has_label:
            self.class_prevalences_ = self._chosen_shares(self._estimated_shares())
        self.pairs_ = [(names[i], names[j]) for i, j in targets.pairs]
        self.schema_ = TableSchema({each.block.name: each.block.column for each in form.columns}, impossible=impossible)

    def sample_sets(self, n_sets: int = 20, n_samples: int | None = None, random_state: Any = None) -> Iterator[Any]:
        """Draw several synthetic tables for estimates with valid confidence intervals, at no additional privacy cost.

        Standard errors from a single synthetic table, computed as if its rows were real, are too small: they do not
        include the noise and the sampling of the private rows. Each table of this method comes from its own model,
        fitted to counts that are redrawn with sampling and noise of the same size. The first table comes from a model
        of the noisy counts without shrinkage. `skdp.synthesis.combine_estimates` computes one estimate and an interval
        from the estimates on all tables.

        Parameters
        ----------
        n_sets : int, default=20
            Number of tables in addition to the first one, 2 or more.
        n_samples : int or None, default=None
            Number of rows of each table; the first has `n_sets` times as many. If None, the public number of rows of
            the fit.
        random_state : int, RandomState instance, Generator instance or None, default=None
            Source of the draws, as for ``sample``.

        Returns
        -------
        sets : iterator
            Iterator over `n_sets` + 1 tables in the form of ``sample``, each created on demand, which fits a model.

        Raises
        ------
        ValueError
            A parameter is invalid, or the fit had weights or groups, whose sampling variance is unknown.

        See Also
        --------
        skdp.synthesis.combine_estimates : Estimates and intervals from these tables, with references.
        """
        check_is_fitted(self)
        number = check_count("n_sets", n_sets, at_least=2, constraint="an integer of at least 2, such as 20")
        constraint = "a positive integer, or None for the number of rows of the fit"
        n = round(self.n_samples_) if n_samples is None else check_count("n_samples", n_samples, constraint=constraint)
        how = self._fitted_redrawing
        if how is None:
            raise ValueError(
                "sample_sets does not support fits with weights or groups, whose sampling variance is unknown. Use "
                "sample, or fit without them."
            )
        return copy(self)._sets(how, number, n, generator_of(random_state))  # whatever is fitted meanwhile

    def _sets(self, how: Redrawing, n_sets: int, n: int, rng: np.random.Generator) -> Iterator[Any]:
        labels = self._estimated_shares() if self._fitted_with_labels else None
        self.components_ = how.model_of(how.noisy, rng).probabilities
        yield self._drawn(n_sets * n, rng, balanced=False)  # the rules of combination take rows to be independent
        for _ in range(n_sets):
            other, tables = copy(self), how.measure_again(self.components_, labels, rng)
            other.marginals_, other.components_ = tables.ones, how.model_of(tables.noisy, rng).probabilities
            if labels is not None and how.estimates_label_shares:
                other.class_prevalences_ = other._estimated_shares()
            yield other._drawn(n, rng, balanced=False)

    def _estimated_shares(self) -> np.ndarray:
        shares = self.marginals_[-1]
        return np.asarray(shares / shares.sum())

    @without_removed
    def sample(self, n_samples: int, random_state: Any = None, *, conditions: Mapping[str, Any] | None = None) -> Any:
        """Draw synthetic rows at no additional privacy cost.

        Parameters
        ----------
        n_samples : int
            Number of rows, 0 or more.
        random_state : int, RandomState instance, Generator instance or None, default=None
            Source of the draws. It is independent of the noise of the fit, and can be published.
        conditions : mapping of str to object or None, default=None
            Conditions on all rows: for each column name a cell, or a list of cells; for numbers and dates a number, or
            a pair (low, high) including both ends. None is a missing value. ``"y"`` is the label, if no column has that
            name.

        Returns
        -------
        X : ndarray or frame of shape (n_samples, n_features)
            Synthetic rows.
        y : ndarray of shape (n_samples,)
            Their labels. Returned only if the generator was fitted with labels.

        Raises
        ------
        ValueError
            A parameter is invalid, or a condition is outside of the schema.

        Notes
        -----
        Conditional samples follow the conditional distribution of the fitted model, and so do their labels, by Bayes'
        rule from ``class_prevalences_``.

        The number of rows of each component of the model, and of each level within it, is its expectation, rounded at
        random. The marginals of the sample are therefore closer to those of the model than with independent rows. For
        formulas that require independent rows, use ``sample_sets``.

        Examples
        --------
        >>> import numpy as np
        >>> from skdp.synthesis import DPMarginalSynthesizer
        >>> rng = np.random.default_rng(0)
        >>> age = rng.integers(18, 90, 5000)
        >>> X = np.column_stack([age, age > 65])
        >>> model = DPMarginalSynthesizer({"x0": (18, 90), "x1": [0, 1]}).fit(X)
        >>> old = model.sample(1000, random_state=0, conditions={"x0": (70, 90)})
        >>> int(old[:, 0].min()) >= 70, bool(old[:, 1].mean() > 0.9)
        (True, True)
        """
        check_is_fitted(self)
        n = check_count("n_samples", n_samples, at_least=0, constraint="a nonnegative integer")
        return self._drawn(n, generator_of(random_state), conditions)

    def _drawn(self, n: int, rng: np.random.Generator, conditions: Any = None, balanced: bool = True) -> Any:
        """Return n rows, and their labels if there are any; `balanced` as for `Mixture.draw`."""
        classes = self.classes_.tolist() if self._fitted_with_labels else None
        weights, ends = _read_conditions(conditions or {}, self._fitted_form, self.within_bins, classes)
        n_columns = len(self._fitted_form.columns)
        of_label = weights.pop(n_columns, None)
        mixture, met = Mixture(self._fitted_levels, self.components_).given(weights)
        labels = None
        if classes is not None:
            by_label = mixture.column(n_columns)
            shares = self.class_prevalences_ * (met @ by_label) / np.maximum(by_label.sum(axis=0), 1e-300)
            labels = draw_levels(shares if of_label is None else shares * of_label, n, rng, balanced)
        levels = mixture.draw(n, rng, self._fitted_exclusions, labels, balanced)
        X = self._fitted_form.write(levels, self.within_bins, rng, ends)
        return X if labels is None else (X, self.classes_[levels[:, -1]])


# --- conditions on synthetic rows ---


def _read_conditions(
    given: Any, form: TableForm, within: str, classes: Sequence[Any] | None
) -> tuple[dict[int, np.ndarray], dict[int, Ends]]:
    """Return the conditions of a user, by the position of their column; that of the label is the last.

    The result has the probability of each level to meet the condition, some of them above 0, and the two ends of ranges
    of numbers. Conditions outside of the public schema are rejected: unknown columns and cells, and ranges without a
    number.
    """
    if not isinstance(given, Mapping):
        raise ValueError(f"`conditions` must be a mapping such as {{'age': (30, 40)}}, got {show(given)}.")
    weights_of: dict[int, np.ndarray] = {}
    ends: dict[int, Ends] = {}
    for name, asked in given.items():
        if name in form.names:
            j = form.names.index(name)
            column = form.columns[j]
            is_gap = not isinstance(asked, tuple | list) and _is_gap(column, key_of(asked))
            if column.block.is_line and not is_gap:
                ends[j] = _ends(column, asked)
                weights = column.shares_within(ends[j], within, form.is_whole(j))
            else:
                weights = _listed(name, asked, column.keys if not column.block.is_line else [], column)
        elif name == "y" and classes is not None:
            j, weights = len(form.names), _listed(name, asked, [key_of(each) for each in classes])
        else:
            raise ValueError(f"`conditions` must refer to columns of the fit, got {format_names([name])}.")
        if not weights.any():
            raise ValueError(f"conditions[{name!r}] must be a range that contains a number of its bins. Widen it.")
        weights_of[j] = weights
    return weights_of, ends


def _is_gap(column: LevelColumn, key: str | None) -> bool:
    return key is None or key in column.block.column.missing_values


def _ends(column: LevelColumn, asked: Any) -> Ends:
    """Return the two ends of a range of numbers, or of days since 1970; one number is a range too."""
    pair = asked if isinstance(asked, tuple | list) else (asked, asked)
    read = days_of if column.block.column.kind == "date" else number_of
    ends = [read(end) for end in pair]
    if len(ends) != 2 or not ends[0] <= ends[1]:
        raise ValueError(
            f"conditions[{column.block.name!r}] must be a pair (low, high) for a {column.block.column.kind}, got "
            f"{show(asked)}."
        )
    return ends[0], ends[1]


def _listed(name: str, asked: Any, keys: Sequence[str | None], column: LevelColumn | None = None) -> np.ndarray:
    """Return ones for the levels of the cells that are asked for, one or a list of them, and zeros for all others."""
    cells = asked if isinstance(asked, list | tuple | set | frozenset | np.ndarray) else [asked]
    weights = np.zeros(len(keys) if column is None else column.n_levels)
    for cell in cells:
        key = key_of(cell)
        if column is not None and column.has_gaps and _is_gap(column, key):
            weights[-1] = 1.0
        elif key is not None and key in keys:
            weights[keys.index(key)] = 1.0
        else:
            raise ValueError(f"conditions[{name!r}] must be cells of the schema, got {show(cell)}.")
    if not len(cells):
        raise ValueError(f"conditions[{name!r}] must contain at least one cell, or be removed.")
    return weights


# --- combined estimates from several synthetic tables ---


class CombinedEstimates(NamedTuple):
    """Estimates from synthetic tables, with intervals for the population of the private rows.

    Parameters
    ----------
    estimate : ndarray
        Bias-corrected estimate.
    std_err : ndarray
        Standard error due to sampling, noise and synthesis.
    low, high : ndarray
        Ends of the intervals.
    df : ndarray
        Degrees of freedom of `std_err`.
    """

    estimate: np.ndarray
    std_err: np.ndarray
    low: np.ndarray
    high: np.ndarray
    df: np.ndarray


def combine_estimates(estimates: Any, variances: Any, *, level: float = 0.95) -> CombinedEstimates:
    """Combine estimates on the tables of ``sample_sets``, at no additional privacy cost.

    Parameters
    ----------
    estimates : array-like of shape (n_sets + 1,) or (n_sets + 1, k)
        Estimate on each table, such as a mean or regression coefficients, in the order of ``sample_sets``: that of the
        fitted model is the first.
    variances : array-like of the shape of `estimates`
        Squared standard errors of `estimates`, computed as if the rows of each table were real.
    level : float, default=0.95
        Confidence level of the intervals.

    Returns
    -------
    combined : CombinedEstimates
        Arrays of shape () or (k,).

    Raises
    ------
    ValueError
        Shapes do not agree, there are fewer than three tables, or a variance is negative.

    See Also
    --------
    DPMarginalSynthesizer.sample_sets : The tables.

    Notes
    -----
    Let q be the first estimate and u its variance, m the number of the others, a and b their mean and variance, and v
    the mean of their own variances. Their models are approximately as far from the fitted model as the fitted model is
    from the truth. So the estimate is 2 q - a, and its variance is (1 + 1/m) b - v + 4 u + c. Here (1 + 1/m) b - v is
    the variance of Raghunathan, Reiter & Rubin (2003) for fully synthetic tables. It can be too small, and is therefore
    at least v. The term c is the square of the bias a - q, minus its own variance, because the bias correction varies
    with the estimates. The interval is that of Student's t, with (m - 1) times the square of the variance over (1 +
    1/m) b degrees of freedom.

    The estimates are limited by the model of the tables. Interactions of three columns that do not follow from two-way
    marginals are not in it, and numbers are uniform within their bins.

    References
    ----------
    Räisä, Jälkö, Kaski & Honkela (2023), "Noise-aware statistical inference with differentially private synthetic
    data", for tables drawn from the posterior given noisy marginals, which the redrawn tables approximate.

    Raghunathan, Reiter & Rubin (2003), "Multiple imputation for statistical disclosure limitation".

    Examples
    --------
    >>> from skdp.synthesis import combine_estimates
    >>> found = combine_estimates([5.0, 5.1, 4.8, 5.3, 5.0], [0.001, 0.01, 0.01, 0.01, 0.01])
    >>> bool(found.low < found.estimate < found.high), round(float(found.estimate), 2)
    (True, 4.95)
    """
    level = check_real("level", level, above=0, below=1, constraint="a number in (0, 1), such as 0.95")
    given, own = _read_estimates("estimates", estimates), _read_estimates("variances", variances)
    if given.shape != own.shape or given.ndim not in (1, 2) or len(given) < 3:
        raise ValueError(
            f"`estimates` and `variances` must have one entry for each table of sample_sets, at least 3, got shapes "
            f"{given.shape} and {own.shape}."
        )
    if not (own >= 0.0).all():
        raise ValueError("`variances` must be nonnegative squared standard errors.")
    others, m = given[1:], len(given) - 1
    between, within = (1.0 + 1.0 / m) * others.var(axis=0, ddof=1), own[1:].mean(axis=0)
    bias = np.maximum((others.mean(axis=0) - given[0]) ** 2 - others.var(axis=0, ddof=1) / m - own[0], 0.0)
    variance = np.maximum(between - within, within) + 4.0 * own[0] + bias
    with np.errstate(divide="ignore", invalid="ignore"):
        df = np.where(between > 0.0, (m - 1) * (variance / between) ** 2, np.inf)
    estimate, error = 2.0 * given[0] - others.mean(axis=0), np.sqrt(variance)
    reach = stats.t.isf((1.0 - level) / 2.0, df) * error
    return CombinedEstimates(estimate, error, estimate - reach, estimate + reach, df)


def _read_estimates(name: str, given: Any) -> np.ndarray:
    try:
        found = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        found = np.full(0, np.nan)
    if not np.isfinite(found).all() or not found.size:
        raise ValueError(f"`{name}` must be an array of finite numbers, one for each table of sample_sets.")
    return found
