"""Private synthetic tables from noisy marginals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY
from functools import partial
from typing import Any

import numpy as np

from skdp._checks.parameters import check_bounds, check_choice, check_count, show, without_removed
from skdp._checks.rows import check_schema
from skdp._checks.weights import exactly_summable, weight_of_each
from skdp.accounting import DpEvent
from skdp.base.estimator import with_parameters
from skdp.base.fit import Fit
from skdp.base.private_step import StepPlan
from skdp.mechanisms.streams import SecretStream
from skdp.preprocessing.column_estimates import Remains, note_remains, warn_of_objects
from skdp.preprocessing.histogram_query import event_with
from skdp.synthesis.generator import ClassesAndCodes
from skdp.synthesis.marginals import noisy_columns
from skdp.synthesis.marginals.column_levels import WITHIN_BINS, exclusions_of
from skdp.synthesis.marginals.noisy_tables import LARGEST_REACH, LevelRows, Measurement, event_of, unit_reach
from skdp.synthesis.marginals.sampled_tables import Redrawing, SampledTables
from skdp.synthesis.marginals.table_form import LocalTable


@with_parameters
class DPMarginalSynthesizer(SampledTables):
    """Synthetic tables with differential privacy for each row.

    The counts of all columns and of all pairs of columns are released once, with Gaussian noise; of wide tables, those
    of selected pairs. A mixture of products of categoricals is fitted to what was released, and synthetic rows are
    drawn from it, as many as wanted, in the form of the private table.

    Parameters
    ----------
    schema : TableSchema, mapping or None, default=None
        What is public of each column; a mapping is what `skdp.preprocessing.TableSchema` takes. What it leaves out
        (bounds and bins of numbers and dates, categories) is bought, for a tenth of the budget's mu^2, with a place for
        gaps and for other categories; of types of truth values nothing has to be. Within bounds of numbers without
        edges, bins are estimated where few of equal width would hold nearly all, for a twentieth of mu^2 if nothing is
        left out; not with impossible combinations. In columns that it completes cells
        may be missing where it says so (``"missing_values"``); they are missing in the sample too. Combinations that it
        names as `impossible` are not drawn. If None, only names and types of the columns are public, unless there are
        `bounds`.
    bounds : (float, float), list of (float, float) or None, default=None
        Public bounds of all columns, which are all numbers then, or of each, where there is no schema, as behind a
        private step of a pipeline. Values beyond them are moved to them.
    classes : sequence or None, default=None
        All classes that can occur in `y`. If None, they are read from `y`; this is not covered by the guarantee, and a
        `PrivacyLeakWarning` is issued. Not looked at without labels.
    n_bins : int, default=16
        Number of bins of a number or a date without edges, of equal width on the scale of the schema.
    other : mapping of str to object or None, default=None
        For columns of categories, by name, the cell that represents all that the schema does not list; that of a column
        whose categories are bought is "other". Elsewhere such cells are refused.
    pairs : {"auto", "all", "select"}, default="auto"
        Whether all pairs of columns are measured, or those that are selected by noisy scores. "auto" selects for more
        than 20 columns, or more than 128 levels in one.
    triples : bool or "auto", default="auto"
        Whether pairs of columns are measured within each class as well, which takes labels and all pairs. "auto" does
        where the public size of their noise is small.
    n_components : int or None, default=None
        Components of the mixture, of which at most 200 are fitted together. If None, 400 where pairs are measured
        within each class, and else 200.
    max_iter : int or None, default=None
        Iterations of its fit. If None, a rule in public numbers: the less noise, the more.
    class_prevalences : {"estimate", "uniform"} or sequence of float, default="estimate"
        How labels of samples are drawn: by the noisy counts of the release, all alike, or by public shares, one for
        each class in ascending order.
    within_bins : {"auto", "uniform", "middle"}, default="auto"
        Where in its bin a number or a date comes back. "auto" buys how they lie there, for 2 % of mu^2, where the
        public size of the noise is small, and else is "uniform". Numbers of a type of integers come back whole, and
        dates as days.
    weight_bound : float or None, default=None
        Public upper bound of `sample_weight`. Weights are clipped to it and divided by it. Choose the largest weight
        that can occur, or a value that few weights exceed: the effect of the noise grows with the bound divided by the
        mean weight. None is a bound of 1, and a fit with weights then warns that larger weights are clipped to it.
    epsilon : float, Risk or None, default=1.0
        Privacy budget of one ``fit``, to which the noise is calibrated. A number, or a bound on the risk of membership
        inference such as ``skdp.Risk(advantage=0.1)`` (``docs/membership_inference.md``). Must be None if
        `noise_multiplier` is given.
    delta : float or "auto", default="auto"
        The delta of the (epsilon, delta) guarantee; it must be well below 1/n, where n is the public number of rows.
        "auto" uses the delta of the accountant if it has one. Otherwise it is 1e-5 for at most 10,000 rows and 1/(10n),
        rounded down to a power of ten, for more.
    noise_multiplier : float or None, default=None
        Standard deviation of the noise of a single release, divided by its sensitivity. If None, it is calibrated to
        `epsilon`. Where pairs are selected, the releases share it: the sum of their squared inverses is that of this
        one.
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
        value.  The `random_state` of ``sample`` is another one, and harmless.

    Attributes
    ----------
    schema_ : TableSchema
        Public schema of all columns, with what was bought. As `schema` of another fit it costs nothing.
    classes_ : ndarray of shape (n_classes,)
        Class labels. Defined only if the generator was fitted with labels.
    class_prevalences_ : ndarray of shape (n_classes,)
        Shares by which labels are drawn. Defined only if the generator was fitted with labels.
    marginals_ : list of ndarray
        Noisy probabilities of the levels of each column, and of the classes last if there are any.
    pairs_ : list of (str, str)
        Names of the pairs of columns that were measured; ``"y"`` is the label.
    components_ : ndarray of shape (n_components, sum of levels)
        Probabilities of the levels in each component, one column after the other.
    has_triples_ : bool
        Whether pairs were measured within each class.
    noise_multiplier_ : float
        Noise multiplier of the whole.
    n_samples_ : int
        Public number n of rows.
    n_features_in_ : int
        Number of columns seen during ``fit``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of columns seen during ``fit``. Defined only if all column names of `X` are strings.
    weight_bound_ : float
        Bound by which weights were divided; 1.0 for ``weight_bound=None``.
    epsilon_ : float
        Price of the fit at `delta_`, at most `epsilon`.
    delta_ : float
        Delta at which `epsilon_` is computed.
    adjacency_ : str
        Neighbouring relation for which `epsilon_` holds.
    privacy_unit_ : {"row", "group"}
        What the guarantee is for: one row, or all rows with one label of `groups`.
    privacy_event_ : DpEvent
        Event that `epsilon_` is the price of.

    See Also
    --------
    skdp.preprocessing.TableSchema : What is public of the columns of a table.

    Notes
    -----
    **Guarantees.**

    - ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row, its label included, under `adjacency`, if
      `random_state` is None, and `classes` is given or there are no labels.
    - All that is fitted is a function of noisy releases and of public quantities: parameters, names and types of the
      columns, and the public number of rows. Of categorical types the list of categories is not kept.
    - What the schema leaves out is bought in the same fit: its release is part of `privacy_event_`, and no row is
      refused for what was bought.
    - Weights multiply what a row adds, as numbers in [0, 1]: no weight raises what a row may change.
    - With `groups` all of this holds for all rows of one label together: what they add up to is clipped to a public
      multiple of what one row may add, by which the noise is larger.
    - `accountant` is charged before the rows are counted, and what is refused is refused before any charge.
    - ``sample`` and ``sample_sets`` cost nothing, and a saved generator holds no row and no exact count.
    - Labels of samples are drawn by noisy or by public shares.
    - Numbers lie within bins evenly, or by noisy counts of cells of the bins, which are released with the tables. In
      columns of another type than whole numbers they come back whole if noisy counts of the other numbers are small.
    - Whether pairs are selected, how many rounds and which fraction of the budget they take, whether triples and cells
      are measured, and the iterations of the fit are decided by public numbers. The number of pairs that are selected,
      and which, is decided by noisy scores.

    The proof of what is bought is in the notes of `skdp.synthesis.marginals.noisy_columns.TablePurchase`, and rows have
    no weights there. The proof of each sensitivity is in the notes of
    `skdp.synthesis.marginals.contingency_tables.TableSums` and of
    `skdp.synthesis.marginals.noisy_tables.sensitivity`, that of the composed privacy cost in those of
    `skdp.synthesis.marginals.noisy_tables.Measurement`.

    **Weights.** Samples have no weights: they are drawn from the weighted distribution. Where weights are given, their
    sum is private, and is released with the first tables, for 2 % of their share.

    **Groups.** Weights of the rows of a group are multiplied by one number in [0, 1], and their sum is released as
    above. What a group adds to tables is clipped, for each release, to c times the norm of what one row adds. In scores
    of pairs, and under ``replace_one``, the weights of a group add up to c at most, so that it is c times an average of
    its rows: that bounds scores, and what an exchange changes, too. The noise is c times that of rows, at the same
    price. c, from 1 to 3, is the root of n / (500 `noise_multiplier_`), n being the public number of groups
    (`skdp.synthesis.marginals.noisy_tables.unit_reach`): with little noise it is worth more that groups are whole.

    **Numbers within bins.** A bin is cut into up to 32 cells, one of which is zero alone. It is halved, and halves are
    halved again, as far as noisy counts of the cells tell them apart (`skdp.synthesis.marginals.column_levels`). How
    numbers lie within a bin depends on no other column. It is the same in all tables of ``sample_sets``, whose
    intervals are of what bins tell.

    **Post-processing.** One-way tables are projected onto the simplex. The interaction of two columns is shrunk by its
    singular values and the public size of the noise. The mixture is fitted to all tables by Adam, in float32.

    References
    ----------
    Xiao, He, Zhang & Kifer (2023), "An optimal and scalable matrix mechanism for noisy marginals under convex loss
    functions".

    McKenna, Mullins, Sheldon & Miklau (2022), "AIM: an adaptive and iterative mechanism for differentially private
    synthetic data", for the selection of pairs; here scores have Gaussian noise, and rounds are fixed
    beforehand.

    Liu, Vietri & Wu (2021), "Iterative methods for private synthetic data: unifying framework and new methods", for
    mixtures of products.

    Gavish & Donoho (2017), "Optimal shrinkage of singular values".

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skdp.synthesis import DPMarginalSynthesizer
    >>> rng = np.random.default_rng(0)
    >>> age = rng.integers(18, 90, 5000)
    >>> people = pd.DataFrame({"age": age, "job": np.where(age > 65, "none", rng.choice(["clerk", "nurse"], 5000))})
    >>> model = DPMarginalSynthesizer({"age": (18, 90), "job": ["clerk", "nurse", "none"]}, epsilon=1.0).fit(people)
    >>> made = model.sample(1000, random_state=0)
    >>> made.shape, bool((made["job"][made["age"] > 70] == "none").mean() > 0.8)
    ((1000, 2), True)
    """

    _largest_reach = LARGEST_REACH

    schema: Any = None
    _: KW_ONLY
    bounds: Any = None
    classes: Any = None
    n_bins: int = 16
    other: Mapping[str, Any] | None = None
    pairs: str = "auto"
    triples: bool | str = "auto"
    n_components: int | None = None
    max_iter: int | None = None
    class_prevalences: Any = "estimate"
    within_bins: str = "auto"
    weight_bound: Any = None
    epsilon: Any = 1.0
    delta: float | str = "auto"
    noise_multiplier: float | None = None
    adjacency: Any = None
    accountant: Any = None
    random_state: Any = None

    # --- the fit ---

    def _plan_step(self, n_samples: int, n_features: int) -> StepPlan:
        n_rounds = self._stated_table().n_rounds(n_features)
        # A step before this one may change the width, and must not change what was priced.
        return StepPlan(self._event_at(n_features), {"pairs": "select" if n_rounds else "all"})

    def _event_at(self, n_features: int | None) -> Callable[[float], DpEvent]:
        """See `PrivateGenerator`: what is estimated of the schema, beside the tables."""
        n_rounds = self._stated_table().n_rounds(n_features or 1)
        return partial(event_with, self._purchases(), partial(event_of, n_rounds=n_rounds))

    def _purchases(self) -> tuple[noisy_columns.TablePurchase, ...]:
        """What is bought of the schema, if it leaves something out."""
        return self._stated_table().purchases(self.adjacency, self.delta)

    def _fault_of_lists(self, before: Any) -> str:
        """See `PrivateEstimator`: numbers between bounds are never refused, cells that a schema names may be."""
        if self.schema is not None:
            return "a schema may not fit the rows of the step before it, which come after the charge: give bounds."
        return super()._fault_of_lists(before)

    def _read_parameters(self, n_features: int | None) -> None:
        check_choice("pairs", self.pairs, noisy_columns.PAIRS)
        check_choice("within_bins", self.within_bins, WITHIN_BINS)
        if not isinstance(self.triples, bool):
            check_choice("triples", self.triples, ("auto",))
        check_count("n_bins", self.n_bins, remedy="choose a whole number of bins, such as 16")
        if self.n_components is not None:
            check_count("n_components", self.n_components, remedy="choose a whole number, or None for the rule")
        if self.max_iter is not None:
            check_count("max_iter", self.max_iter, remedy="choose a whole number of iterations, or None for the rule")
        if self.other is not None and not isinstance(self.other, Mapping):
            raise ValueError(f"other={show(self.other)} is no mapping: give a dict such as {{'job': 'other'}}.")
        found = check_bounds(self.bounds)
        width = n_features or (len(found) if isinstance(found, list) else 1)
        self._stated_table().read([f"x{j}" for j in range(width)])
        if self.schema is None and self.other:
            raise ValueError("other names columns of a schema, and there is none: numbers between bounds need none.")
        selects = self.pairs == "select" or (n_features and self._stated_table().n_rounds(n_features))
        if selects and self.triples is True:
            raise ValueError("triples=True requires that all pairs are measured: set pairs='all', or triples=False.")

    def _read_rows(self, X: Any, *, reset: bool) -> noisy_columns.LevelTable:
        """See `PrivateGenerator`: all cells are read, since a rejection after the charge would be charged."""
        table = LocalTable(X, self)
        schema = self._stated_table().read(table.names)
        warn_of_objects(self, schema, table)
        given = int(self.n_bins), self.other or {}, self.within_bins == "auto", bool(self._purchases())
        rows = noisy_columns.read_rows(table, schema, *given)
        check_schema(self, table.source, reset=reset)
        self._fitted_n_columns = rows.n_columns
        return rows

    def _read_labels(self, y: Any, n_samples: int, n_public: int) -> ClassesAndCodes | None:
        found = super()._read_labels(y, n_samples, n_public)
        n_columns = self.__dict__.get("_fitted_n_columns")  # not known yet behind a private step
        if found is None and n_columns is not None and n_columns < 2:
            raise ValueError(
                "X has 1 feature(s), but pairs of columns are synthesized. Pass at least 2 columns, where labels count "
                "as one, or use skdp.describe for a single column."
            )
        if found is None and self.triples is True:
            raise ValueError("triples=True without labels: pass y, or triples=False.")
        return found

    def _learn(self, fit: Fit, rows: noisy_columns.LevelTable, labels: ClassesAndCodes | None, weights: Any) -> None:
        n_rounds, stream = self._stated_table().n_rounds(fit.n_features or 1), fit.spawn("marginals")
        rows = self._complete(fit, rows, stream)
        assert rows.form is not None  # complete
        # The label is one more column of levels.
        codes, levels = list(rows.codes), [column.n_levels for column in rows.form.columns]
        if labels is not None:
            self.classes_ = labels[0]
            codes.append(labels[1].astype(np.int32))
            levels.append(len(self.classes_))
        # What is measured and fitted follows from public numbers.
        reach = 1.0 if fit.units is None else min(unit_reach(fit.n, fit.noise_multiplier), self._largest_reach)
        measurement = Measurement(fit.noise_multiplier, n_rounds, self.adjacency, fit.n, reach)
        bins_of_lines = [rows.form.columns[j].n_listed for j in rows.cells]
        rules = self.triples, self.n_components, self.max_iter, bins_of_lines
        exclusions = exclusions_of(rows.form.columns, rows.schema.impossible)
        terms = measurement.terms_of(levels, labels is not None, exclusions, *rules, len(rows.fractions))
        # Release the tables and what lies within bins, and fit.
        exact = None if weights is None else exactly_summable(weight_of_each(weights, len(codes[0])))
        given_rows = LevelRows(codes, exact, fit.units)
        found, mixture = measurement.measure(given_rows, terms, stream)
        form = rows.shaped_form(measurement, given_rows, stream) if terms.with_shapes else rows.form.shaped({})
        form = form._replace(wholes=rows.wholes(measurement, given_rows, stream)) if terms.with_wholes else form
        # Counts of weighted rows vary by more than is known, so they cannot be drawn again.
        again = measurement, terms, found.noisy, self._buys_shares()
        self._fitted_redrawing = None if weights is not None else Redrawing(*again)
        self._publish(form, rows.schema.impossible, terms, found, mixture)

    def _complete(self, fit: Fit, rows: noisy_columns.LevelTable, stream: SecretStream) -> noisy_columns.LevelTable:
        """Return the rows as levels, once what the schema leaves out is estimated."""
        if rows.to_buy is None:
            self._fitted_remains: dict[str, Remains] = {}
            return rows
        (purchase,) = self._purchases()
        bought = purchase.buy(rows.to_buy, fit.noise_multiplier, fit.n, stream.spawn("purchase"), fit.units)
        note_remains(self, bought, fit.n)
        return noisy_columns.complete_rows(rows, bought, int(self.n_bins), self.other or {}, self.within_bins == "auto")

    # --- rules in public quantities ---

    def _stated_table(self) -> noisy_columns.StatedTable:
        return noisy_columns.StatedTable(self.schema, self.bounds, self.n_bins, self.pairs)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.bounds is None  # a schema may have a place for gaps
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


# --- a raw table as a synthetic one, in one line ---


@without_removed
def synthesize(
    table: Any,
    *,
    schema: Any = None,
    n_samples: int | None = None,
    epsilon: Any = 1.0,
    delta: float | str = "auto",
    groups: Any = None,
    n_bins: int = 16,
    noise_multiplier: float | None = None,
    adjacency: Any = None,
    accountant: Any = None,
    random_state: Any = None,
) -> Any:
    """Make a synthetic table from a private one: numbers, words, dates and gaps.

    It is a sample of a `DPMarginalSynthesizer`, which has more options, gives any number of rows, and writes a report.

    Parameters
    ----------
    table : array-like or frame of shape (n_samples, n_features)
        Private rows. A label is a column like any other.
    schema : TableSchema, mapping or None, default=None
        What is public of each column; a mapping is what `skdp.preprocessing.TableSchema` takes. Bounds and categories
        that are left out are bought, for a tenth of the budget's mu^2. If None, only names and types of the columns are
        public.
    n_samples : int or None, default=None
        Number of synthetic rows. If None, the public number of rows of `table`, or of groups.
    epsilon : float, Risk or None, default=1.0
        Privacy budget. The noise is calibrated to it. A number, or a bound on the risk of membership inference such as
        ``skdp.Risk(advantage=0.1)`` (``docs/membership_inference.md``). Must be None if `noise_multiplier` is given.
    delta : float or "auto", default="auto"
        The delta of the (epsilon, delta) guarantee; it must be well below 1/n, where n is the public number of rows.
        "auto" uses the delta of the accountant if it has one. Otherwise it is 1e-5 for at most 10,000 rows and 1/(10n),
        rounded down to a power of ten, for more.
    groups : array-like of shape (n_samples,), str or None, default=None
        Private label of the unit of each row, such as a person or a household, or the name of a column of `table`,
        which is not synthesized then. The guarantee is then for all rows of one label together, else for one row.
    n_bins : int, default=16
        Number of bins of a number or a date without edges.
    noise_multiplier : float or None, default=None
        Standard deviation of the noise of a single release, divided by its sensitivity. If None, it is calibrated to
        `epsilon`.
    adjacency : {"zero_out", "replace_one"}, AddRemove or None, default=None
        Neighboring relation, as for `DPMarginalSynthesizer`.
    accountant : PrivacyAccountant, str, path-like or None, default=None
        Ledger to which it is charged before anything is learned from the rows. A path names the file of an existing
        ledger.
    random_state : int, RandomState or Generator instance or None, default=None
        Source of the noise. None draws a fresh secret key from the operating system. Any other value makes the noise
        reproducible and issues a `PrivacyLeakWarning`. Samples are drawn anew each time.

    Returns
    -------
    synthetic : ndarray or frame of shape (n_samples, n_features)
        Rows in the form of `table`, without dropped columns. Categories that are not kept are "other", and gaps are
        gaps.

    Raises
    ------
    ValueError
        A parameter, the schema or the table is invalid. Nothing was charged.
    BudgetExceededError
        The budget of the accountant does not admit it. Nothing was charged.

    Warns
    -----
    QualityWarning
        Nothing is left of a column, or rows are few: by public numbers and by what was released.

    See Also
    --------
    DPMarginalSynthesizer : What makes the table, its guarantees and its report.
    skdp.describe : Figures of a private table.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import skdp
    >>> rng = np.random.default_rng(0)
    >>> age = rng.integers(18, 90, 5000)
    >>> people = pd.DataFrame({"age": age, "job": np.where(age > 65, None, rng.choice(["clerk", "nurse"], 5000))})
    >>> made = skdp.synthesize(people, epsilon=1.0)
    >>> made.shape, bool(made["job"][made["age"] > 70].isna().mean() > 0.8)
    ((5000, 2), True)
    """
    if n_samples is not None:
        check_count("n_samples", n_samples, at_least=0, remedy="choose a whole number of rows, or None")
    synthesizer = DPMarginalSynthesizer(
        schema, n_bins=n_bins, epsilon=epsilon, delta=delta, noise_multiplier=noise_multiplier, adjacency=adjacency,
        accountant=accountant, random_state=random_state,
    ).fit(table, groups=groups)  # fmt: skip
    return synthesizer.sample(int(synthesizer.n_samples_) if n_samples is None else n_samples)
