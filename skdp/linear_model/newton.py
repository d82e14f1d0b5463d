"""Newton steps on noisy scores and curvatures, of which the last ones give estimates whose errors are known."""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.optimize import brentq

from skdp._checks.parameters import check_switch, show
from skdp._checks.sources import cast_weights
from skdp._checks.units import Units
from skdp._checks.weights import weight_of_each
from skdp._threads import blas_within_quota
from skdp._training.averaging import Averaging, last_iterate
from skdp._training.noise_stages import Stage
from skdp._training.optimizers import constant, momentum_sgd
from skdp._training.plan import DPSGDPlan
from skdp._training.recipe import Recipe
from skdp._training.run import OFFSET, Plan, Run, Targets
from skdp._typing import Doubles, Vector
from skdp.base import Budget
from skdp.linear_model.equations import Equations, Noise
from skdp.linear_model.inference import Grounds, infer, solve_without_bias
from skdp.linear_model.likelihoods import LIKELIHOODS, Likelihood, LikelihoodScores, Multinomial, lines_of
from skdp.linear_model.scores import is_longer, release_scores, sum_scores
from skdp.mechanisms.sampling import FullBatch, Sampling
from skdp.mechanisms.second_moments import UnitBall, sensitivity
from skdp.mechanisms.unit_shares import shares_of_units
from skdp.preprocessing.histograms.purchase import SideRelease

STEP_SHARES = (0.04, 0.06, 0.1, 0.3, 0.5)
"""Of mu**2 of all steps, for each step. The first one says where to begin, and the last two are pooled.

Of three, estimates were still an error too flat where one column moves log-odds by 7, at 100,000 rows and epsilon 8."""

SCORES_SHARE = 0.1
"""Of mu**2 of a fit, for the moments of scores."""

INTERCEPT_ENTRY = 0.5
"""The entry of the intercept, where a row of norm `data_norm` has norm 1.

Of .2 to 1.5, .5 hid the fewest columns of Fulton and Adult, most of whose flags are far from 0 in the mean."""

MOST_COLUMNS = 200

LEAST_CURVATURE = 0.75
"""Least eigenvalue of the noisy curvature at which intervals hold, over the edge of its noise.

It may be less than for least squares, as the noise of the curvature multiplies a last move only, which is small."""

FEWEST_UNSURE_ROWS = 40
"""Rows for each coefficient whose class is not nearly certain, by the released curvature, below which none is printed.

It is more than `skdp.linear_model.inference.FEWEST_ROWS`, as the curvature is large where estimates are flat by chance:
of tables of 500 rows and steep slopes, which had some 30, one in seven was printed at 30, and .906 of the intervals
held."""

STEEPEST_CLASSES = 4.5
"""Root mean square of the lines of a row, of many classes, beyond which as many steps may not settle.

At 50,000 rows of 3 or 5 classes without noise estimates were within .02 of an error where it was 4.1 or less, up to .6
of one at 4.9, and 5 at 8. What is left is hidden by noise: of 3 classes and 5.7, .79 of the intervals held."""

UNSETTLED = 0.1
"""Squared bias, over the variance, from which there are no intervals: at .3 of a standard error 94 % of them hold."""

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
_DAMPING = 0.7  # least eigenvalue of a step's curvature, over the edge
_TOO_FAR = 0.25  # slope of the likelihood at the end of a step, over that at its beginning
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

    def units(self, n_features: int) -> Doubles:
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

    Notes
    -----
    **Guarantees.** A row adds to `sums` a vector of norm 1 at most, and nothing if its weight is 0. So does a unit: its
    rows have a share that depends on their lengths and weights alone, and on no target.

    Proof. That of a row is in `Likelihood`; a weight in [0, 1] makes the vector no longer. Its norm is at most w
    ``|z|`` also for a shorter z, as ``|z|**2 <= |z|``. The rows of a unit are multiplied by 1 over the sum of w
    ``|z|`` where that is above 1, and the norm of a sum is at most the sum of the norms.

    So no likelihood is bent: a weight that does not depend on the target leaves the coefficients of a model that holds
    what they are.
    """

    def __init__(
        self, rows: Any, targets: Doubles, weights: Any, units: Units | None, scale: RowScale, likelihood: Likelihood
    ) -> None:
        self._rows, self._targets, self._scale, self.likelihood = rows, targets, scale, likelihood
        self._ball = UnitBall(np.zeros(rows.shape[1]), scale.radius)
        self.units, self.weights = units, weight_of_each(weights, rows.shape[0])
        self.width = scale.width(rows.shape[1])
        if units is not None:
            self.weights = self.weights * self._shares(units)[units.codes]

    def _shares(self, units: Units) -> Doubles:
        total = np.zeros(units.n_units)
        for part in self._parts():
            lengths = np.linalg.norm(self._vectors(part), axis=1)
            np.add.at(total, units.codes[part], self.weights[part] * lengths)
        return shares_of_units(units, total**2, total, 1.0)

    def _parts(self) -> list[slice]:
        return [slice(start, start + _ROWS) for start in range(0, self._rows.shape[0], _ROWS)]

    def _vectors(self, part: slice) -> Doubles:
        block = self._rows[part]
        block = block if isinstance(block, np.ndarray) else block.toarray()
        z = np.full((len(block), self.width), self._scale.intercept)
        self._ball.bring_in(block, inside := np.empty(block.shape))
        z[:, : block.shape[1]] = inside
        z *= _ROOM / math.hypot(1.0, self._scale.intercept)
        return z

    def with_targets(self, part: slice) -> Doubles:
        """Rows (z, t) of a slice."""
        return np.c_[self._vectors(part), self._targets[part]]

    def sums(self, theta: Doubles) -> Doubles:
        """The sum of scores and weighted curvatures at `theta`, as a vector of the norm of both."""
        k = len(theta) // self.width
        gradient, curvature = np.zeros((k, self.width)), np.zeros((k, self.width, k, self.width))
        for part in self._parts():
            z = self._vectors(part)
            residuals, slopes = self.likelihood.residuals(self._targets[part], lines_of(z, theta))
            weights = self.weights[part]
            gradient += (weights[:, None] * residuals).T @ z
            for one, other in itertools.product(range(k), repeat=2):
                curvature[one, :, other] += (z * (weights * slopes[:, one, other])[:, None]).T @ z
        matrix = curvature.reshape(len(theta), len(theta))
        return np.concatenate([gradient.ravel(), self.likelihood.curvature_weight * packed(matrix)])

    def is_cut(self, theta: Doubles) -> NDArray[np.bool_]:
        """Which rows are longer than their bound, or have a mean that is cut at one."""
        cut = is_longer(self._rows, self._scale.radius)
        cut |= self.likelihood.is_beyond(self._targets)
        for part in self._parts():
            cut[part] |= self.likelihood.is_cut(lines_of(self._vectors(part), theta))
        return cut


def packed(matrix: Doubles) -> Doubles:
    """The lower triangle of a symmetric matrix as a vector of its Frobenius norm."""
    rows, columns = np.tril_indices(len(matrix))
    return matrix[rows, columns] * np.where(rows == columns, 1.0, math.sqrt(2.0))


def unpacked(vector: Doubles, width: int) -> Doubles:
    """The symmetric matrix of `packed`."""
    rows, columns = np.tril_indices(width)
    matrix = np.zeros((width, width))
    matrix[rows, columns] = matrix[columns, rows] = vector / np.where(rows == columns, 1.0, math.sqrt(2.0))
    return matrix


class Step(NamedTuple):
    """What one step released, at `theta`; `deviation` is that of the noise of an entry of the score."""

    theta: Doubles
    score: Doubles
    curvature: Doubles
    deviation: float

    @classmethod
    def of(cls, theta: Doubles, released: Doubles, deviation: float, likelihood: Likelihood) -> Step:
        """Take a release of `BoundRows.sums` apart."""
        d = len(theta)
        return cls(theta, released[:d], unpacked(released[d:], d) / likelihood.curvature_weight, deviation)


class Pool(NamedTuple):
    """Steps as one, each weighted by its precision: coefficients are theta plus the solution of the equations."""

    theta: Doubles
    equations: Equations

    @classmethod
    def of(cls, steps: list[Step], n: int, likelihood: Likelihood, intercept: float) -> Pool:
        """The pool of released steps; `n` is the public number of units, and `intercept` its entry in each z."""
        precisions = np.array([1.0 / each.deviation**2 for each in steps])
        weights = precisions / precisions.sum()
        theta = weights @ np.array([each.theta for each in steps])
        score = weights @ np.array([each.score for each in steps])
        matched = [likelihood.matched(each.curvature, each.score, intercept) for each in steps]
        curvature = np.tensordot(weights, np.array(matched), 1)
        deviation = 1.0 / math.sqrt(precisions.sum())
        noise = Noise(deviation / likelihood.curvature_weight, deviation, 0.0)
        return cls(theta, Equations(curvature, score, 0.0, noise, n))

    def damped(self, score: Doubles) -> Doubles:
        """The move of one more step of this score, in which eigenvalues are kept above the noise."""
        values, vectors = eigh(self.equations.gram)
        least = _DAMPING * self.equations.edge
        return (vectors / np.maximum(values, least)) @ (vectors.T @ score)


def first_guess(step: Step, likelihood: Likelihood, intercept: float, n: int) -> Doubles:
    """Return coefficients from one step at a constant mean, which is least squares on the scale of the model.

    `intercept` is the entry of the intercept in each z, 0 without one.
    """
    pool = Pool.of([step], n, likelihood, 0.0)
    if not intercept or likelihood.n_lines > 1:
        return step.theta + pool.damped(step.score)
    mean = likelihood.mean(np.array([likelihood.first_eta]))
    slope = float(likelihood.slope(mean)[0])
    gram = step.curvature / slope
    totals = gram[:, -1] / intercept
    noise = pool.equations.edge / slope
    count = max(float(totals[-1]) / intercept, noise / intercept**2)
    products = step.score + mean * totals
    average = float(np.clip(products[-1] / intercept / count, 0.0, 1.0))
    values, vectors = eigh(gram)
    inverse = (vectors / np.maximum(values, _DAMPING * noise)) @ vectors.T
    line = inverse @ (products - average * totals)
    centre = float(line @ totals) / count
    # What noise and sampling add to the variance of the scores of least squares is taken off twice: a guess that is
    # too flat is mended by the next step, one that is too steep is not.
    by_chance = (step.deviation**2 * float(np.trace(inverse)) + average * (1.0 - average) * len(line)) / count
    variance = max(0.0, float(line @ gram @ line) / count - centre**2 - 2.0 * by_chance)
    factor, eta = likelihood.guess(average, math.sqrt(variance))
    theta = factor * line
    theta[-1] += (eta - factor * centre) / intercept
    return theta


def next_theta(steps: list[Step], likelihood: Likelihood, intercept: float, n: int) -> Doubles:
    """Return the coefficients after these steps: post-processing."""
    if len(steps) == 1:
        return first_guess(steps[0], likelihood, intercept, n)
    if len(steps) < len(STEP_SHARES):
        last = best_between(steps[-2], steps[-1])
        return last.theta + Pool.of([last], n, likelihood, intercept).damped(last.score)
    pool, _ = settled_pool(steps, likelihood, intercept, n)
    theta = pool.theta + solve_without_bias(pool.equations)
    if intercept:
        theta[-1] -= bias_of_noise(steps, pool, likelihood, intercept) / intercept
    return theta


def best_between(before: Step, last: Step) -> Step:
    """Return the last step, or, where it went too far, what it would have released at the best place on the way to it.

    A step went too far where the likelihood falls at its end, in its own direction, at a quarter or more of what it
    rose by at its beginning. Between the two, the score is taken for the cubic that scores and curvatures at both ends
    tell (Hermite), and the curvature for their average.
    """
    move = last.theta - before.theta
    slopes = -before.curvature @ move, -last.curvature @ move

    def score(t: float) -> Doubles:
        s = 1.0 - t
        ends = s * s * (1.0 + 2.0 * t) * before.score + t * t * (1.0 + 2.0 * s) * last.score
        return ends + s * s * t * slopes[0] - s * t * t * slopes[1]

    if not float(last.score @ move) < -_TOO_FAR * float(before.score @ move) < 0.0:
        return last
    t = float(brentq(lambda t: float(score(t) @ move), 0.0, 1.0))
    curvature = (1.0 - t) * before.curvature + t * last.curvature
    return last._replace(theta=before.theta + t * move, score=score(t), curvature=curvature)


def bias_of_noise(steps: list[Step], pool: Pool, likelihood: Likelihood, intercept: float) -> float:
    """Return the mean error of eta in the pool by the noise of the coefficients that its steps began with."""
    slopes = max(float(pool.equations.gram[-1, -1]), pool.equations.edge) / intercept**2
    values = np.maximum(np.linalg.eigvalsh(pool.equations.gram), pool.equations.edge)
    of_noise = float(np.sum(1.0 / values)) / slopes  # variance of eta, for a noise of 1 in a score
    precisions = np.array([1.0 / each.deviation**2 for each in steps[-2:]])
    biases = [likelihood.bias(each.deviation**2 * of_noise) for each in steps[-3:-1]]
    return float(precisions @ biases / precisions.sum())


def settled_pool(steps: list[Step], likelihood: Likelihood, intercept: float, n: int) -> tuple[Pool, bool]:
    """Return the pool that gives the estimates, and whether its bias is small beside the errors.

    The step before the last one leads to where the score is 0, but for its noise, and for a likelihood that is no
    parabola. So the last score is the noise of two steps, and that bias, b**2 where all errors have variance 1. If it
    is small in the pool, both steps are in it. Else the last step is alone: its own bias is of the second order, b**4
    over the curvature of all rows, of which there are n; of many classes, over that of the rarest.
    """
    before, last = steps[-2:]
    pool = Pool.of([before, last], n, likelihood, intercept)
    noise, (values, vectors) = pool.equations.noise, eigh(pool.equations.gram)
    precisions = 1.0 / (np.maximum(values, pool.equations.edge) + noise.product**2)
    moved = float(np.sum((last.theta - before.theta) ** 2))
    variance = before.deviation**2 + last.deviation**2
    variance += moved * (noise.gram / noise.product * before.deviation) ** 2
    by_noise = variance * (precisions.sum() + 4.0 * math.sqrt(2.0 * float(precisions @ precisions)))
    excess = max(0.0, float(precisions @ (vectors.T @ last.score) ** 2) - by_noise)
    share = last.deviation**2 / (before.deviation**2 + last.deviation**2)  # of the step before, in the pool
    if share**2 * excess <= UNSETTLED:
        return pool, True
    k = likelihood.n_lines
    many = likelihood.rows_of_slope * least_slope(pool, len(last.theta) // k, intercept) if k > 1 and intercept else n
    return Pool.of([last], n, likelihood, intercept), excess**2 <= UNSETTLED * max(many, 0.0)


class NewtonRecipe(Recipe):
    """A few Newton steps on all rows, and the moments of scores at the end.

    The model has the parameters ``inference, fit_intercept``, and is told by ``_publish_line(coef, intercept, noise)``.
    """

    _steps: list[Step]
    _theta: Doubles

    def sampling_and_steps(self, n: int, n_features: int, n_outputs: int) -> tuple[Sampling, int]:
        """See `Recipe`."""
        return FullBatch(), len(STEP_SHARES)

    def stages(self, sampling: Sampling, n_steps: int) -> tuple[Stage, ...]:
        """See `Recipe`."""
        return tuple(Stage(1, 1.0 / math.sqrt(share * n_steps)) for share in STEP_SHARES)

    def purchases(self, sampling: Sampling, n_steps: int) -> dict[str, Any]:
        """See `Recipe`: there is no offset to correct, as nothing is clipped."""
        bought = super().purchases(sampling, n_steps)
        return {
            **{name: each for name, each in bought.items() if name != OFFSET},
            _SCORES: SideRelease.beside_steps(SCORES_SHARE, sampling.rate, n_steps),
        }

    def plan_run(self, budget: Budget, n: int, n_features: int, outputs: Any) -> Run:
        """See `Recipe`."""
        self._refuse_settings()
        n_lines = max(1, outputs.n_outputs - 1)
        if n_lines * n_features > MOST_COLUMNS:
            of_classes = f" and {n_lines + 1} classes" if n_lines > 1 else ""
            raise ValueError(
                f"inference=True with {n_features} columns{of_classes}: use inference=False, or give "
                f"{MOST_COLUMNS // n_lines} columns at most."
            )
        sampling, n_steps = self.sampling_and_steps(n, n_features, outputs.n_outputs)
        sigma = self._calibrate_noise(budget, sampling, n_steps)
        radius = self._check_radius(n_features)
        scale = RowScale(radius, INTERCEPT_ENTRY if getattr(self.model, "fit_intercept", True) else 0.0)
        plan = DPSGDPlan(sampling, 1.0, sigma, n_steps, float(n), self.stages(sampling, n_steps))
        return Run(self, plan, scale, radius, 1.0, momentum_sgd(constant(1.0), 0.0, 0.0), last_iterate())

    def averaging(self, n_steps: int) -> Averaging:
        """See `Recipe`."""
        return last_iterate()

    def _refuse_settings(self) -> None:
        model = self.model
        check_switch("inference", model.inference)
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

    def _n_free(self, run: Run, n_features: int, outputs: Any) -> int:
        """See `Recipe`."""
        return int(run.shape.width(n_features)) * max(1, outputs.n_outputs - 1)

    def _bound(self, plan: Plan, rows: Any, targets: Targets) -> BoundRows:
        outcome = self._outcome(plan)
        values, weights = targets.values / outcome.unit, cast_weights(targets.weights, np.float64)
        return BoundRows(rows, values, weights, targets.units, plan.run.shape, outcome.likelihood)

    def _outcome(self, plan: Plan) -> Outcome:
        return Outcome.of(self.task, plan.outputs)

    def train(self, plan: Plan, rows: Any, targets: Targets) -> tuple[Vector, int]:
        """See `Recipe`: the coefficients of z."""
        bound, stream = self._bound(plan, rows, targets), plan.stream.spawn("noise")
        last = entry_of(plan.run.shape)
        theta, steps = np.zeros(bound.width * bound.likelihood.n_lines), list[Step]()
        if last and bound.likelihood.first_eta:
            theta[-1] = bound.likelihood.first_eta / last
        state = theta, steps
        try:
            with blas_within_quota():
                for number in range(plan.run.plan.n_steps):
                    theta, steps = state
                    mechanism = plan.run.plan.mechanism_at(number)
                    released = mechanism.release(bound.sums(theta), stream)
                    steps = [*steps, Step.of(theta, released, mechanism.standard_deviation, bound.likelihood)]
                    # One assignment ends the step: an interrupt before it leaves the state of the step before.
                    state = next_theta(steps, bound.likelihood, last, plan.n_public), steps
        except KeyboardInterrupt:
            pass
        theta, self._steps = state
        return theta, len(self._steps)

    def publish(self, theta: Vector, plan: Plan, n_done: int) -> None:
        """See `Recipe`."""
        model, outcome = self.model, self._outcome(plan)
        form = form_of(outcome.likelihood, plan.run.shape, model.n_features_in_)
        coefs = (form @ theta).reshape(outcome.likelihood.n_lines, -1)
        self._publish_lines(coefs, np.full(coefs.shape, math.nan), outcome.shift)
        model.learning_rate_ = plan.run.learning_rate
        model._fitted_inference, model._fitted_form_of_coef = None, None
        self._theta = theta.astype(np.float64)

    def _publish_lines(self, coefs: Doubles, noise: Doubles, shift: float) -> None:
        d = self.model.n_features_in_
        self.model._publish_line(coefs[:, :d], coefs[:, d:].sum(axis=1) + shift, noise[:, :d])

    def correct(self, plan: Plan, rows: Any, targets: Targets) -> None:
        """See `Recipe`: there is nothing to correct; the moments of scores are bought, and errors follow."""
        model, bound, theta = self.model, self._bound(plan, rows, targets), self._theta
        pool, settled = settled_pool(self._steps, bound.likelihood, entry_of(plan.run.shape), plan.n_public)
        root = math.sqrt(max(float(np.trace(pool.equations.gram)), pool.equations.edge) / plan.n_public)
        entry = entry_of(plan.run.shape)
        slopes = least_slope(pool, bound.width, entry) if entry else math.inf
        if bound.likelihood.rows_of_slope * slopes < FEWEST_UNSURE_ROWS * len(theta):
            doubt = f"fewer than {FEWEST_UNSURE_ROWS} rows a coefficient that are not nearly certain"
        elif not settled or is_too_steep(self._steps[0], theta, bound.likelihood, plan.n_public):
            doubt = "the steps did not settle: columns nearly separate the rows, or noise is too much"
        else:
            doubt = ""
        clip = bound.likelihood.clip(root, math.exp(-self._outcome(plan).shift))
        how = LikelihoodScores(theta, bound.likelihood, clip)
        sums = sum_scores(bound.with_targets, bound.is_cut(theta), bound.weights, bound.units, how)
        price = plan.purchases[_SCORES]
        mechanism = price.mechanism(sensitivity(0.0, model.adjacency), plan.run.plan.noise_multiplier)
        found = release_scores(sums, mechanism, plan.stream.spawn(_SCORES), how.clip)
        grounds = Grounds(
            model.data_norm is not None or model._fitted_row_norm is not None,
            LEAST_CURVATURE,
            self._outcome(plan).bounds,
            doubt,
        )
        form = form_of(bound.likelihood, plan.run.shape, model.n_features_in_)
        shape = bound.likelihood.n_lines, bound.width
        inference = infer(pool.equations, theta - pool.theta, found, form, grounds)
        coefs = (form @ theta).reshape(shape)
        self._publish_lines(coefs, inference.noise.reshape(shape), self._outcome(plan).shift)
        coefs[:, model.n_features_in_ :] += self._outcome(plan).shift
        model._fitted_inference = inference._replace(estimate=coefs.ravel(), n_lines=len(coefs))


def form_of(likelihood: Likelihood, scale: RowScale, n_features: int) -> Doubles:
    """What coefficients of x are of those of z: for each class, against the first one."""
    return np.asarray(np.kron(likelihood.against, np.diag(scale.units(n_features))), np.float64)


def is_too_steep(first: Step, theta: Doubles, likelihood: Likelihood, n: int) -> bool:
    """Whether lines of many classes are too steep, by the curvature of the first step, of equal probabilities."""
    if likelihood.n_lines == 1:
        return False
    lines = theta.reshape(likelihood.n_lines, -1)
    blocks = first.curvature.reshape(*lines.shape, *lines.shape)
    rows = np.einsum("jajb->ab", blocks) * (2.0 * (likelihood.n_lines + 1) / likelihood.n_lines)
    return float(np.einsum("ia,ab,ib->", lines, rows, lines)) > STEEPEST_CLASSES**2 * n


def least_slope(pool: Pool, width: int, intercept: float) -> float:
    """The least curvature of lines by their intercepts, in the sum of all rows."""
    k = len(pool.theta) // width
    block = pool.equations.gram.reshape(k, width, k, width)[:, -1, :, -1]
    return float(np.linalg.eigvalsh(block)[0]) / intercept**2


def entry_of(scale: RowScale) -> float:
    """The entry of the intercept in each z."""
    return scale.intercept * _ROOM / math.hypot(1.0, scale.intercept)
