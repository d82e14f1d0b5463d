"""Newton steps on noisy scores and curvatures: what is planned, released, and published with its errors."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp._checks.parameters import check_switch, show
from skdp._checks.sources import cast_weights
from skdp._checks.units import Units, check_row_limit
from skdp._checks.weights import weight_of_each
from skdp._threads import blas_within_quota
from skdp._training.averaging import last_iterate
from skdp._training.estimator import GradientEstimator
from skdp._training.noise_stages import Stage
from skdp._training.optimizers import constant, momentum_sgd
from skdp._training.plan import DPSGDPlan
from skdp._training.run import PlannedReleases, Run, Targets
from skdp._training.solver import Solver
from skdp.base import with_parameters
from skdp.linear_model.coefficient_table import HasCoefficientTable
from skdp.linear_model.inference import MOST_NOISE_OF_COUNTS, NOT_SETTLED, Grounds, NewtonPath, infer
from skdp.linear_model.likelihoods import LIKELIHOODS, BoundedCounts, Likelihood, LikelihoodScores, Multinomial, Ordinal
from skdp.linear_model.newton_steps import STEP_SHARES, Pool, Step, next_theta, packed, settled_pool
from skdp.linear_model.scores import ScoreQuery, is_longer, scores_of
from skdp.mechanisms.group_clip import clip_groups
from skdp.mechanisms.sampling import FullBatch, Sampling
from skdp.mechanisms.second_moments import UnitBall
from skdp.preprocessing.histograms.purchase import noise_ratio

SCORES_SHARE = 0.1
"""Of mu**2 of a fit, for the moments of scores."""

INTERCEPT_ENTRY = 0.5
"""The entry of the intercept, where a row of norm `data_norm` has norm 1.

Of .2 to 1.5, .5 hid the fewest columns of Fulton and Adult, most of whose flags are far from 0 in the mean."""

MOST_COLUMNS = 200

FEWEST_UNSURE_ROWS = 40
"""Rows for each coefficient whose class is not nearly certain, by the released curvature, below which none is printed.

It is more than `skdp.linear_model.inference.FEWEST_ROWS`, as the curvature is large where estimates are flat by chance:
of tables of 500 rows and steep slopes, which had some 30, one in seven was printed at 30, and .906 of the intervals
held."""

_SETTINGS: dict[str, tuple[Any, ...]] = {
    "max_grad_norm": ("auto",),
    "lot_size": (None,),
    "sampling_rate": (None, 1.0),
    "max_iter": (None,),
    "learning_rate": ("auto",),
    "momentum": (0.9,),
    "average": (True,),
    "alpha": (0.0,),
}  # of gradient descent, and the values that they may have here
_SCORES = "scores"
_ROWS = 2048
_ROOM = 1.0 - 1e-12  # for the rounding of what a row adds


class RowScale(NamedTuple):
    """Rows as vectors z = (x / radius, intercept) / sqrt(1 + intercept**2), of norm 1 at most."""

    radius: float
    intercept: float

    def width(self, n_features: int) -> int:
        """Length of z."""
        return n_features + bool(self.intercept)

    def units(self, n_features: int) -> np.ndarray:
        """By what coefficients of z are multiplied to be those of x, of shape (width,)."""
        units = np.full(self.width(n_features), 1.0 / self.radius)
        units[n_features:] = self.intercept
        return units * (_ROOM / math.hypot(1.0, self.intercept))


class Outcome(NamedTuple):
    """What the targets of a task are to a likelihood: they are divided by `unit`, and `shift` is added to each eta."""

    likelihood: Likelihood
    unit: float
    shift: float
    bounds: str  # parameters at which rows are cut

    @classmethod
    def of(cls, task: Any, outputs: Any) -> Outcome:
        """That of a task that has a likelihood here."""
        name, limit = task.loss_of(outputs)
        if name == "ordinal":
            return cls(Ordinal(len(outputs.classes), entry_of(RowScale(1.0, INTERCEPT_ENTRY))), 1.0, 0.0, "data_norm")
        if name == "softmax":
            return cls(Multinomial(outputs.n_outputs), 1.0, 0.0, "data_norm")
        if name == "poisson":
            return cls(LIKELIHOODS[name], limit, math.log(outputs.bounds[1]), "data_norm or y_bounds")
        return cls(LIKELIHOODS[name], 1.0, 0.0, "data_norm")


class BoundRows:
    """Rows, targets in [0, 1] and weights, as the sums of a step need them.

    Parameters
    ----------
    rows : {ndarray, sparse matrix} of shape (n, d)
    targets : ndarray of shape (n,)
    weights : float or ndarray of shape (n,)
        In [0, 1].
    units : Units or None
    scale : RowScale
    likelihood : Likelihood
    rows_per_group : float
        Number k of the longest rows that a group counts as at most.

    Notes
    -----
    **Guarantees.** A row adds to `sums` a vector of norm 1 at most, and nothing if its weight is 0. A group adds one of
    norm k at most. By what its rows are multiplied depends on their lengths and weights alone, and on no target.

    Proof. That of a row is in `Likelihood`; a weight in [0, 1] makes the vector no longer. Its norm is at most w
    ``|z|`` also for a shorter z, as ``|z|**2 <= |z|``; with a class that is counted by r, w sqrt((``|z|**2`` + r**2) /
    (1 + r**2)). The weights of a group are multiplied by one number, with which these add up to k at most
    (`skdp.mechanisms.group_clip.clip_groups`), and the norm of a sum is at most the sum of the norms. If a group is
    replaced, sums change by 2 k at most, which is what the price of a sensitivity of k is for.

    So no likelihood is bent: a weight that does not depend on the target leaves the coefficients of a model that holds
    what they are.
    """

    def __init__(
        self,
        rows: Any,
        targets: np.ndarray,
        weights: Any,
        units: Units | None,
        scale: RowScale,
        likelihood: Likelihood,
        rows_per_group: float = 1.0,
    ) -> None:
        self._rows, self._targets, self._scale, self.likelihood = rows, targets, scale, likelihood
        self._ball = UnitBall(np.zeros(rows.shape[1]), scale.radius)
        self.units, self.weights = units, weight_of_each(weights, rows.shape[0])
        self.width = scale.width(rows.shape[1])
        if units is not None:
            self.weights = clip_groups(units, self.weights, rows_per_group, self._norms())

    def _norms(self) -> np.ndarray:
        """Return the largest norm of what each row may add, whatever its target is."""
        count_weight, longest = self.likelihood.count_weight, self.likelihood.longest
        found = [np.hypot(np.linalg.norm(self._vectors(part), axis=1), count_weight) for part in self._parts()]
        return np.concatenate(found) / longest

    def _parts(self) -> list[slice]:
        n_parts = max(1, -(-self._rows.shape[0] // _ROWS))  # a table may have no rows under add/remove
        return [slice(_ROWS * k, _ROWS * (k + 1)) for k in range(n_parts)]

    def _vectors(self, part: slice) -> np.ndarray:
        block = self._rows[part]
        block = block if isinstance(block, np.ndarray) else block.toarray()
        z = np.full((len(block), self.width), self._scale.intercept)
        self._ball.bring_in(block, inside := np.empty(block.shape))
        z[:, : block.shape[1]] = inside
        z *= _ROOM / math.hypot(1.0, self._scale.intercept)
        return z

    def with_targets(self, part: slice) -> np.ndarray:
        """Rows (z, t) of a slice."""
        return np.c_[self._vectors(part), self._targets[part]]

    def sums(self, theta: np.ndarray) -> np.ndarray:
        """The sum of scores, weighted curvatures and counts at `theta`, as a vector of the norm of all."""
        how = self.likelihood
        score, curvature, counts = np.zeros(len(theta)), np.zeros((len(theta), len(theta))), np.zeros(how.n_counts)
        for part in self._parts():
            z, targets, weights = self._vectors(part), self._targets[part], self.weights[part]
            of_part = how.sums(z, weights, *how.residuals(targets, how.lines(z, theta)))
            score += of_part[0]
            curvature += of_part[1]
            counts += weights @ how.counted(targets)
        whole = [score, how.curvature_weight * packed(curvature), how.count_weight * counts]
        return np.concatenate(whole) / how.longest

    def is_cut(self, theta: np.ndarray) -> NDArray[np.bool_]:
        """Which rows are longer than their bound, or have a mean that is cut at one."""
        how = self.likelihood
        cut = is_longer(self._rows, self._scale.radius) | (self._targets >= how.largest_target)
        for part in self._parts():
            cut[part] |= how.lines(self._vectors(part), theta)[:, 0] > how.largest_eta
        return cut


class NewtonSolver(Solver):
    """A few Newton steps on all rows, and the moments of scores at the end.

    The model has the parameters ``inference, fit_intercept, rows_per_group``, and ``_lines_learned(coef, intercept,
    noise)``, which names what was learned.
    """

    last_release = "that of the standard errors"
    _bound: BoundRows
    _steps: list[Step]
    _theta: np.ndarray

    def sampling_and_steps(self, n: int, n_features: int, n_outputs: int) -> tuple[Sampling, int]:
        return FullBatch(), len(STEP_SHARES)

    def planned_releases(self, n: int, n_features: int, n_outputs: int) -> PlannedReleases:
        """See `Solver`: there is no offset to correct, as nothing is clipped, and the first step finds the start."""
        self._refuse_settings()
        sampling, n_steps = self.sampling_and_steps(n, n_features, n_outputs)
        stages = tuple(Stage(1, 1.0 / math.sqrt(share * n_steps)) for share in STEP_SHARES)
        scores = noise_ratio(SCORES_SHARE, sampling.rate, n_steps)
        return PlannedReleases(sampling, n_steps, stages, {_SCORES: scores}, last_iterate())

    def plan_run(self, releases: PlannedReleases, noise: float, n: int, n_features: int, outputs: Any) -> Run:
        likelihood = self._likelihood(outputs)
        n_blocks = likelihood.n_blocks
        if n_blocks * n_features > MOST_COLUMNS:
            of_classes = f" and {n_blocks + 1} classes" if n_blocks > 1 else ""
            is_choice = "inference" in self.model.get_params(deep=False)
            what, other = (
                ("inference=True", "use inference=False, or ") if is_choice else (type(self.model).__name__, "")
            )
            raise ValueError(
                f"{what} with {n_features} columns{of_classes}: {other}give {MOST_COLUMNS // n_blocks} columns at most."
            )
        if likelihood.n_lines > MOST_COLUMNS:
            raise ValueError(
                f"classes has too many, with a threshold between each two of them: name {MOST_COLUMNS + 1} at most."
            )
        radius = self._check_radius(n_features)
        scale = RowScale(radius, INTERCEPT_ENTRY if getattr(self.model, "fit_intercept", True) else 0.0)
        plan = DPSGDPlan(
            releases.sampling, self._group_limit, noise, releases.n_steps, n / self._group_limit, releases.stages
        )
        optimizer = momentum_sgd(constant(1.0), 0.0, 0.0)
        return Run(releases, plan, outputs, n, scale, radius, 1.0, optimizer)

    @property
    def _group_limit(self) -> float:
        """Number of rows that a record counts as at most, which is the norm of what it adds."""
        return float(self.model.rows_per_group or 1)

    def _refuse_settings(self) -> None:
        model = self.model
        check_switch("inference", model.inference)
        check_row_limit(model.rows_per_group, model._unit())
        if not self.anew or model.checkpoint is not None:
            raise ValueError(
                "inference=True with warm_start, partial_fit or a checkpoint: each of its fits starts anew; use "
                "inference=False, or leave these out."
            )
        for name, (value, *others) in _SETTINGS.items():
            given = getattr(model, name, value)
            if not any(given is each or given == each for each in (value, *others)):
                raise ValueError(
                    f"{name}={show(given)} with inference=True, whose Newton steps have no such setting: set "
                    f"{name}={value!r}."
                )

    def n_free(self, run: Run, n_features: int, outputs: Any) -> int:
        return len(self._likelihood(outputs).start(run.shape.width(n_features), 1.0))

    def _likelihood(self, outputs: Any) -> Likelihood:
        return Outcome.of(self.target, outputs).likelihood

    def _bind(self, run: Run, rows: Any, targets: Targets) -> BoundRows:
        outcome = self._outcome(run)
        values, weights = targets.values / outcome.unit, cast_weights(targets.weights, np.float64)
        given = targets.units, run.shape, outcome.likelihood, run.plan.max_grad_norm
        return BoundRows(rows, values, weights, *given)

    def _outcome(self, run: Run) -> Outcome:
        return Outcome.of(self.target, run.outputs)

    def train(self, run: Run, rows: Any, targets: Targets) -> tuple[np.ndarray, int]:
        """See `Solver`: the coefficients of z."""
        self._bound = bound = self._bind(run, rows, targets)
        stream = run.stream.spawn("Newton steps")
        last = entry_of(run.shape)
        theta, steps = bound.likelihood.start(bound.width, last), list[Step]()
        state = theta, steps
        try:
            with blas_within_quota():
                for number in range(run.plan.n_steps):
                    theta, steps = state
                    mechanism = run.plan.mechanism_at(number)
                    released = mechanism.release(bound.sums(theta), stream)
                    steps = [*steps, Step.of(theta, released, mechanism.standard_deviation, bound.likelihood)]
                    # One assignment ends the step: an interrupt before it leaves the state of the step before.
                    state = next_theta(steps, bound.likelihood, last, run.n_public), steps
        except KeyboardInterrupt:
            pass
        theta, self._steps = state
        return theta, len(self._steps)

    def learned(self, theta: np.ndarray, run: Run, n_done: int) -> dict[str, Any]:
        self._theta, outcome = theta.astype(np.float64), self._outcome(run)
        form = outcome.likelihood.form(run.shape.units(self.model.n_features_in_))
        coefs = (form @ theta).reshape(outcome.likelihood.n_blocks, -1)
        others = {"learning_rate_": run.learning_rate, "_fitted_inference": None, "_fitted_form_of_coef": None}
        return {**self._lines(coefs, np.full(coefs.shape, math.nan), outcome.shift), **others}

    def _lines(self, coefs: np.ndarray, noise: np.ndarray, shift: float) -> dict[str, Any]:
        d = self.model.n_features_in_
        return self.model._lines_learned(coefs[:, :d], coefs[:, d:] + shift, noise[:, :d])

    def corrected(self, run: Run, rows: Any, targets: Targets) -> dict[str, Any]:
        """See `Solver`: there is nothing to correct; the moments of scores are bought, and errors follow."""
        model, bound, theta, entry = self.model, self._bound, self._theta, entry_of(run.shape)
        pool, settled = settled_pool(self._steps, bound.likelihood, entry, run.n_public)
        root = math.sqrt(max(float(np.trace(pool.equations.gram)), pool.equations.edge) / run.n_public)
        rows_left = bound.likelihood.rows(pool.equations.gram, pool.counts, entry)
        if rows_left < FEWEST_UNSURE_ROWS * len(theta):
            doubt = f"fewer than {FEWEST_UNSURE_ROWS} rows a coefficient that are not nearly certain"
        elif not settled:
            doubt = NOT_SETTLED
        else:
            doubt = ""
        first = Pool.of(self._steps[:1], run.n_public, bound.likelihood, 0.0)
        most, spread, one = run.plan.max_grad_norm, 1.0, math.exp(-self._outcome(run).shift)
        if targets.units is not None or np.ndim(targets.weights) > 0:
            total = bound.likelihood.total_weight(first.equations.gram, first.counts, entry)
            spread = max(1.0, most * run.n_public / max(total, 1.0))
        clip = bound.likelihood.clip(root, one, spread, most)
        how = LikelihoodScores(theta, bound.likelihood, clip)
        query = ScoreQuery(bound.with_targets, how)
        (sums := query.new_sum(model.adjacency)).add(bound.is_cut(theta), bound.weights, bound.units)
        mechanism = run.mechanism(_SCORES, query.sensitivity(model.adjacency))
        noisy = sums.read(mechanism.release(sums.vector, run.stream.spawn(_SCORES)))
        found = scores_of(noisy, mechanism.standard_deviation * sums.rounding, how.clip)
        slopes = bound.likelihood.slopes(theta, bool(run.shape.intercept))
        offset = np.zeros(len(theta))
        if entry:
            offset[-1] = self._outcome(run).shift / entry  # as if targets were not divided by their unit
        most_noise = MOST_NOISE_OF_COUNTS if isinstance(bound.likelihood, BoundedCounts) else math.inf
        grounds = Grounds(
            model.data_norm is not None or model._fitted_row_norm is not None,
            self._outcome(run).bounds,
            doubt,
            NewtonPath(theta + offset, slopes, first.equations, most_noise),
        )
        found = found._replace(meat=how.whole(found.meat))
        form = bound.likelihood.form(run.shape.units(model.n_features_in_))
        shape = bound.likelihood.n_blocks, -1
        inference = infer(pool.equations, theta - pool.theta, found, form, grounds, bound.likelihood.spread(theta))
        coefs = (form @ theta).reshape(shape)
        lines = self._lines(coefs, inference.noise.reshape(shape), self._outcome(run).shift)
        coefs[:, model.n_features_in_ :] += self._outcome(run).shift
        return {**lines, "_fitted_inference": inference._replace(estimate=coefs.ravel(), n_lines=len(coefs))}


def entry_of(scale: RowScale) -> float:
    """The entry of the intercept in each z."""
    return scale.intercept * _ROOM / math.hypot(1.0, scale.intercept)


@with_parameters
class NewtonEstimator(HasCoefficientTable, GradientEstimator):
    """Base class of estimators that are fitted by Newton steps alone."""

    # What other gradient estimators have a choice of.
    inference, checkpoint, warm_start, merge_equal_rows, verbose = True, None, False, "auto", 0
    _: KW_ONLY
    epsilon: Any = 1.0
    delta: float | str = "auto"
    noise_multiplier: float | None = None
    data_norm: float | None = None
    weight_bound: Any = None
    rows_per_group: int | None = None
    adjacency: Any = None
    accountant: Any = None
    random_state: Any = None

    def _solver(self, target: Any, n_features: int, *, anew: bool = True) -> NewtonSolver:
        return NewtonSolver(self, target, anew=anew)
