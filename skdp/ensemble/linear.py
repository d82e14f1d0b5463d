"""A private linear model over the leaves of random trees: what its classifier and its regressor share."""

from __future__ import annotations

import math
from copy import copy
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdp._fitting.norms import row_schema_of
from skdp._fitting.private_step import is_private
from skdp._fitting.rows import check_schema
from skdp._gradient.linear import LinearRuns
from skdp._gradient.plan import Plan, Run, Targets
from skdp._gram import Doubles
from skdp._random import SecretStream
from skdp._sampling import Sampling
from skdp._training import defaults as linear_rule
from skdp._training.one_hot import Blocks, OneHotGeometry, OneHotModel, OneHotRows, one_hot_scores
from skdp._training.optimizers import Vector
from skdp._training.plan import DPSGDPlan
from skdp._validation import check_count, count_threads
from skdp.base import Budget, FitTerms
from skdp.ensemble import rules
from skdp.ensemble.embedding import PublicTreesEmbedding, one_hot_form
from skdp.preprocessing.blocks import Block
from skdp.preprocessing.buying import check_bounds
from skdp.preprocessing.columns import Table
from skdp.preprocessing.schema import TableSchema


class RandomTreesRuns(LinearRuns):
    """Base class of linear models over the plain columns of a table and the leaves of trees that read no row.

    Subclasses have the parameters of `PublicTreesEmbedding` and of linear models. Their rows are `OneHotRows`.
    """

    _rule: rules.LossRule
    _fitted_row_schema: TableSchema | None = None

    n_estimators: Any
    max_depth: Any
    schema: Any
    bounds: Any
    categories: Any
    n_bins: Any
    trees_random_state: Any
    fit_intercept: Any

    embedding_: PublicTreesEmbedding
    coef_: Doubles
    intercept_: Doubles
    coef_noise_: Doubles
    _fitted_start_noise: Doubles  # of coefficients that the last run started from

    def _loss(self, outputs: Any) -> tuple[int, float]:
        """Return the number of the loss and its limit, see `skdp._kernels.losses`."""
        raise NotImplementedError

    # --- rows ---

    def _takes_codes(self) -> bool:
        """See `PrivateEstimator`: where no parameter says what is public of the columns, the rows have to."""
        return self.schema is None and self.bounds is None and self.categories is None

    def _fault_behind(self, step: Any) -> str:
        """See `PrivateEstimator`."""
        if self._takes_codes():
            if is_private(step) and getattr(step, "_gives_codes", bool)():
                return ""
            return f"{_NO_SCHEMA}, and the step before it carries none: {_REMEDY}."
        if self.schema is None and self.categories is None and not isinstance(check_bounds(self.bounds), list):
            return ""  # any columns
        return (
            "schema, bounds or categories are for columns that the step before it may not give: leave them out, and "
            "put DPTableVectorizer(schema, numbers='codes') directly before it."
        )

    def _note_rows(self, X: Any) -> None:
        """See `PrivateEstimator`."""
        super()._note_rows(X)
        found = row_schema_of(X)
        self._fitted_row_schema = found if type(found) is TableSchema else None

    def _embedding(self) -> PublicTreesEmbedding:
        """Return the embedding that the parameters describe, which are checked, or that the schema of the rows does."""
        # No generator: what it gave the trees is public, and the noise might be drawn from it too.
        remedy = "choose a whole number from 0 on, which is public and no seed of the noise"
        seed = check_count("trees_random_state", self.trees_random_state, at_least=0, remedy=remedy)
        schema = self._fitted_row_schema if self._takes_codes() else self.schema
        embedding = PublicTreesEmbedding(
            self.n_estimators, self.max_depth, schema=schema, bounds=self.bounds, categories=self.categories,
            n_bins=self.n_bins, random_state=seed, n_jobs=self.n_jobs,
        )  # fmt: skip
        embedding._check_parameters()
        return embedding

    def _refuse_unknown_columns(self) -> None:
        if self._takes_codes() and self._fitted_row_schema is None:
            raise ValueError(f"{_NO_SCHEMA}, and X carries none: {_REMEDY}.")

    def _check_present(self, run: Run, outputs: Any) -> None:
        """See `GradientEstimator`."""
        if not self._embedding()._gives_columns_of(self.embedding_):
            raise ValueError(
                "the trees or the public columns differ from those of earlier runs, whose coefficients do not fit "
                "them: set n_estimators, max_depth, n_bins, trees_random_state and what is public of the columns as "
                "before, or start again with fit and warm_start=False."
            )

    def _check_rows(self, X: Any, *, reset: bool = True) -> OneHotRows:
        """See `GradientEstimator`. The embedding reads names and types, and treats rows one by one."""
        check_schema(self, Table(X).source, reset=reset)
        if reset:
            self._refuse_unknown_columns()
            self.embedding_ = self._embedding().fit(X)
        return self.embedding_._one_hot(X)

    def _form(self, n_features: int) -> tuple[Blocks, list[Block]]:
        """Return the form of rows, and the plain columns that come first, from the schema alone."""
        self._refuse_unknown_columns()
        embedding = self._embedding()
        blocks = embedding._public_blocks([f"x{j}" for j in range(n_features)])
        return one_hot_form(blocks, int(self.n_estimators), 2 ** int(self.max_depth)), blocks

    # --- the plan of a run ---

    def _check_parameters(self, terms: FitTerms, n_samples: int, n_features: int | None) -> None:
        """See `GradientEstimator`. Before the codes are there, columns of numbers stand for them."""
        known = self
        if self._takes_codes() and self._fitted_row_schema is None:
            known, n_features = copy(self), None
            known.bounds = (0.0, 1.0)
        elif n_features is None and self.schema is None:  # a list says how many columns there are
            n_features = next((len(each) for each in (self.bounds, self.categories) if isinstance(each, list)), None)
        super(RandomTreesRuns, known)._check_parameters(terms, n_samples, n_features)

    def _plan_next_run(self, terms: FitTerms, shape: tuple[int, int], outputs: Any, *, warm: bool) -> Plan:
        """See `GradientEstimator`. Trees that are there already were drawn from the schema of earlier rows."""
        if warm and self._takes_codes() and self._fitted_row_schema is None:
            self._fitted_row_schema = self.embedding_.schema_
        return super()._plan_next_run(terms, shape, outputs, warm=warm)

    def _sampling_and_steps(self, n: int, n_features: int, n_outputs: int) -> tuple[Sampling, int]:
        """See `GradientEstimator`."""
        epochs = None if self.max_iter is None else self._check_max_iter()
        n_entries = n_outputs * (n_features + int(self._embedding().n_estimators))
        sampling = self._chosen_sampling(n) or linear_rule.default_sampling(
            n, n_entries, epochs or rules.TREES_STEPS, rules.AFFORDABLE_LOOKUPS
        )
        return sampling, rules.TREES_STEPS if epochs is None else math.ceil(epochs / sampling.rate)

    def _plan_run(self, budget: Budget, n: int, n_features: int, outputs: Any) -> Run:
        """See `GradientEstimator`."""
        form, plain = self._form(n_features)
        sampling, n_steps = self._sampling_and_steps(n, n_features, outputs.n_outputs)
        sigma = self._calibrate_noise(budget, sampling, n_steps)
        lot_size, n_free = sampling.rate * n, _n_free(plain, outputs)
        signal = linear_rule.signal_of(sigma, lot_size, n_steps, n_free)
        clip = self._check_clip() or self._rule.max_grad_norm(signal)
        geometry = self._geometry(form, len(plain))
        plan = DPSGDPlan(sampling, clip, sigma, n_steps, lot_size)
        rate = self._check_learning_rate() or self._rule.learning_rate(plan, signal)
        penalty = np.zeros((outputs.n_outputs, geometry.width))
        penalty[:, : form.n_columns] = geometry.entries_of_columns**2
        return self._linear_run(plan, geometry, 1.0, rate, penalty.ravel())

    def _geometry(self, form: Blocks, n_plain: int) -> OneHotGeometry:
        n_trees, share = len(form.widths) - n_plain, rules.TREES_SHARE
        weights = np.repeat([math.sqrt((1.0 - share) / n_plain), math.sqrt(share / n_trees)], [n_plain, n_trees])
        return OneHotGeometry(form, tuple(weights.tolist()), rules.ENTRY_OF_INTERCEPT if self.fit_intercept else 0.0)

    def _n_free(self, run: Run, n_features: int, outputs: Any) -> int:
        """See `LinearRuns`: the trees share what rows say of the plain columns."""
        return _n_free(self._form(n_features)[1], outputs)

    def _describe_rows(self) -> dict[str, Any]:
        """See `GradientEstimator`. A schema alone is represented by the names of its columns."""
        if self._takes_codes():
            name, schema = "row_schema", self._fitted_row_schema
        else:
            name, schema = "schema", None if self.schema is None else self._embedding()._read_schema([])
        return super()._describe_rows() | ({} if schema is None else {name: schema.to_json()})

    # --- parameters of rows of norm 1, and of levels and leaves ---

    def _start(self, run: Run, outputs: Any, dtype: Any, stream: SecretStream, *, warm: bool) -> Vector:
        """See `GradientEstimator`."""
        geometry: OneHotGeometry = run.shape
        theta = np.zeros((outputs.n_outputs, geometry.width))
        if warm:
            entries = geometry.entries_of_columns
            np.divide(self.coef_, entries, out=theta[:, : len(entries)], where=entries > 0.0)
            if geometry.fit_intercept:
                theta[:, -1] = self.intercept_ / geometry.icpt
        return theta.ravel()

    def _bind(self, X: OneHotRows, targets: Targets, weights: Any, run: Run) -> OneHotModel:
        """See `GradientEstimator`."""
        loss, limit = self._loss(targets.outputs)
        return OneHotModel(
            X, targets.values, weights, targets.outputs.n_outputs, run.shape,
            loss=loss, limit=limit, n_threads=count_threads(self.n_jobs),
        )  # fmt: skip

    def _set_parameters(self, theta: Vector, plan: Plan, n_done: int) -> None:
        """See `GradientEstimator`."""
        run, geometry = plan.run, plan.run.shape
        self.learning_rate_ = run.learning_rate
        # A run that resumes starts from where it first did, any other from the current coefficients.
        resumed = plan.warm and plan.before == getattr(self, "_fitted_before", None)
        start = (
            (self._fitted_start_noise if resumed else self.coef_noise_)
            if plan.warm
            else np.zeros((1, geometry.blocks.n_columns))
        )
        table = theta.reshape(plan.outputs.n_outputs, -1)
        self.coef_ = geometry.centred(table[:, : geometry.blocks.n_columns])
        self.intercept_ = table[:, -1] * geometry.icpt if geometry.fit_intercept else np.zeros(len(table))
        self.coef_noise_ = np.tile(self._noise_of_coef(run, start, n_done), (len(table), 1))
        self._fitted_start_noise = start

    def _noise_of_coef(self, run: Run, start: Doubles, n_done: int) -> Doubles:
        """Standard deviations of coefficients by noise alone; `start` has those that the run starts from."""
        geometry, noise = run.shape, np.empty(run.shape.blocks.n_columns)
        for entry in np.unique(geometry.entries):
            found, each = self._carried(run, n_done, entry**2), geometry.entries_of_columns == entry
            noise[each] = np.hypot(found.start * start[:, each], found.noise * geometry.deviations[each]).max(axis=0)
        return noise

    # --- predictions ---

    def _scores(self, X: OneHotRows) -> Doubles:
        """See `GradientEstimator`."""
        return one_hot_scores(X, self.coef_) + self.intercept_

    @property
    def feature_importances_(self) -> Doubles:
        """Importances of the columns of the table, of shape (`n_features_in_`,).

        The variance of each column's part of the score over its levels, all of them equally likely, and of each split
        of a tree for the column that it looks at, less what noise alone makes of it; they sum to 1, or are all 0. They
        are a function of the coefficients and of public quantities, so they cost nothing: frequencies would.
        """
        check_is_fitted(self)
        return self.embedding_._importances(self.coef_, self.coef_noise_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


_NO_SCHEMA = "schema=None, bounds=None and categories=None say nothing about the columns"
_REMEDY = (
    "give a TableSchema, or bounds=(low, high) if all columns are numbers, or put DPTableVectorizer(numbers='codes') "
    "directly before it"
)


def _n_free(plain: list[Block], outputs: Any) -> int:
    return outputs.n_outputs * (sum(block.width for block in plain) + 1)


__all__ = ["RandomTreesRuns"]
