"""Linear models on the leaves of random trees, shared by classifier and regressor."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import KW_ONLY, field
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdp._checks.notices import note_notice
from skdp._checks.table import fitted_table
from skdp._checks.weights import weight_of_each
from skdp._dpsgd import defaults as rules
from skdp._dpsgd.estimator import GradientEstimator
from skdp._dpsgd.linear_solver import LookupSolver
from skdp._dpsgd.models.one_hot import OneHotForm, OneHotRows, one_hot_scores
from skdp._dpsgd.plan import PlannedReleases
from skdp._dpsgd.solver import Run, Targets
from skdp.base.estimator import with_parameters
from skdp.ensemble.embedding import TableCodes, codes_of, one_hot_blocks, plain_blocks
from skdp.ensemble.marginal_counts import PEOPLE_SHARE, count_people, notices_of_counts, shares_of_people
from skdp.ensemble.trees_of_tables import TreesOfTables
from skdp.inspection import report_rows
from skdp.mechanisms.bounded_sum import column_sensitivity
from skdp.mechanisms.gaussian import noise_ratio
from skdp.mechanisms.sampling import Sampling


class TreesSolver(LookupSolver):
    """Solver for one-hot rows of plain columns and of leaves of random trees, which are grown in the first run."""

    def check_present(self, run: Run) -> None:
        if not self.model._embedding()._gives_columns_of(self.model.embedding_):
            raise ValueError(
                "The trees or the schema differ from those of earlier runs, so the coefficients do not match. Use the "
                "same n_estimators, max_depth, n_bins, trees_random_state and schema as before, or fit again with "
                "warm_start=False."
            )

    def beside_steps(self, sampling: Sampling, n_steps: int) -> dict[str, float]:
        """See `Solver`. The first run also releases the marginal counts from which trees are grown."""
        found = super().beside_steps(sampling, n_steps)
        if self.anew:
            found[_PEOPLE] = noise_ratio(PEOPLE_SHARE, sampling.rate, n_steps)
        return found

    def before_steps(self, run: Run, rows: OneHotRows | TableCodes, targets: Targets) -> tuple[OneHotRows, Targets]:
        """See `Solver`. Existing trees of earlier runs are kept."""
        rows, targets = super().before_steps(run, rows, targets)
        if not isinstance(rows, TableCodes):
            return rows, targets
        self._grow(run, rows, targets)
        return self.model.embedding_._encoder.encode(rows.codes, rows.n_features), targets

    def _grow(self, run: Run, rows: TableCodes, targets: Targets) -> None:
        """Release the marginal counts, and grow the trees from them."""
        embedding, blocks = self.model.embedding_, self.model.embedding_._fitted_blocks
        each, units = weight_of_each(targets.weights, rows.shape[0]), targets.units
        sensitivity = column_sensitivity(len(blocks), self.model.adjacency)
        mechanism = run.mechanism(_PEOPLE, sensitivity)
        counts = run.released(_PEOPLE, mechanism, partial(count_people, blocks, rows.codes, each, units))
        shares = shares_of_people(counts, blocks, mechanism, run.n_public)
        names = self.model._fitted_row_names or [block.name for block in blocks]
        for text in notices_of_counts(counts, blocks, names, mechanism, run.n_public):
            note_notice(self.model, text)
        embedding.marginals = {block.name: found for block, found in zip(blocks, shares, strict=True)}
        embedding._grow()

    def _weigh(self, form: OneHotForm, signal: float) -> OneHotForm:
        return form.with_share(rules.trees_share(signal))

    def sampling_and_steps(self, n: int, n_features: int, n_outputs: int) -> tuple[Sampling, int]:
        return self._sampling_by_lookups(n, n_outputs * (n_features + int(self.model._embedding().n_estimators)))

    def plan_run(self, releases: PlannedReleases, noise: float, n: int, n_features: int, outputs: Any) -> Run:
        return self._plan_one_hot(releases, noise, n, self.model._form(n_features), outputs)

    def describe_rows(self) -> dict[str, Any]:
        """See `Solver`. A schema is represented by the column names."""
        if self.model._takes_codes():
            name, schema = "row_schema", self.model._fitted_row_schema
        else:
            name, schema = "schema", None if self.model.schema is None else self.model._embedding()._read_schema([])
        described = super().describe_rows() | ({} if schema is None else {name: schema.to_json()})
        return described if self.anew else described | {"estimated before": self._digest_of_estimates()}

    def _digest_of_estimates(self) -> str:
        """Return a digest of the trees, which differs from that of another fit."""
        return hashlib.sha256(repr(self.model.embedding_.marginals).encode()).hexdigest()


@with_parameters
class RandomTreesModel(TreesOfTables, GradientEstimator):
    """Base class of linear models on plain columns and leaves of random trees.

    Subclasses have the parameters of `PublicTreesEmbedding` and of linear models. Their rows are ``OneHotRows``.
    """

    n_estimators: int = 300
    max_depth: int = 8
    _: KW_ONLY
    max_leaf_nodes: int = 16
    schema: Any = None
    bounds: Any = None
    categories: Any = None
    n_bins: int = 16
    trees_random_state: int = 0
    epsilon: Any = 1.0
    delta: float | str = "auto"
    noise_multiplier: float | None = None
    max_grad_norm: float | str = "auto"
    lot_size: float | None = None
    sampling_rate: float | None = None
    max_iter: int | None = None
    learning_rate: float | str = "auto"
    momentum: float = 0.9
    average: bool = True
    alpha: float = 0.0
    fit_intercept: bool = True
    weight_bound: Any = None
    adjacency: Any = None
    accountant: Any = None
    checkpoint: Any = None
    warm_start: bool = False
    merge_equal_rows: bool | str = "auto"
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    coef_: np.ndarray = field(init=False)
    intercept_: np.ndarray = field(init=False)
    coef_noise_: np.ndarray = field(init=False)

    # --- rows ---

    def _read_rows(self, X: Any, *, reset: bool) -> OneHotRows | TableCodes:
        """See `GradientEstimator`. The embedding reads names and types, and treats rows one by one."""
        if not reset:
            codes = codes_of(self.embedding_._fitted_blocks, fitted_table(self, X))
            return self.embedding_._encoder.encode(codes, self.n_features_in_)
        return self._read_table(X)

    def _form(self, n_features: int) -> OneHotForm:
        """Return the form of rows from the schema alone. Before there are codes, columns of numbers represent them."""
        embedding = self._embedding()
        if self._takes_codes() and self._fitted_row_schema is None:
            embedding.bounds = (0.0, 1.0)
        plain = plain_blocks(embedding._public_blocks([f"x{j}" for j in range(n_features)]))
        blocks = one_hot_blocks(plain, int(self.n_estimators), embedding._n_leaves)
        return OneHotForm(blocks, (1.0,) * len(blocks.widths), len(plain))

    def _solver(self, target: Any, n_features: int, *, anew: bool = True) -> TreesSolver:
        return TreesSolver(self, target, anew=anew)

    # --- predictions ---

    def _scorer(self) -> Callable[[OneHotRows], np.ndarray]:
        return partial(one_hot_scores, coef=self.coef_, intercept=self.intercept_)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Importances of the columns of the table, of shape (`n_features_in_`,).

        The importance of a column is the variance of its contribution to the score, with all levels equally likely.
        Splits of trees count for their column. The variance due to the noise is subtracted. Importances sum to 1, or
        are all 0. They are post-processing of the coefficients and public quantities. Selectors of scikit-learn use
        `coef_` by default, whose columns are not those of the table: pass ``importance_getter="feature_importances_"``.
        """
        check_is_fitted(self)
        return self.embedding_._encoder.importances(self.coef_, self.coef_noise_, self.n_features_in_)

    def _effect_rows(self, whole: Any) -> list[dict[str, Any]]:
        """Rows of a report on the columns; `whole` is this model, or the pipeline that ends in it."""
        return report_rows(whole)


_PEOPLE = "people"
