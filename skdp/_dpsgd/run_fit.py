"""The fit of an estimator by one run of steps."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, TypeVar

import numpy as np

from skdp._checks.sources import RowSource, found_to_fit, source_to_fit
from skdp._checks.weights import warn_of_no_bound
from skdp._dpsgd.checkpoint import Checkpoint, RunLock
from skdp._dpsgd.loop import start_of_run
from skdp._dpsgd.run import OFFSET, EarlierRuns, Run, Targets
from skdp._dpsgd.solver import DescentSolver, Solver, Target, weak_signal
from skdp.base.fit import Fit, begin

Fitted = TypeVar("Fitted")


def fit_run(
    estimator: Fitted, X: Any, y: Any, sample_weight: Any, groups: Any, *, given: Any = None, warm: bool
) -> Fitted:
    """Fit a `GradientEstimator` by one run, and return it.

    Parameters
    ----------
    estimator : GradientEstimator
    X, y, sample_weight, groups : object
        Rows, targets, weights and group identifiers; private.
    given : object
        What the call itself states about the outputs; public.
    warm : bool
        Whether the run starts from the current parameters.
    """
    source = _find_source(estimator, X, y, sample_weight, groups, are_named=warm or given is not None)
    fit = begin(estimator, X if source is None else source, groups, EarlierRuns.of if warm else None)
    if fit.model.checkpoint is None or not fit.is_whole:
        _fit(fit, y, sample_weight, given)
        return estimator
    with RunLock(fit.model.checkpoint) as lock:
        lock.take()
        _open_file(fit)
        _fit(fit, y, sample_weight, given)
    return estimator


def _fit(fit: Fit, y: Any, sample_weight: Any, given: Any) -> None:
    model, earlier, targets = fit.model, fit.earlier, None
    model._check_run_parameters(fit)
    target = model._target()
    d = model.n_features_in_ if earlier is not None else fit.n_features or model._assumed_width()
    outputs = target.resolve(y, given, None if earlier is None else model)
    if outputs is None:
        targets = fit.read_before_plan(_read_outputs, model, target, y, sample_weight, fit.n_rows)
        outputs = None if targets is None else targets.outputs
    solver = model._solver(target, d, anew=earlier is None or not earlier.releases)
    to_plan = outputs or target.assumed()
    releases = solver.planned_releases(fit.n, d, to_plan.n_outputs)
    fit.plan(releases.event_at)
    # A rejection of outputs that were read from the targets is recorded too.
    planned = solver.plan_run if targets is None else partial(fit.recorded, solver.plan_run)
    run = planned(releases, fit.noise_multiplier, fit.n, d, to_plan)
    if earlier is not None:
        solver.check_present(run)
    elif fit.n_features is not None:
        # Outputs that are read from the targets do not affect the warning.
        fit.warn(weak_signal(solver, run, d, target.named or target.assumed()))
    stream = fit.run_stream(0 if earlier is None else earlier.counts[0])
    run = run._replace(stream=stream, file=fit.file, epsilon=fit.cost.epsilon, earlier=earlier)

    rows = fit.rows
    if isinstance(rows, RowSource):
        targets = Targets(outputs, None, 1.0)
    else:
        rows = fit.read(model._read_rows, rows, reset=earlier is None)
        targets = targets or fit.read(target.encode, y, sample_weight, fit.n_rows, outputs)
    if fit.file is not None:
        _begin_file(fit, solver, run, rows)
    fit.charge()

    targets = targets._replace(units=fit.units)
    learned, interrupted = fit.learn(_run_steps, model, solver, run, rows, targets, part="steps")
    fit.publish(interrupted=interrupted, **learned)
    if fit.file is not None and not interrupted:
        fit.file.finish()


def _read_outputs(model: Any, target: Target, y: Any, sample_weight: Any, n_rows: int) -> Targets:
    """Return the targets, and the outputs as they are read from them, which is reported."""
    target.report_read(model)
    return target.encode(y, sample_weight, n_rows, None)


def _find_source(
    estimator: Any, X: Any, y: Any, sample_weight: Any, groups: Any, *, are_named: bool
) -> RowSource | None:
    """Return the source of rows that are not in memory, which are read after the charge; None for all others."""
    if not estimator._streams or found_to_fit(X, y) is None:
        return None
    target = estimator._target()
    source = source_to_fit(
        X, y, sample_weight, groups, target.parameter, are_named=are_named or target.named is not None,
        reader=estimator,
    )  # fmt: skip
    if source is None:
        return None
    if getattr(estimator, "inference", False):
        raise ValueError(
            "inference=True with rows that are not in memory, which are read once: use inference=False, or give "
            "the rows as an array."
        )
    if estimator._check_merge_equal_rows() is True:
        raise ValueError(
            "merge_equal_rows=True with rows that are not in memory, which are not merged: choose 'auto' or False."
        )
    warn_of_no_bound(estimator.weight_bound, sample_weight)
    return source


# --- a run with a file ---


def _open_file(fit: Fit) -> None:
    """Read the file of the run, if there is one, from which the fit resumes."""
    file, earlier = Checkpoint(fit.model.checkpoint, seeded=fit.model._is_seeded()), fit.earlier
    if earlier is not None and file.continues(earlier.releases):
        earlier = earlier.without_last()  # the current state is of this run, interrupted
    fit.resume(file, earlier)


def _begin_file(fit: Fit, solver: DescentSolver, run: Run, rows: Any) -> None:
    """Write the file of the run before the charge, with the state that training starts from."""
    model = fit.model
    described = {
        **{name: repr(value) for name, value in model._public_parameters().items()},
        "estimator": type(model).__name__, **solver.target.describe(run.outputs),
        "unit": [model._unit(), model.__dict__.get("_fitted_group_name", "")],
        "random_state": int(model.random_state) if model._is_seeded() else None,
        "privacy_event": repr(run.plan.event), **solver.describe_rows(),
        "earlier events": [] if fit.earlier is None else [repr(each.event) for each in fit.earlier.releases],
        "table": repr((fit.n, *rows.shape[1:], str(rows.dtype))),
    }  # fmt: skip
    fit.file.check_run(described, run.plan.n_steps)
    beside = run.releases.beside
    fit.file.check_bought([name for name in beside if name != OFFSET], beside)
    theta = solver.start(run, rows.dtype)
    state, _ = start_of_run(run.optimizer, theta, run.stream, run.releases.averaging, fit.file)
    fit.file.begin(state)


# --- training ---


def _run_steps(model: Any, solver: Solver, run: Run, rows: Any, targets: Targets) -> tuple[dict[str, Any], str]:
    """Return what a run learns, and where an interrupt cut it short, or ""."""
    n_steps = run.plan.n_steps
    rows, targets = solver.before_steps(run, rows, targets)
    theta, n_done = solver.train(run, rows, targets)
    learned, where = dict[str, Any](), f"after {n_done} of {n_steps} steps"
    try:
        learned = _learned(solver, run, theta, n_done)
        if n_done < n_steps:
            return learned, where
        vars(model).update(learned)  # by whose scores the last release is made
        return {**learned, **solver.corrected(run, rows, targets)}, ""
    except KeyboardInterrupt:  # what is left is post-processing of steps that were charged
        # Once the model has what was learned, it is no longer what the run started from.
        return learned or _learned(solver, run, theta, n_done), f"{where}, before {solver.last_release}"


def _learned(solver: Solver, run: Run, theta: np.ndarray, n_done: int) -> dict[str, Any]:
    """Return all that a run learned in its first `n_done` steps."""
    plan, (steps, epochs) = run.plan, run.before
    return {
        **solver.learned(theta, run, n_done),
        **solver.target.learned(run.outputs),
        "sampling_rate_": plan.sampling.rate,
        "max_grad_norm_": plan.max_grad_norm,
        "data_norm_": run.radius,
        "n_steps_": n_done + steps,
        # The small number undoes rounding: 20 steps at rate 0.05 are one epoch.
        "n_iter_": math.ceil(n_done * plan.sampling.rate - 1e-9) + epochs,
        "weight_bound_": solver.target.weights.bound,
        "_fitted_before": (steps, epochs),
        "_fitted_n_public": run.n_public,
        "_fitted_noise_falls": bool(plan.stages),
    }
