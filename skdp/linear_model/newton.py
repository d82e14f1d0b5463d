"""Newton steps on noisy scores and curvatures: plan, releases and standard errors."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY
from typing import Any, NamedTuple, cast

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import brentq

from skdp._checks.groups import Units, check_row_limit
from skdp._checks.parameters import check_switch, radius_of, show
from skdp._checks.sources import cast_weights
from skdp._checks.weights import weight_of_each
from skdp._dpsgd.estimator import GradientEstimator
from skdp._dpsgd.loop import constant, last_iterate, momentum_sgd
from skdp._dpsgd.plan import DPSGDPlan, PlannedReleases, Stage
from skdp._dpsgd.solver import Run, Solver, Targets
from skdp._kernels.threads import blas_within_quota
from skdp.base.estimator import with_parameters
from skdp.linear_model.coefficient_table import HasCoefficientTable
from skdp.linear_model.inference import NOT_SETTLED, Grounds, NewtonPath, infer, solve_without_bias
from skdp.linear_model.likelihoods import LIKELIHOODS, Likelihood, LikelihoodScores, Multinomial, OneLine, Ordinal
from skdp.linear_model.scores import Equations, Noise, ScoreQuery, is_longer, scores_of
from skdp.mechanisms.bounded_sum import clip_groups
from skdp.mechanisms.gaussian import noise_ratio
from skdp.mechanisms.sampling import FullBatch
from skdp.mechanisms.second_moments import UnitBall

STEP_SHARES = (0.03, 0.03, 0.03, 0.03, 0.03, 0.05, 0.3, 0.5)
"""Fraction of mu squared of each step. The first one provides the starting point, and the last two are pooled.

From too small coefficients, a step changes log-odds by about 1. With five steps, log-odds of -6.2 were estimated as
-5.5, and 10% of the intervals covered them (13 events in a category, 20,000 rows, epsilon 1 and 4)."""

UNSETTLED = 0.1
"""Squared bias over variance above which there are no intervals: at 0.3 standard errors, 94% of the intervals cover."""

_DAMPING = 0.7  # least eigenvalue of a step's curvature, over the edge


def packed(matrix: np.ndarray) -> np.ndarray:
    """Lower triangle of a symmetric matrix, scaled so that its Euclidean norm is the Frobenius norm."""
    rows, columns = np.tril_indices(len(matrix))
    return matrix[rows, columns] * np.where(rows == columns, 1.0, math.sqrt(2.0))


def unpacked(vector: np.ndarray, width: int) -> np.ndarray:
    """Symmetric matrix from the output of `packed`."""
    rows, columns = np.tril_indices(width)
    matrix = np.zeros((width, width))
    matrix[rows, columns] = matrix[columns, rows] = vector / np.where(rows == columns, 1.0, math.sqrt(2.0))
    return matrix


class Step(NamedTuple):
    """Release of one step at `theta`; `deviation` is the standard deviation of the noise of an entry of the score.

    Score and curvature include the terms of the class counts.
    """

    theta: np.ndarray
    score: np.ndarray
    curvature: np.ndarray
    deviation: float
    counts: np.ndarray = np.empty(0)

    @classmethod
    def of(cls, theta: np.ndarray, released: np.ndarray, deviation: float, likelihood: Likelihood) -> Step:
        """Split a release of `BoundRows.sums`."""
        d = len(theta)
        score, matrix, counts = np.split(likelihood.longest * released, [d, d + d * (d + 1) // 2])
        if likelihood.n_counts:
            counts = counts / likelihood.count_weight
        whole = likelihood.completed(theta, score, unpacked(matrix, d) / likelihood.curvature_weight, counts)
        return cls(theta, *whole, likelihood.longest * deviation, counts)


class Pool(NamedTuple):
    """Steps pooled by precision: coefficients are theta plus the solution of the equations."""

    theta: np.ndarray
    equations: Equations
    counts: np.ndarray

    @classmethod
    def of(cls, steps: list[Step], n: int, likelihood: Likelihood, intercept: float) -> Pool:
        """Pool released steps; `n` is the public number of rows or groups, and `intercept` its entry in each z."""
        precisions = np.array([1.0 / each.deviation**2 for each in steps])
        weights = precisions / precisions.sum()
        theta = weights @ np.array([each.theta for each in steps])
        score = weights @ np.array([each.score for each in steps])
        matched = [likelihood.matched(each.curvature, each.score, intercept) for each in steps]
        curvature = np.tensordot(weights, np.array(matched), 1)
        deviation = 1.0 / math.sqrt(precisions.sum())
        noise = Noise(deviation / likelihood.curvature_weight, deviation, 0.0)
        counts = weights @ np.array([each.counts for each in steps])
        return cls(theta, Equations(curvature, score, 0.0, noise, n), counts)

    @property
    def trace_of_inverse(self) -> float:
        """Sum of the variances of such a move, for noise of standard deviation 1 on the score."""
        values = np.linalg.eigvalsh(self.equations.gram)
        return float(np.sum(1.0 / np.maximum(values, _DAMPING * self.equations.edge)))

    def damped(self, score: np.ndarray) -> np.ndarray:
        """Move of one more step with this score, with eigenvalues kept above the noise."""
        values, vectors = eigh(self.equations.gram)
        least = _DAMPING * self.equations.edge
        return (vectors / np.maximum(values, least)) @ (vectors.T @ score)


def first_guess(step: Step, likelihood: Likelihood, intercept: float, n: int) -> np.ndarray:
    """Return coefficients from one step at a constant mean, which is least squares on the scale of the model.

    `intercept` is the entry of the intercept in each z, 0 without one.
    """
    pool = Pool.of([step], n, likelihood, 0.0)
    if not intercept or likelihood.n_lines > 1 or likelihood.n_counts:
        theta = step.theta + pool.damped(step.score)
        chance = step.deviation**2 * pool.trace_of_inverse + len(theta)
        return likelihood.at_shares(theta, step.curvature, step.counts, chance)
    one_line = cast(OneLine, likelihood)
    mean = one_line.mean(np.array([one_line.first_eta]))
    slope = float(one_line.slope(mean)[0])
    gram = step.curvature / slope
    totals = gram[:, -1] / intercept
    noise = pool.equations.edge / slope
    count = max(float(totals[-1]) / intercept, noise / intercept**2)
    products = step.score + mean * totals
    average = float(np.clip(products[-1] / intercept / count, 0.0, 1.0))
    values, vectors = eigh(gram)
    inverse = (vectors / np.maximum(values, _DAMPING * noise)) @ vectors.T
    line = inverse @ (products - average * totals)
    center = float(line @ totals) / count
    # What noise and sampling add to the variance of the scores of least squares is taken off twice: a guess that is
    # too flat is corrected by the next step, one that is too steep is not.
    by_chance = (step.deviation**2 * float(np.trace(inverse)) + average * (1.0 - average) * len(line)) / count
    variance = max(0.0, float(line @ gram @ line) / count - center**2 - 2.0 * by_chance)
    factor, eta = one_line.guess(average, math.sqrt(variance))
    theta = factor * line
    theta[-1] += (eta - factor * center) / intercept
    return theta


def next_theta(steps: list[Step], likelihood: Likelihood, intercept: float, n: int) -> np.ndarray:
    """Return the coefficients after these steps: post-processing."""
    if len(steps) == 1:
        return first_guess(steps[0], likelihood, intercept, n)
    if len(steps) < len(STEP_SHARES):
        last = best_between(steps[-2], steps[-1])
        pool = Pool.of([last], n, likelihood, intercept)
        move = pool.damped(last.score)
        if likelihood.steepest < math.inf:
            move *= stretch(steps[-2], last, move, pool.equations.edge)
        return likelihood.allowed(last.theta, last.theta + move)
    pool, _ = settled_pool(steps, likelihood, intercept, n)
    theta = pool.theta + solve_without_bias(pool.equations)
    if intercept:
        theta[-1] -= bias_of_noise(steps, pool, likelihood, intercept) / intercept
    return likelihood.allowed(pool.theta, theta)


def best_between(before: Step, last: Step) -> Step:
    """Return the last step, or an interpolated one if the last move was too long.

    A move is too long if the slope of the likelihood at its end is negative, with at least a quarter of the initial
    slope. The score between both ends is interpolated by a cubic (Hermite), and the curvature by its average.
    """
    move = last.theta - before.theta
    slopes = -before.curvature @ move, -last.curvature @ move

    def score(t: float) -> np.ndarray:
        s = 1.0 - t
        ends = s * s * (1.0 + 2.0 * t) * before.score + t * t * (1.0 + 2.0 * s) * last.score
        return ends + s * s * t * slopes[0] - s * t * t * slopes[1]

    if not float(last.score @ move) < -0.25 * float(before.score @ move) < 0.0:  # the slope at the end of the step
        return last
    t = float(brentq(lambda t: float(score(t) @ move), 0.0, 1.0))
    curvature = (1.0 - t) * before.curvature + t * last.curvature
    return last._replace(theta=before.theta + t * move, score=score(t), curvature=curvature)


def stretch(before: Step, last: Step, move: np.ndarray, edge: float) -> float:
    """Return the factor by which a Newton move is too short, because the curvature decreases along it.

    The curvature decreased by a factor of exp(-r) along the previous move and is extrapolated. The score is then 0
    after -log(1 - r) / r of the move. Too long moves are reverted by the next step.
    """
    least = edge * float(move @ move)
    falls = [max(float(move @ each.curvature @ move), least) for each in (before, last)]
    lengths = float((last.theta - before.theta) @ last.curvature @ move) / falls[1]
    if lengths <= 0.0 or falls[1] >= falls[0]:
        return 1.0
    rate = min(math.log(falls[0] / falls[1]) / lengths, 0.8)  # which doubles a move at most
    return -math.log1p(-rate) / rate


def bias_of_noise(steps: list[Step], pool: Pool, likelihood: Likelihood, intercept: float) -> float:
    """Return the mean error of eta in the pool due to the noise of the initial coefficients of its steps."""
    slopes = max(float(pool.equations.gram[-1, -1]), pool.equations.edge) / intercept**2
    values = np.maximum(np.linalg.eigvalsh(pool.equations.gram), pool.equations.edge)
    of_noise = float(np.sum(1.0 / values)) / slopes  # variance of eta, for a noise of 1 in a score
    precisions = np.array([1.0 / each.deviation**2 for each in steps[-2:]])
    biases = [likelihood.bias_of_variance * each.deviation**2 * of_noise for each in steps[-3:-1]]
    return float(precisions @ biases / precisions.sum())


def settled_pool(steps: list[Step], likelihood: Likelihood, intercept: float, n: int) -> tuple[Pool, bool]:
    """Return the pool for the estimates, and whether its bias is small compared with the errors.

    The second last step leads to a score of 0, up to its noise and the curvature change. The last score therefore
    consists of the noise of two steps and of this bias, b**2 in units of the variance. If it is small, both steps are
    pooled. Otherwise, only the last step is used, whose own bias is of second order, b**4 over the curvature of all n
    rows (or of the rarest of many classes). If linear predictors are large, steps may not converge, and noise may hide
    a bias.
    """
    # What the last step would move, less what noise alone would, in standard errors.
    before, last = steps[-2:]
    pool = Pool.of([before, last], n, likelihood, intercept)
    noise, (values, vectors) = pool.equations.noise, eigh(pool.equations.gram)
    precisions = 1.0 / (np.maximum(values, pool.equations.edge) + noise.product**2)
    moved = float(np.sum((last.theta - before.theta) ** 2))
    variance = before.deviation**2 + last.deviation**2
    variance += moved * (noise.gram / noise.product * before.deviation) ** 2
    root = np.sqrt(precisions)[:, None] * (vectors.T @ np.c_[np.eye(len(values)), likelihood.spread(last.theta)])
    of_noise = root @ root.T  # the covariance of the noise, where errors have variance 1
    by_noise, by_chance = variance * float(np.trace(of_noise)), variance * 32**0.5 * float(np.linalg.norm(of_noise))
    excess = max(0.0, float(precisions @ (vectors.T @ last.score) ** 2) - by_noise - by_chance)
    if is_steep(steps[0], last.theta, likelihood, n):
        excess += by_chance
    # Where that is much, the last step alone counts, and it has to be sure that few rows decide.
    share = last.deviation**2 / (before.deviation**2 + last.deviation**2)  # of the step before, in the pool
    if share**2 * excess <= UNSETTLED:
        return pool, True
    many = likelihood.rows(pool.equations.gram, pool.counts, intercept) if likelihood.n_lines > 1 and intercept else n
    return Pool.of([last], n, likelihood, intercept), excess**2 <= UNSETTLED * max(many, 0.0)


def is_steep(first: Step, theta: np.ndarray, likelihood: Likelihood, n: int) -> bool:
    """Whether multiclass linear predictors are large, by the curvature of the first step."""
    if likelihood.steepest == math.inf:
        return False
    lines = theta.reshape(likelihood.n_lines, -1)
    moments = likelihood.row_moments(first.curvature)
    return float(np.einsum("ia,ab,ib->", lines, moments, lines)) > likelihood.steepest**2 * n


SCORES_SHARE = 0.1
"""Fraction of mu squared of a fit for the moments of the scores."""

INTERCEPT_ENTRY = 0.5
"""The entry of the intercept, where a row of norm `data_norm` has norm 1.

Of values from 0.2 to 1.5, 0.5 hid the fewest columns of Fulton and Adult, whose indicator columns have means far from
0."""

MOST_COLUMNS = 200

FEWEST_UNSURE_ROWS = 40
"""Informative rows per coefficient (by the released curvature) below which no interval is reported.

It exceeds ``FEWEST_ROWS``, because small estimates increase the curvature by chance. At 30, one in seven tables of 500
rows with large slopes would have intervals, with a coverage of 0.906."""

_SCORES = "scores"
_ROWS = 2048
_ROOM = 1.0 - 1e-12  # for the rounding of the contribution of a row


class RowScale(NamedTuple):
    """Rows as vectors z = (x / radius, intercept) / sqrt(1 + intercept**2), of norm 1 at most."""

    radius: float
    intercept: float

    def width(self, n_features: int) -> int:
        """Length of z."""
        return n_features + bool(self.intercept)

    def units(self, n_features: int) -> np.ndarray:
        """Factors from coefficients of z to coefficients of x, of shape (width,)."""
        units = np.full(self.width(n_features), 1.0 / self.radius)
        units[n_features:] = self.intercept
        return units * (_ROOM / math.hypot(1.0, self.intercept))


class Outcome(NamedTuple):
    """Targets of a task for a likelihood: divided by `unit`, with `shift` added to each eta."""

    likelihood: Likelihood
    unit: float
    shift: float
    bounds: str  # parameters that clip rows

    @classmethod
    def of(cls, task: Any, outputs: Any) -> Outcome:
        """Return the outcome of a task with a likelihood."""
        name, limit = task.loss_of(outputs)
        if name == "ordinal":
            return cls(Ordinal(len(outputs.classes), entry_of(RowScale(1.0, INTERCEPT_ENTRY))), 1.0, 0.0, "data_norm")
        if name == "softmax":
            return cls(Multinomial(outputs.n_outputs), 1.0, 0.0, "data_norm")
        if name == "poisson":
            return cls(LIKELIHOODS[name], limit, math.log(outputs.bounds[1]), "data_norm or y_bounds")
        return cls(LIKELIHOODS[name], 1.0, 0.0, "data_norm")


class BoundRows:
    """Rows, targets in [0, 1] and weights, for the sums of a step.

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
        Maximum number k of rows of the largest norm that a group counts as.

    Notes
    -----
    **Guarantees.** A row adds a vector of norm at most 1 to `sums`, and nothing if its weight is 0. A group adds a
    vector of norm at most k. The factors of its rows depend on their norms and weights only, not on targets.

    Proof. See `Likelihood` for rows; a weight in [0, 1] does not increase the norm. It is at most w ``|z|`` for a
    shorter z, because ``|z|**2 <= |z|``; with a class indicator of weight r, w sqrt((``|z|**2`` + r**2) / (1 + r**2)).
    The weights of a group are multiplied by one number so that these bounds add up to at most k, and the norm of a sum
    is at most the sum of the norms. Replacing a group changes the sums by at most 2 k, which a sensitivity of k
    accounts for.

    The likelihood is not biased: weights that do not depend on the target leave the coefficients of a correct model
    unchanged.
    """

    def __init__(
        self, rows: Any, targets: np.ndarray, weights: Any, units: Units | None, scale: RowScale,
        likelihood: Likelihood, rows_per_group: float = 1.0,
    ) -> None:  # fmt: skip
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
        """Sum of scores, weighted curvatures and counts at `theta`, as one vector."""
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

    def is_cut(self, theta: np.ndarray) -> np.ndarray:
        """Which rows exceed their norm bound, or have a clipped mean."""
        how = self.likelihood
        cut = is_longer(self._rows, self._scale.radius) | (self._targets >= how.largest_target)
        for part in self._parts():
            cut[part] |= how.lines(self._vectors(part), theta)[:, 0] > how.largest_eta
        return cut


class NewtonSolver(Solver):
    """Newton steps on all rows, followed by the second moments of the scores.

    The model must have the parameters ``inference, fit_intercept, rows_per_group``, and the method
    ``_lines_learned(coef, intercept, noise)``, which returns the learned attributes.
    """

    last_release = "that of the standard errors"
    _bound: BoundRows
    _steps: list[Step]
    _theta: np.ndarray

    def planned_releases(self, n: int, n_features: int, n_outputs: int) -> PlannedReleases:
        """See `Solver`: the intercept needs no correction, and the first step provides the starting point."""
        self._reject_settings()
        n_steps = len(STEP_SHARES)
        stages = tuple(Stage(1, 1.0 / math.sqrt(share * n_steps)) for share in STEP_SHARES)
        scores = noise_ratio(SCORES_SHARE, 1.0, n_steps)
        return PlannedReleases(FullBatch(), n_steps, stages, {_SCORES: scores}, last_iterate())

    def plan_run(self, releases: PlannedReleases, noise: float, n: int, n_features: int, outputs: Any) -> Run:
        likelihood = Outcome.of(self.target, outputs).likelihood
        n_blocks = likelihood.n_blocks
        if n_blocks * n_features > MOST_COLUMNS:
            of_classes = f" and {n_blocks + 1} classes" if n_blocks > 1 else ""
            what, other = type(self.model).__name__, "Use"
            if "inference" in self.model.get_params(deep=False):
                what, other = "inference=True", "Set inference=False, or use"
            raise ValueError(
                f"{what} does not support {n_features} columns{of_classes}. {other} at most {MOST_COLUMNS // n_blocks} "
                "columns."
            )
        if likelihood.n_lines > MOST_COLUMNS:
            raise ValueError(f"`classes` must have at most {MOST_COLUMNS + 1} classes.")
        radius = radius_of(self.model, n_features)
        scale = RowScale(radius, INTERCEPT_ENTRY if getattr(self.model, "fit_intercept", True) else 0.0)
        limit = float(self.model.rows_per_group or 1)  # rows that a record counts as, the norm of what it adds
        plan = DPSGDPlan(releases.sampling, limit, noise, releases.n_steps, n / limit, releases.stages)
        optimizer = momentum_sgd(constant(1.0), 0.0, 0.0)
        return Run(releases, plan, outputs, n, scale, radius, 1.0, optimizer)

    def _reject_settings(self) -> None:
        model = self.model
        check_switch("inference", model.inference)
        check_row_limit(model.rows_per_group, model._unit())
        if not self.anew or model.checkpoint is not None:
            raise ValueError(
                "inference=True does not support warm_start, partial_fit and checkpoint. Set inference=False, or do "
                "not use these."
            )
        settings: dict[str, tuple[Any, ...]] = {
            "max_grad_norm": ("auto",), "lot_size": (None,), "sampling_rate": (None, 1.0), "max_iter": (None,),
            "learning_rate": ("auto",), "momentum": (0.9,), "average": (True,), "alpha": (0.0,),
        }  # fmt: skip
        for name, (value, *others) in settings.items():  # of gradient descent, with the values that they may have here
            given = getattr(model, name, value)
            if not any(given is each or given == each for each in (value, *others)):
                raise ValueError(
                    f"{name}={show(given)} is not supported with inference=True, which uses Newton steps. Set "
                    f"{name}={value!r}."
                )

    def n_free(self, run: Run, n_features: int, outputs: Any) -> int:
        return len(Outcome.of(self.target, outputs).likelihood.start(run.shape.width(n_features), 1.0))

    def _bind(self, run: Run, rows: Any, targets: Targets) -> BoundRows:
        outcome = Outcome.of(self.target, run.outputs)
        values, weights = targets.values / outcome.unit, cast_weights(targets.weights, np.float64)
        given = targets.units, run.shape, outcome.likelihood, run.plan.max_grad_norm
        return BoundRows(rows, values, weights, *given)

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
                    mechanism = run.plan.mechanisms[number]
                    released = mechanism.release(bound.sums(theta), stream)
                    steps = [*steps, Step.of(theta, released, mechanism.standard_deviation, bound.likelihood)]
                    # One assignment ends the step: an interrupt before it leaves the state of the step before.
                    state = next_theta(steps, bound.likelihood, last, run.n_public), steps
        except KeyboardInterrupt:
            pass
        theta, self._steps = state
        return theta, len(self._steps)

    def learned(self, theta: np.ndarray, run: Run, n_done: int) -> dict[str, Any]:
        self._theta, outcome = theta.astype(np.float64), Outcome.of(self.target, run.outputs)
        form = outcome.likelihood.form(run.shape.units(self.model.n_features_in_))
        coefs = (form @ theta).reshape(outcome.likelihood.n_blocks, -1)
        others = {"learning_rate_": run.learning_rate, "_fitted_inference": None, "_fitted_form_of_coef": None}
        return {**self._lines(coefs, np.full(coefs.shape, math.nan), outcome.shift), **others}

    def _lines(self, coefs: np.ndarray, noise: np.ndarray, shift: float) -> dict[str, Any]:
        d = self.model.n_features_in_
        return self.model._lines_learned(coefs[:, :d], coefs[:, d:] + shift, noise[:, :d])

    def corrected(self, run: Run, rows: Any, targets: Targets) -> dict[str, Any]:
        """See `Solver`: nothing is corrected; the moments of the scores are released, and standard errors follow."""
        model, bound, theta, entry = self.model, self._bound, self._theta, entry_of(run.shape)
        outcome, likelihood = Outcome.of(self.target, run.outputs), bound.likelihood
        # Doubts in all coefficients, by what the steps released.
        pool, settled = settled_pool(self._steps, likelihood, entry, run.n_public)
        rows_left, doubt = likelihood.rows(pool.equations.gram, pool.counts, entry), "" if settled else NOT_SETTLED
        if rows_left < FEWEST_UNSURE_ROWS * len(theta):
            doubt = f"fewer than {FEWEST_UNSURE_ROWS} informative rows per coefficient"
        # The norm at which scores of records are clipped.
        root = math.sqrt(max(float(np.trace(pool.equations.gram)), pool.equations.edge) / run.n_public)
        first = Pool.of(self._steps[:1], run.n_public, likelihood, 0.0)
        most, spread, one = run.plan.max_grad_norm, 1.0, math.exp(-outcome.shift)
        if targets.units is not None or np.ndim(targets.weights) > 0:
            total = likelihood.total_weight(first.equations.gram, first.counts, entry)
            spread = max(1.0, most * run.n_public / max(total, 1.0))
        how = LikelihoodScores(theta, likelihood, likelihood.clip(root, one, spread, most))
        # The release of their moments, at the released coefficients.
        query = ScoreQuery(bound.with_targets, how)
        (sums := query.new_sum(model.adjacency)).add(bound.is_cut(theta), bound.weights, bound.units)
        mechanism = run.mechanism(_SCORES, query.sensitivity(model.adjacency))
        noisy = sums.read(mechanism.release(sums.vector, run.stream.spawn(_SCORES)))
        found = scores_of(noisy, mechanism.standard_deviation * sums.rounding, how.clip)
        found = found._replace(meat=how.whole(found.meat))
        # The rest is post-processing, in the units of y and X.
        slopes, offset = likelihood.slopes(theta, bool(run.shape.intercept)), np.zeros(len(theta))
        if entry:
            offset[-1] = outcome.shift / entry  # as if targets were not divided by their unit
        path = NewtonPath(theta + offset, slopes, first.equations, likelihood.most_noise)
        is_known = model.data_norm is not None or model._fitted_row_norm is not None
        grounds = Grounds(is_known, outcome.bounds, doubt, path)
        form = likelihood.form(run.shape.units(model.n_features_in_))
        shape = likelihood.n_blocks, -1
        inference = infer(pool.equations, theta - pool.theta, found, form, grounds, likelihood.spread(theta))
        coefs = (form @ theta).reshape(shape)
        lines = self._lines(coefs, inference.noise.reshape(shape), outcome.shift)
        coefs[:, model.n_features_in_ :] += outcome.shift
        return {**lines, "_fitted_inference": inference._replace(estimate=coefs.ravel(), n_lines=len(coefs))}


def entry_of(scale: RowScale) -> float:
    """The entry of the intercept in each z."""
    return scale.intercept * _ROOM / math.hypot(1.0, scale.intercept)


@with_parameters
class NewtonEstimator(HasCoefficientTable, GradientEstimator):
    """Base class of estimators that are always fitted by Newton steps."""

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
