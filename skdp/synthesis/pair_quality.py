"""`evaluate_synthesis`: how far a synthetic table is from the private one, pair by pair, as a paid release."""

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
    """Private rows as levels of columns, and what is public of these."""

    shape: tuple[int, int]
    form: TableForm
    codes: list[np.ndarray]


@with_parameters
class SynthesisEvaluation(PrivateEstimator):
    """How far a synthetic table is from the private one it was made of, as a release. Made by `evaluate_synthesis`.

    Constructor parameters are public, arguments of ``fit`` are private.

    Parameters
    ----------
    synthetic : array-like or frame of shape (n_synthetic, n_features)
        Public rows with the columns of the private ones, one at least.
    schema : TableSchema or mapping
        Public schema of all columns, complete.
    n_bins : int, default=16
        Number of bins of a number or a date without edges.
    level : float, default=0.95
        Probability with which an interval covers the distance to these rows.
    epsilon : float or Risk, default=0.1
        Privacy budget of one ``fit``, for all figures together. A number, or a bound on the risk of membership
        inference such as ``skdp.Risk(advantage=0.1)`` (``docs/membership_inference.md``).
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
        Mean over all pairs of columns of the total variation between their shares of rows in the two tables.
    pairs_ : dict of (str, str) to Estimate
        The total variation of each pair.
    chance_ : float
        About the mean that two tables of these numbers of rows have if both are drawn as the synthetic one is.
    epsilon_ : float
        Price of all figures together at `delta_`.
    delta_ : float
        Delta at which `epsilon_` is computed.
    privacy_event_ : DpEvent
        What was released.
    privacy_unit_ : {"row", "group"}
        What the price is for.

    Notes
    -----
    **Guarantees.** One row, or one unit, changes all distances together by no more than is priced, and everything that
    is shown is a function of the noisy distances and of public numbers.

    Proof. The distance of a pair is the sum over its cells of the absolute difference between the count of private
    rows and that expected by the synthetic table, which is public. `noisy_tables.sensitivity` bounds what a row
    changes of all of them. Weights of the rows of a unit sum to 1 at most, so it changes no more than a row does.
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
        """Charge and release. See `evaluate_synthesis`.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Private rows.
        y : None
            Ignored: a label is a column.
        groups : array-like of shape (n_samples,), str or None, default=None
            Private units of the rows.

        Returns
        -------
        self : object
            With its figures.
        """
        fit = begin(self, X, groups)
        model = fit.model
        check_count("n_bins", model.n_bins, remedy="choose a whole number of bins, such as 16")
        check_real("level", model.level, above=0, below=1, remedy="choose a probability such as 0.95")
        if not read_schema(model.schema, "such as schema_ of the generator").is_complete:
            raise ValueError("schema leaves out bounds or categories, and nothing is bought here: give a complete one.")
        made = model._read(model.synthetic)
        fit.plan()

        rows = fit.read_rows(_read_rows, made=made)
        fit.charge()
        return fit.publish(**fit.learn(model._learn, fit, rows, made))

    def _read(self, X: Any) -> ComparedRows:
        """Return a table as levels of the schema's columns, of which it has two at least."""
        table = Table(X, self)
        schema = read_schema(self.schema, "such as schema_ of the generator")
        form = form_of(table, match_columns(schema, table), int(self.n_bins), {})
        if len(form.columns) < 2:
            raise ValueError("schema has fewer than 2 columns, which have no pairs: give tables with 2 at least.")
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

    # --- forms ---

    def worst(self, n_pairs: int = 5) -> dict[tuple[str, str], Estimate]:
        """Return the pairs of the largest noisy distances, the largest first, each with an interval for it alone.

        Parameters
        ----------
        n_pairs : int, default=5
            How many of them.

        Returns
        -------
        worst : dict of (str, str) to Estimate
            Their total variations.
        """
        order = sorted(self.pairs_, key=lambda pair: -self.pairs_[pair].value)
        return {pair: self.pairs_[pair] for pair in order[:n_pairs]}

    def _lines(self) -> list[tuple[str, str]]:
        found = [("mean of pairs", str(self.error_)), ("by chance alone", f"{self.chance_:.4g}")]
        return found + [(", ".join(pair), str(each)) for pair, each in self.worst().items()]

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        if "pairs_" not in self.__dict__:
            return super().__repr__(N_CHAR_MAX)
        head = f"Total variation, {self.level:.0%} intervals for these rows, epsilon={self.epsilon_:.6g}"
        return "\n".join([head, *(f"{name:30} {shown}" for name, shown in self._lines())])

    def _repr_html_(self) -> Any:
        if "pairs_" not in self.__dict__:
            return f"<pre>{escaped(repr(self))}</pre>"
        head = "", f"total variation, {self.level:.0%} interval for these rows"
        cost = f"\u03b5 = {self.epsilon_:.4g} at \u03b4 = {self.delta_:g} for one {self.privacy_unit_}"
        return html_table(head, self._lines(), cost)


def _read_rows(model: SynthesisEvaluation, X: Any, *, reset: bool, made: ComparedRows) -> ComparedRows:
    """Return the private table, which must have the columns of the synthetic one."""
    rows = model._read(X)
    if rows.form.names != made.form.names:
        raise ValueError(
            f"synthetic has the columns {format_names(made.form.names)}, and X others or in another order: give "
            "tables of the same columns."
        )
    check_schema(model, X, reset=reset)
    return rows


def _chance(shares: np.ndarray, n: float, m: float) -> float:
    """Return about the mean total variation between two tables of n and of m rows with these shares."""
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
    """Measure how far a synthetic table is from the private one, in figures that may be published with it.

    For each pair of columns, half the sum of the absolute differences between the shares of rows in its cells, in the
    private table and in the synthetic one, is released with noise: all pairs together for one price.

    Parameters
    ----------
    X : array-like or frame of shape (n_samples, n_features)
        Private rows, a label among the columns.
    synthetic : array-like or frame of shape (n_synthetic, n_features)
        Public rows with the same columns: what ``sample`` returns, with the labels as a column.
    schema : TableSchema or mapping
        Public schema of all columns, such as ``schema_`` of the generator, complete.
    epsilon : float or Risk, default=0.1
        Privacy budget of all figures together. It is added to that of the generator. A number, or a bound on the risk
        of membership inference such as ``skdp.Risk(advantage=0.1)`` (``docs/membership_inference.md``).
    delta : float or "auto", default="auto"
        Probability with which the guarantee may fail, as for `DPMarginalSynthesizer`.
    groups : array-like of shape (n_samples,), str or None, default=None
        Private label of the unit of each row, or the name of a column of `X`, which is not compared then. The guarantee
        is then for all rows of one label together, else for one row. Each unit has a weight of 1, shared by its rows.
    n_bins : int, default=16
        Number of bins of a number or a date without edges.
    level : float, default=0.95
        Probability with which an interval covers the distance to these rows. That is exact, before it is cut to [0, 1].
    adjacency : {"zero_out", "replace_one"}, AddRemove or None, default=None
        Neighboring relation, as for `DPMarginalSynthesizer`.
    accountant : PrivacyAccountant, str, path-like or None, default=None
        Ledger to which the release is charged before a row is read for it: that of the generator.
    random_state : int, RandomState or Generator instance or None, default=None
        Source of the noise. None draws a fresh secret key from the operating system. Any other value makes the result
        reproducible and issues a `PrivacyLeakWarning`.

    Returns
    -------
    quality : SynthesisEvaluation
        Figures with intervals, as text and as HTML.

    Raises
    ------
    ValueError
        A parameter, the schema or a table is invalid. Nothing was charged.
    BudgetExceededError
        The budget of the accountant does not admit the release. Nothing was charged.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.synthesis import DPMarginalSynthesizer, evaluate_synthesis
    >>> X = np.random.default_rng(0).integers(0, 3, (5000, 4))
    >>> model = DPMarginalSynthesizer({f"x{j}": [0, 1, 2] for j in range(4)}, epsilon=1.0).fit(X)
    >>> found = evaluate_synthesis(X, model.sample(5000), model.schema_, epsilon=0.5)
    >>> found.error_.low <= found.error_.value <= found.error_.high < 0.1, found.epsilon_ <= 0.5
    (True, True)
    """
    found = SynthesisEvaluation(
        synthetic, schema, n_bins=n_bins, level=level, epsilon=epsilon, delta=delta, adjacency=adjacency,
        accountant=accountant, random_state=random_state,
    )  # fmt: skip
    return found.fit(X, groups=groups)
