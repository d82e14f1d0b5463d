"""Base of evaluations that are post-processing of one noisy histogram: its fit and its accounting."""

from __future__ import annotations

import html
import math
from collections.abc import Callable
from dataclasses import KW_ONLY
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from skdp._checks.groups import GROUP, ROW, Units, estimand_of, read_units, take_unit
from skdp._checks.leaks import warn
from skdp._checks.notices import tell_now
from skdp._checks.numbers import key_of, values_of
from skdp._checks.parameters import check_choice, check_count, check_real, last_step, show
from skdp._checks.rows import check_classes, check_labels, check_shape, encode_labels, split_column
from skdp._checks.sources import source_to_predict
from skdp._checks.table import Table, as_keys
from skdp._checks.weights import WeightReader, weight_of_each
from skdp.accounting import GaussianDpEvent, PrivacyAccountant, resolve_accountant
from skdp.accounting.calibration import calibrate_to
from skdp.accounting.statements.targets import Risk, RiskTarget
from skdp.base.budget import Budget, PrivacyCost, cost_of, read_budget, solve_noise
from skdp.base.estimator import PrivateEstimator, epsilon_caption, with_parameters
from skdp.base.fit import Account, Fit, recording_rejections
from skdp.mechanisms.discrete_noise import DiscreteLaplaceMechanism
from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.mechanisms.streams import SecretStream
from skdp.metrics.replicates import Mechanism, Replicates, TableEstimates
from skdp.metrics.scored_rows import (
    RowsElsewhere,
    ScoredRows,
    bins_of,
    check_methods,
    check_width,
    reject_other_scores,
    score_of_two,
    scores_given,
)

OTHER = "other"
"""The subgroup of rows whose category is not listed."""


class CountingPlan(NamedTuple):
    """All settings of a release of counts, determined before a row is read.

    Attributes
    ----------
    mechanism : DiscreteLaplaceMechanism or GaussianMechanism
        In units of the contribution of a row of weight 1, which is `unit`.
    unit : int
    n_bins : int
    total : float or None
        Public number of rows, or of groups; None if it is private.
    cost : PrivacyCost
    """

    mechanism: Mechanism
    unit: int
    n_bins: int
    total: float | None
    cost: PrivacyCost


class RowsOfCounts(NamedTuple):
    """Data of each row beside its score: class or target, contribution, and subgroup."""

    labels: np.ndarray
    amounts: np.ndarray
    subgroups: np.ndarray

    def take(self, rows: np.ndarray | slice) -> RowsOfCounts:
        """Return the same of some rows."""
        return RowsOfCounts(*(each[rows] for each in self))


_LEAST_EPSILON = 1e-5
"""Parameters of the mechanism of a histogram with Laplace noise."""


@with_parameters
class CountedEvaluation(PrivateEstimator, TableEstimates):
    """Base of evaluations: a noisy histogram, released once. Subclasses compute metrics from it.

    Constructor parameters are public, arguments of `fit` are private. See `skdp.evaluate`.

    Notes
    -----
    **Guarantees.** One row, or one group, contributes at most one in total to all cells: those of all bins, classes and
    subgroups. That is the sensitivity of the release. Replacing a row changes two counts, and is accounted for. Cells
    are public: numbers of bins, classes and categories are parameters, or follow from the public number of rows and the
    noise.

    Proof. A row has one score, one class and one subgroup, so it is in one cell. It contributes 1 or, with weights or
    groups, the amount that `amounts_of` bounds for a group. A zeroed-out row has a weight of 0, or is absent. Gaussian
    noise is accounted for by Euclidean norms: the contribution of a row or group has a norm of at most 1, because its
    values are nonnegative and sum to at most 1, and two such vectors differ by at most sqrt(2) = 2 sqrt(1/2).
    """

    noise_multiplier = None
    _part: ClassVar[Any]  # metrics of a part of all rows
    _has_weights = False
    _n_folds = 0  # of a cross-validation, which counts the rows of each fold in a separate part of the histogram
    # Methods of a model, to score rows with: the first that it has.
    _methods: ClassVar[tuple[str, ...]] = ("predict_proba", "decision_function")

    model: Any
    _: KW_ONLY
    epsilon: Any = None
    delta: float | str = 0
    noise: str = "laplace"
    classes: Any = None
    y_bounds: Any = None
    categories: Any = None
    n_bins: int | str = "auto"
    weight_bound: float | None = None
    level: float = 0.95
    adjacency: Any = None
    accountant: Any = None
    random_state: Any = None

    @property
    def subgroups(self) -> dict[str, Any]:
        """Metrics of each of `categories`, and of all other rows, by name. Empty without `categories`."""
        names = [*self.categories_, OTHER] if self.categories_ else []
        return dict(zip(names, self._parts(), strict=True)) if names else {}

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        if "_fitted_tables" not in self.__dict__:
            return super().__repr__(N_CHAR_MAX)
        return f"{type(self).__name__}, epsilon={self.epsilon_:.6g}, {self.level:.0%} intervals\n{self}"

    def _repr_html_(self) -> Any:
        if "_fitted_tables" not in self.__dict__:
            return f"<pre>{html.escape(repr(self))}</pre>"
        return epsilon_caption(self) + self._metrics_as_html()

    def fit(self, X: Any, y: Any, *, groups: Any = None, sample_weight: Any = None, by: Any = None) -> Self:
        """Count the scores, charge the accountant and release the histogram. See `skdp.evaluate`.

        Parameters
        ----------
        X : table or array-like of shape (n_samples,)
            Private rows, or scores if `model` is None.
        y : array-like of shape (n_samples,), or str
            Private labels, or the name of their column, which is then not a feature.
        groups : array-like of shape (n_samples,), str or None, default=None
            Private group identifiers of the rows.
        sample_weight : array-like of shape (n_samples,), str or None, default=None
            Private weights, or the name of their column, which is then not a feature.
        by : array-like of shape (n_samples,), str or None, default=None
            Private subgroups, or the name of their column.

        Returns
        -------
        self : object
            The evaluation.
        """
        fit = CountingFit(self)
        model = fit.model
        X, given = split_given(X, {"y": y, "groups": groups, "sample_weight": sample_weight, "by": by}, model._models())
        model._note_given(given["y"], sample_weight)
        for each in model._models():
            check_methods(each, model._methods)
        fit.read_shape(X, given["groups"])
        plan = model._plan(fit.budget, fit.n_units)
        fit.plan_at(plan.cost)

        if isinstance(X, RowsElsewhere):
            given = fit.read(X.read_columns, given | {"groups": None})
        scores = fit.read(model._read_scores, fit.rows)
        counted = fit.read(model._read_counted, fit.n_rows, fit.units, given)
        fit.charge()

        fit.learn(model._release, plan, scores, counted, fit.spawn("counts"))
        return fit.publish()

    # --- validation ---

    def _check_own_parameters(self) -> None:
        """Check parameters, and set the public classes and subgroups."""
        check_real("level", self.level, above=0, below=1, constraint="a number in (0, 1), such as 0.95")
        WeightReader.of(self.weight_bound)
        self._check_targets_known()
        if self._unit() == ROW and any(getattr(each, "privacy_unit_", ROW) == GROUP for each in self._models()):
            raise ValueError(
                "`groups` must be set, because the model is private at the group level. Pass the group identifier of "
                "each row, or groups=range(n_samples) if each row is a group of its own."
            )
        if self._are_training_rows():
            tell_now(
                self,
                "The accountant also recorded the fit of the model. If the rows are its training rows, the scores are "
                "optimistic. Evaluate the model on other rows, such as the test part of "
                "skdp.private_train_test_split.",
            )
        given = [] if self.categories is None else list(self.categories)
        self.categories_ = list(dict.fromkeys(key for key in map(key_of, given) if key is not None))
        if len(self.categories_) < len(given):
            raise ValueError("`categories` must be distinct, without missing values.")
        if OTHER in self.categories_:
            raise ValueError(
                f"`categories` must not contain {OTHER!r}, which is the name of all other subgroups. Rename it."
            )

    def _are_training_rows(self) -> bool:
        """Whether the accountant of the model is that of the rows, or of all rows that contain them."""
        accountant = resolve_accountant(self.accountant)
        if accountant is None or not accountant.history:
            return False
        ledger, part = accountant.identity
        given = [getattr(each, "accountant", None) for model in self._models() for each in (model, last_step(model))]
        fits = [each.identity if isinstance(each, PrivacyAccountant) else (each, None) for each in given]
        return (ledger, part) in fits or (ledger, None) in fits

    def _note_given(self, y: Any, sample_weight: Any) -> None:
        """Record public facts about labels and weights: whether there are weights."""
        self._has_weights = sample_weight is not None

    def _check_targets_known(self) -> None:
        """Set the public facts about the targets: the classes, those of the model if it has some."""
        if any(isinstance(getattr(each, "classes_", None), list) for each in self._models()):
            raise ValueError("`y` must have one column per label, because the model is multilabel.")
        known = [list(each.classes_) for each in self._models() if hasattr(each, "classes_")]
        given = self.classes if self.classes is not None else known[0] if known else (0, 1)
        classes = check_classes("classes", given)
        if any(each != classes.tolist() for each in known):
            raise ValueError(
                f"`classes` must equal the classes of the model, got {classes.tolist()!r}. Remove `classes`."
            )
        self.classes_ = classes

    def _models(self) -> tuple[Any, ...]:
        """Models that score the rows."""
        return () if self.model is None else (self.model,)

    def _read_targets(self, y: Any, n_samples: int) -> np.ndarray:
        """Data of each row beside its score: the index of its class."""
        return encode_labels(check_labels(y, n_samples, classes=self.classes_), self.classes_)

    def _n_parts(self) -> int:
        """Number of parts of the histogram: one for each fold, or for each category and all other rows."""
        return self._n_folds or len(self.categories_) + 1

    def _adds_parts(self) -> bool:
        """Whether a row can contribute a fraction to a cell."""
        return self._has_weights or self._unit() == GROUP

    # --- accounting ---

    def _plan(self, budget: Budget, n_units: int) -> CountingPlan:
        """Check the parameters, and plan the release of counts of so many rows or groups."""
        self._check_own_parameters()
        n_public = n_units if budget.n_public is None else budget.n_public
        unit = self._cells_of_row() * (GRID if self._adds_parts() else 1)  # in whole numbers
        mechanism, cost = self._noise_and_cost(budget, unit)
        strength = n_public * self._share_of_table() / max(mechanism.standard_deviation / unit / math.sqrt(2.0), 1e-9)
        if strength < 100:
            few = f"{n_public} {(what := self._units_in_words())} at this epsilon"
            warn(f"{few}: the noise hides most metrics. Use more {what}, or a larger `epsilon`.")
        total = None if self._has_weights or budget.adjacency == "add_remove" else float(n_units)
        return CountingPlan(mechanism, unit, self._number_of_bins(strength), total, cost)

    def _plan_inside(self, whole: Any, y: Any, sample_weight: Any, n_units: int) -> CountingPlan:
        """Plan the release as a part of a larger charge, whose privacy unit is that of the counts."""
        self._fitted_leaks: tuple[Any, ...] = ()
        self._fitted_notices: dict[str, bool] = {}
        take_unit(self, whole)
        self._note_given(y, sample_weight)
        return self._plan(read_counting_budget(self), n_units)

    def _cells_of_row(self) -> int:
        """Total contribution of a row of weight 1 to all cells: 1 if it is in one cell."""
        return 1

    def _whole(self, plan: CountingPlan) -> int:
        """Contribution of a row of weight 1 to a cell of a single count."""
        return plan.unit // self._cells_of_row()

    def _norm_of_row(self) -> float:
        """Largest Euclidean norm of the contribution of a row whose sum is 1."""
        return 1.0

    def _share_of_table(self) -> float:
        """Fraction of n epsilon for one histogram: 1 if there is one."""
        return 1.0

    def _noise_and_cost(self, budget: Budget, unit: int) -> tuple[Mechanism, PrivacyCost]:
        """The mechanism and its privacy cost."""
        replaced = budget.adjacency == "replace_one"
        if self.noise == "laplace":
            laplace = self._laplace_for(budget, unit)
            return laplace, PrivacyCost(laplace.event, laplace.epsilon * (2 if replaced else 1), 0.0)
        sigma, norm = solve_noise(budget, GaussianDpEvent), unit * self._norm_of_row()
        gaussian = GaussianMechanism(sigma, norm * (math.sqrt(0.5) if replaced else 1.0))
        return gaussian, cost_of(budget, gaussian.event)

    def _laplace_for(self, budget: Budget, unit: int) -> DiscreteLaplaceMechanism:
        """The smallest noise within the budget."""
        if not isinstance(budget.epsilon, Risk):
            parts = 2 if budget.adjacency == "replace_one" else 1
            return DiscreteLaplaceMechanism.for_epsilon(float(budget.epsilon or 0.0) / parts, unit)

        def mechanism_at(noise: float) -> DiscreteLaplaceMechanism:
            return DiscreteLaplaceMechanism.for_epsilon(max(1.0 / noise, _LEAST_EPSILON), unit)

        target = RiskTarget.of(budget.epsilon)
        noise = calibrate_to(lambda each: mechanism_at(each).event, target, adjacency=budget.adjacency)
        return mechanism_at(noise)

    def _number_of_bins(self, strength: float) -> int:
        """Number of bins, as set or by n epsilon."""
        if self.n_bins != "auto":
            return check_count("n_bins", self.n_bins, at_least=2, constraint="an integer of at least 2, or 'auto'")
        return self._default_bins(strength)

    def _default_bins(self, strength: float) -> int:
        """The power of two nearest to 2.4 times the cube root of n epsilon of a subgroup, from 8 to 256.

        More bins add noise to all sums; fewer bins resolve the scores less (`benchmarks/bench_evaluate.py`).
        """
        return int(2 ** np.clip(np.rint(np.log2(2.4 * (strength / self._n_parts()) ** (1 / 3))), 3, 8))

    # --- rows ---

    def _read_scores(self, X: Any) -> Any:
        """Return rows and the model that scores them; the model reads the cells later."""
        if self.model is None:
            return ScoredRows(None, self._given(X), width=self._width())
        return self._scored_by(self.model, X)

    def _scored_by(self, model: Any, X: Any) -> ScoredRows:
        """The rows with a model that was checked."""
        X = check_width(model, X)
        reject_other_scores(model, X, self._score, self._width())
        return ScoredRows(model, X, self._score, self._width())

    def _width(self) -> tuple[int, ...]:
        """Shape of the score of a row: one number."""
        return ()

    def _given(self, X: Any) -> np.ndarray:
        """Precomputed scores, of shape (n_rows, 1)."""
        return scores_given(X)

    def _score(self, model: Any, rows: Any) -> np.ndarray:
        """The score of each row, one number."""
        return score_of_two(model, rows)

    def _read_counted(self, n_rows: int, units: Units | None, given: dict[str, Any]) -> RowsOfCounts:
        """Return the data of each row beside its score; `given` has labels, weights and subgroups."""
        labels = self._read_targets(given["y"], n_rows)
        weights = WeightReader.of(self.weight_bound).read(given["sample_weight"], n_rows)
        amounts = amounts_of(weights, units, n_rows) if self._adds_parts() else np.broadcast_to(np.int64(1), n_rows)
        return RowsOfCounts(labels, amounts, self._subgroups(given["by"], n_rows))

    def _subgroups(self, by: Any, n_samples: int) -> np.ndarray:
        """The index of each row's category, with "other" as the last; 0 without subgroups."""
        if (by is None) != (self.categories is None):
            raise ValueError("`by` and `categories` must be set together: subgroups of the rows and their public list.")
        if by is None:
            return np.broadcast_to(np.int64(0), n_samples)
        cells = values_of("by", by).reshape(-1, 1)
        if len(cells) != n_samples:
            raise ValueError(f"`by` must have one subgroup per row ({n_samples}), got {len(cells)}.")
        codes, keys = as_keys(Table(cells).cells(0))
        places = {key: place for place, key in enumerate(self.categories_)}
        return np.array([places.get(key, len(places)) for key in keys] + [len(places)], np.int64)[codes]

    # --- the release ---

    def _release(self, plan: CountingPlan, rows: Any, counted: RowsOfCounts, stream: SecretStream) -> None:
        """Release the counts, and set the results."""
        noisy = plan.mechanism.release(self._count(rows, counted, plan.n_bins), stream)
        self.noisy_counts_ = noisy / self._whole(plan)
        self.noise_deviation_ = plan.mechanism.standard_deviation / self._whole(plan)
        self.n_bins_ = plan.n_bins
        stated = [text] if (text := estimand_of(self._unit())) else []
        if self._n_folds:
            stated.append(
                "The scores are those of models that were fitted to part of the records with part of the budget. With "
                "a small budget they are far below the score of a final model, which is fitted to all records with the "
                "whole budget."
            )
        self._fitted_replicates = tables = self._replicates_of(noisy, plan).stated("\n".join(stated))
        self._fitted_tables = tables.map(lambda each: each.sum(axis=1))

    def _parts(self) -> list[Any]:
        """Metrics of each subgroup, in order."""
        tables = self._fitted_replicates
        parts = (tables.map(partial(np.take, indices=k, axis=1)) for k in range(tables.released.shape[1]))
        return [self._part(each, self.level, **self._facts_of_parts()) for each in parts]

    def _facts_of_parts(self) -> dict[str, Any]:
        """Additional data for the metrics of a subgroup, by the name of the attribute."""
        return {}

    def _count(self, rows: ScoredRows, targets: RowsOfCounts, n_bins: int) -> np.ndarray:
        """The exact histogram, of shape (n_subgroups, n_classes, n_bins)."""
        return count_cells(rows, targets, (self._n_parts(), len(self.classes_), n_bins), self._bins_of)

    def _bins_of(self, scores: np.ndarray, n_bins: int) -> np.ndarray:
        return bins_of(scores, n_bins)

    def _replicates_of(self, noisy: np.ndarray, plan: CountingPlan) -> Replicates:
        return Replicates.of(self.noisy_counts_, plan.mechanism, plan.unit, plan.total)

    def _public_parameters(self) -> dict[str, Any]:
        """See `PrivateEstimator`: the class of the model."""
        return {**super()._public_parameters(), "model": type(self.model).__name__}


def read_counting_budget(model: CountedEvaluation) -> Budget:
    """Return the privacy parameters of an evaluation, or raise an error: Laplace noise requires a delta of 0."""
    if check_choice("noise", model.noise, ("laplace", "gaussian")) == "gaussian":
        if model.delta == 0:
            raise ValueError("`delta` must be above 0 with noise='gaussian'. Set delta='auto', or use noise='laplace'.")
        return read_budget(model)
    if model.delta != 0:
        raise ValueError(f"`delta` must be 0 with noise='laplace', got {show(model.delta)}. Remove `delta`.")
    return read_budget(model, lambda delta: 0.0)


class CountingFit(Fit):
    """The fit of an evaluation, whose delta can be 0, and whose rows can be scores."""

    _read_budget = staticmethod(read_counting_budget)

    def _find_account(self) -> Account:
        return super()._find_account()._replace(label="evaluate")

    def read_shape(self, X: Any, groups: Any) -> None:
        """See `Fit`. Group identifiers of out-of-core rows can be the name of a column."""
        if isinstance(X, RowsElsewhere) and isinstance(groups, str):
            with recording_rejections(self._find_account):
                labels = X.read_columns({"groups": groups})["groups"]
                groups = read_units(labels, len(labels), groups)
        super().read_shape(X, groups)

    def _public_shape(self) -> tuple[int, int | None]:
        """See `Fit`: the number of scores, so that no cell is read before the charge."""
        if self.model.model is not None:
            return super()._public_shape()
        # The number of scores is public; 0 if it is unknown.
        shape = getattr(self.rows, "shape", None)
        n_scores = int(shape[0]) if shape else len(self.rows) if hasattr(self.rows, "__len__") else 0
        with recording_rejections(self._find_account):
            check_shape((n_scores, 1), self.model)
        return n_scores, 1


def split_given(X: Any, given: dict[str, Any], models: tuple[Any, ...]) -> tuple[Any, dict[str, Any]]:
    """Return the rows, and the data of each: arrays, or names of columns, which are removed from the table.

    Columns of out-of-core rows are read after the charge.
    """
    if models:  # the column of subgroups can be a feature
        labels = {name: each for name, each in given.items() if isinstance(each, str) and name != "by"}
        source = source_to_predict(X, getattr(models[0], "feature_names_in_", None), **labels)
        if source is not None:
            return RowsElsewhere(source, (source.n_rows if "y" in labels else len(given["y"])) or 0), given
    rest, by = split_column(X, "by", given["by"])
    X, y = split_column(X if models else rest, "y", given["y"])
    X, weights = split_column(X, "sample_weight", given["sample_weight"])
    return X, {"y": y, "groups": given["groups"], "sample_weight": weights, "by": by}


def count_cells(
    rows: ScoredRows, targets: RowsOfCounts, shape: tuple[int, int, int], columns: Callable[..., np.ndarray]
) -> np.ndarray:
    """Exact counts, of shape (n_subgroups, n_classes, n_bins): sums of integers, in any order."""
    counts = np.zeros(shape, np.int64)
    for block, scores in rows.blocks():
        labels, amounts, groups = targets.take(block)
        np.add.at(counts, (groups, labels, columns(scores, shape[2])), amounts)
    return counts


# --- contribution of a row to the count of its cell ---

GRID = 2**20
"""Contribution of a row of weight 1 with weights or groups; fractions of it are rounded down to integers."""


def amounts_of(weights: Any, units: Units | None, n_rows: int) -> np.ndarray:
    """Return the contribution of each row to the count of its cell, from 0 to `GRID`.

    Parameters
    ----------
    weights : ndarray of shape (n_rows,) or 1.0
        Private: fractions of a bound, in [0, 1].
    units : Units or None
        Private groups of the rows.
    n_rows : int

    Notes
    -----
    **Guarantees.** The contribution of one row, or of all rows of one group, sums to at most `GRID` over all cells. It
    depends on the weight of the row, or on the weights of its group, alone.

    Proof. A fraction in [0, 1] times `GRID`, rounded down, is an integer from 0 to `GRID`. With K the sum of these
    over the rows of a group, a row contributes its integer times `GRID` / max(K, `GRID`), rounded down: in sum at most
    min(K, `GRID`). All arithmetic is on integers below 2**63 for groups of fewer than 2**43 rows. Contributions are
    nonnegative, so the sum of absolute values is the sum.
    """
    shares = np.floor(weight_of_each(weights, n_rows) * GRID).astype(np.int64)
    if units is None:
        return shares
    sums = np.zeros(units.n_units, np.int64)
    np.add.at(sums, units.codes, shares)
    return shares * GRID // np.maximum(sums, GRID)[units.codes]
