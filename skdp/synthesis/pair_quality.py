"""`evaluate_synthesis`: a private estimate of the distance between a synthetic table and the private one."""

from __future__ import annotations

import itertools
import math
from dataclasses import KW_ONLY
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import stats

from skdp._checks.numbers import format_names
from skdp._checks.parameters import check_count, check_real, without_removed
from skdp._checks.rows import check_schema
from skdp._checks.table import Table
from skdp._checks.weights import exactly_summable
from skdp.accounting.ledger.report import escaped, html_table
from skdp.base.estimates import Estimate
from skdp.base.estimator import PrivateEstimator, with_parameters
from skdp.base.fit import Fit, begin
from skdp.mechanisms.bounded_sum import clip_groups
from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.preprocessing.raw_columns import match_columns, read_schema
from skdp.synthesis.marginals.contingency_tables import ColumnSet, count
from skdp.synthesis.marginals.noisy_tables import scores, sensitivity
from skdp.synthesis.marginals.table_form import TableForm, form_of


class ComparedRows(NamedTuple):
    """Private rows as levels of columns, and the public facts about these."""

    shape: tuple[int, int]
    form: TableForm
    codes: list[np.ndarray]


@with_parameters
class SynthesisEvaluation(PrivateEstimator):
    """Private estimate of the distance between a synthetic table and the private one. Created by `evaluate_synthesis`.

    Constructor parameters are public, arguments of ``fit`` are private.

    Parameters
    ----------
    synthetic : array-like or frame of shape (n_synthetic, n_features)
        Public rows with the columns of the private ones, at least one row.
    schema : TableSchema or mapping
        Public schema of all columns, complete.
    n_bins : int, default=16
        Number of bins of a numeric or date column without edges.
    level : float, default=0.95
        Confidence level of the intervals for the distance to these rows.
    epsilon : float or Risk, default=0.1
        Privacy budget of one ``fit``, for all distances together. A number, or a bound on membership-inference risk
        such as ``skdp.Risk(advantage=0.1)`` (``docs/membership_inference.md``).
    delta : float or "auto", default="auto"
        The delta of the (epsilon, delta) guarantee; it must be well below 1/n, where n is the public number of rows.
        "auto" uses the delta of the accountant if it has one. Otherwise it is 1e-5 for at most 10,000 rows and 1/(10n),
        rounded down to a power of ten, for more.
    adjacency : {"zero_out", "replace_one"}, AddRemove or None, default=None
        Neighboring relation: how two neighboring tables differ in one row, or in all rows of one group:

        - "zero_out": it is replaced by a zeroed-out record, which adds nothing to any sum. The number of rows is
          public.
        - "replace_one": it is replaced by another one. The number of rows is public.
        - ``skdp.AddRemove(n_public=10_000)``: it is added or removed. The number of rows is private, and every rule
          uses `n_public`, a public number near it.

        None uses the relation of `accountant`, otherwise "zero_out".
    accountant : PrivacyAccountant, str, path-like or None, default=None
        Accountant that records the privacy cost of each fit, before anything is learned from the rows, and rejects a
        fit that exceeds its budget. A path refers to an existing budget file (see ``python -m skdp.accounting create``)
        and is made absolute.
    random_state : int, RandomState or Generator instance or None, default=None
        Source of the noise. None draws a fresh secret key from the operating system. Any other value makes the fit
        reproducible and issues a `PrivacyLeakWarning`, because the guarantee does not hold against anyone who knows the
        value.

    Attributes
    ----------
    error_ : Estimate
        Mean total variation distance of the two-way marginals, over all pairs of columns.
    pairs_ : dict of (str, str) to Estimate
        Total variation distance of the two-way marginal of each pair.
    chance_ : float
        Approximate expected mean distance if both tables were samples of the same distribution.
    epsilon_ : float
        Epsilon of all distances together at `delta_`.
    delta_ : float
        Delta at which `epsilon_` is computed.
    privacy_event_ : DpEvent
        Event of the release.
    privacy_unit_ : {"row", "group"}
        Privacy unit.

    Notes
    -----
    **Guarantees.** One row, or one group, changes all distances together by at most the sensitivity of the release, and
    all results are functions of the noisy distances and of public numbers.

    Proof. The distance of a pair is the sum over its cells of the absolute difference between the count of private
    rows and the expected count by the synthetic table, which is public. ``noisy_tables.sensitivity`` bounds the change
    of all of them by one row. Weights of the rows of a group sum to at most 1, so it changes no more than a row does.
    """

    noise_multiplier = None

    synthetic: Any
    schema: Any
    _: KW_ONLY
    n_bins: int = 16
    level: float = 0.95
    epsilon: Any = 0.1
    delta: float | str = "auto"
    adjacency: Any = None
    accountant: Any = None
    random_state: Any = None

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Charge the accountant and release the distances. See `evaluate_synthesis`.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Private rows.
        y : None
            Ignored: a label is a column.
        groups : array-like of shape (n_samples,), str or None, default=None
            Private group identifiers of the rows.

        Returns
        -------
        self : object
            The evaluation.
        """
        fit = begin(self, X, groups)
        model = fit.model
        check_count("n_bins", model.n_bins, constraint="a positive integer, such as 16")
        check_real("level", model.level, above=0, below=1, constraint="a number in (0, 1), such as 0.95")
        if not read_schema(model.schema, "such as schema_ of the generator").is_complete:
            raise ValueError("`schema` must be complete here. Pass `schema_` of the generator.")
        made = model._read(model.synthetic)
        fit.plan()

        rows = fit.read_rows(_read_rows, made=made)
        fit.charge()
        return fit.publish(**fit.learn(model._learn, fit, rows, made))

    def _read(self, X: Any) -> ComparedRows:
        """Return a table as levels of the schema's columns, at least two."""
        table = Table(X, self)
        schema = read_schema(self.schema, "such as schema_ of the generator")
        form = form_of(table, match_columns(schema, table), int(self.n_bins), {})
        if len(form.columns) < 2:
            raise ValueError("`schema` must have at least 2 columns.")
        return ComparedRows(table.shape, form, form.read(table))

    def _learn(self, fit: Fit, rows: ComparedRows, made: ComparedRows) -> dict[str, Any]:
        """Release the distances of all pairs of columns at once, and return the attributes."""
        n, m = float(fit.n), float(made.shape[0])
        levels = [column.n_levels for column in made.form.columns]
        pairs: list[ColumnSet] = list(itertools.combinations(range(len(levels)), 2))
        weights = None
        if fit.units is not None:
            weights = exactly_summable(clip_groups(fit.units, np.ones(rows.shape[0]), 1.0))

        def expected(pair: ColumnSet) -> np.ndarray:
            return count(made.codes, pair, levels) * (n / m)

        exact = scores(rows.codes, pairs, levels, expected, weights)
        mechanism = GaussianMechanism(fit.noise_multiplier, sensitivity(len(pairs)))
        noisy = mechanism.release(exact, fit.spawn("pairs")) / (2.0 * n)
        deviation = mechanism.standard_deviation / (2.0 * n)
        names = [(rows.form.names[i], rows.form.names[j]) for i, j in pairs]
        estimates = [self._estimate(distance, deviation) for distance in noisy.tolist()]
        return {
            "pairs_": dict(zip(names, estimates, strict=True)),
            "error_": self._estimate(float(noisy.mean()), deviation / math.sqrt(len(pairs))),
            "chance_": float(np.mean([_chance(expected(pair) / n, n, m) for pair in pairs])),
        }

    def _estimate(self, value: float, error: float) -> Estimate:
        reach = float(stats.norm.isf((1.0 - float(self.level)) / 2.0))
        low, value, high = np.clip([value - reach * error, value, value + reach * error], 0.0, 1.0).tolist()
        return Estimate(value, low, high, error, error)

    # --- output ---

    def worst(self, n_pairs: int = 5) -> dict[tuple[str, str], Estimate]:
        """Return the pairs with the largest noisy distances in descending order, with separate intervals.

        Parameters
        ----------
        n_pairs : int, default=5
            Number of pairs.

        Returns
        -------
        worst : dict of (str, str) to Estimate
            Their total variation distances.
        """
        order = sorted(self.pairs_, key=lambda pair: -self.pairs_[pair].value)
        return {pair: self.pairs_[pair] for pair in order[:n_pairs]}

    def _lines(self) -> list[tuple[str, str]]:
        found = [("mean over pairs", str(self.error_)), ("expected by chance", f"{self.chance_:.4g}")]
        return found + [(", ".join(pair), str(each)) for pair, each in self.worst().items()]

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        if "pairs_" not in self.__dict__:
            return super().__repr__(N_CHAR_MAX)
        head = f"Total variation distance, {self.level:.0%} intervals for these rows, epsilon={self.epsilon_:.6g}"
        return "\n".join([head, *(f"{name:30} {shown}" for name, shown in self._lines())])

    def _repr_html_(self) -> Any:
        if "pairs_" not in self.__dict__:
            return f"<pre>{escaped(repr(self))}</pre>"
        head = "", f"total variation distance, {self.level:.0%} interval for these rows"
        cost = f"\u03b5 = {self.epsilon_:.4g} at \u03b4 = {self.delta_:g} for one {self.privacy_unit_}"
        return html_table(head, self._lines(), cost)


def _read_rows(model: SynthesisEvaluation, X: Any, *, reset: bool, made: ComparedRows) -> ComparedRows:
    """Return the private table, which must have the columns of the synthetic one."""
    rows = model._read(X)
    if rows.form.names != made.form.names:
        raise ValueError(
            f"`X` must have the columns of the synthetic table in the same order, {format_names(made.form.names)}."
        )
    check_schema(model, X, reset=reset)
    return rows


def _chance(shares: np.ndarray, n: float, m: float) -> float:
    """Return the approximate mean distance between two samples of n and of m rows of one distribution."""
    return float(np.sqrt(2.0 / math.pi * shares * (1.0 - shares) * (1.0 / n + 1.0 / m)).sum()) / 2.0


@without_removed
def evaluate_synthesis(
    X: Any,
    synthetic: Any,
    schema: Any,
    *,
    epsilon: Any = 0.1,
    delta: float | str = "auto",
    groups: Any = None,
    n_bins: int = 16,
    level: float = 0.95,
    adjacency: Any = None,
    accountant: Any = None,
    random_state: Any = None,
) -> SynthesisEvaluation:
    """Estimate the distance between a synthetic table and the private one with differential privacy.

    For each pair of columns, the function releases the total variation distance between the two-way marginals of both
    tables, with noise. All pairs together have one privacy cost. The result can be published with the synthetic table.
    See ``docs/synthetic_data.md``.

    Parameters
    ----------
    X : array-like or frame of shape (n_samples, n_features)
        Private rows, with the label as a column.
    synthetic : array-like or frame of shape (n_synthetic, n_features)
        Public rows with the same columns: a result of ``sample``, with the labels as a column.
    schema : TableSchema or mapping
        Complete public schema of all columns, such as ``schema_`` of the generator.
    epsilon : float or Risk, default=0.1
        Privacy budget of all distances together, in addition to that of the generator. A number, or a bound on
        membership-inference risk such as ``skdp.Risk(advantage=0.1)`` (``docs/membership_inference.md``).
    delta : float or "auto", default="auto"
        The delta of the (epsilon, delta) guarantee, as for `DPMarginalSynthesizer`.
    groups : array-like of shape (n_samples,), str or None, default=None
        Private group identifier of each row, or the name of a column of `X`, which is then not compared. If set, the
        guarantee is for all rows of one group, otherwise for one row. Each group has a weight of 1, shared by its rows.
    n_bins : int, default=16
        Number of bins of a numeric or date column without edges.
    level : float, default=0.95
        Confidence level of the intervals for the distance to these rows. The coverage is exact before clipping to [0,
        1].
    adjacency : {"zero_out", "replace_one"}, AddRemove or None, default=None
        Neighboring relation, as for `DPMarginalSynthesizer`.
    accountant : PrivacyAccountant, str, path-like or None, default=None
        Accountant to which the release is charged before it reads a row: that of the generator.
    random_state : int, RandomState or Generator instance or None, default=None
        Source of the noise. None draws a fresh secret key from the operating system. Any other value makes the result
        reproducible and issues a `PrivacyLeakWarning`.

    Returns
    -------
    quality : SynthesisEvaluation
        Distances with intervals, as text and as HTML.

    Raises
    ------
    ValueError
        A parameter, the schema or a table is invalid. No budget was consumed.
    BudgetExceededError
        The budget of the accountant does not permit the release. No budget was consumed.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.synthesis import DPMarginalSynthesizer, evaluate_synthesis
    >>> X = np.random.default_rng(0).integers(0, 3, (5000, 4))
    >>> model = DPMarginalSynthesizer({f"x{j}": [0, 1, 2] for j in range(4)}, epsilon=1.0).fit(X)
    >>> quality = evaluate_synthesis(X, model.sample(5000), model.schema_, epsilon=0.5)
    >>> round(quality.error_.value, 1), round(quality.epsilon_, 1)
    (0.0, 0.5)
    """
    found = SynthesisEvaluation(
        synthetic, schema, n_bins=n_bins, level=level, epsilon=epsilon, delta=delta, adjacency=adjacency,
        accountant=accountant, random_state=random_state,
    )  # fmt: skip
    return found.fit(X, groups=groups)
