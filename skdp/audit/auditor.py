"""`audit_estimator`: an attack on one record, and what it found."""

from __future__ import annotations

import time
from typing import Any

from skdp._checks.leaks import report_leak
from skdp._checks.parameters import check_choice, check_count, check_real
from skdp.audit.checks import LEVEL, beyond
from skdp.audit.one_run import one_run
from skdp.audit.replay import replay
from skdp.audit.subjects import AuditResult, Subject
from skdp.audit.worst_case import Neighbours, given_case, parameter, worst_case


def audit_estimator(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    *,
    groups: Any = None,
    canary: Any = "contradict",
    method: str = "replay",
    confidence: float = 0.95,
    max_seconds: float = 60.0,
    random_state: int = 0,
) -> AuditResult:
    """Attack one record of what an estimator is fitted to, and set what was found beside what it claims.

    Clones are fitted, without the accountant of `estimator`, so that nobody is charged (but see `method`).

    Parameters
    ----------
    estimator : estimator
        Private estimator, or a pipeline or search with one budget. It is not changed.
    X, y : array-like, default=None
        Rows and targets, public or simulated: replay reads exact sums under a known seed, and no charge pays for that.
        So any `X` issues a `PrivacyLeakWarning`, an error under ``on_leak="raise"``. None makes up the worst table for
        the kind of estimator.
    groups : array-like of shape (n_samples,) or None, default=None
        Labels of units, where the estimator is to be private for these. With an `X` only.
    canary : "contradict", int, (int, int), row, or tuple (row, target), default="contradict"
        The record that one of two tables has and the other has not. By default a row whose target contradicts all
        others; of several candidates the one that is seen best. A number is that of a row of `X`. A row is of the kind
        of `X`, sparse or a data frame, too. Under ``"replace_one"`` two rows, and two targets, are given: one of them
        takes the place of the other. With `groups` these are the numbers of two rows, whose groups change places.
    method : {"replay", "one_run"}, default="replay"
        ``"replay"`` forces the releases of a fit without the canary on a fit with it, and prices the difference of what
        was put into them. ``"one_run"`` guesses from one fit which of many canaries are in it: its noise is secret, the
        fit is charged to the accountant of `estimator`, and `X` may be private. It needs an estimator with `coef_` that
        takes sparse rows.
    confidence : float, default=0.95
        Probability at which the bounds of one run hold. That of replay holds at 1 - 1e-6.
    max_seconds : float, default=60.0
        No fit begins after this time, but those without which there is no bound.
    random_state : int, default=0
        Seed of the noise, of the lots and of the coins. Anything that is not audited goes on drawing secret noise.

    Returns
    -------
    AuditResult
        What this attack found. It is not the privacy of the estimator: another attack may find more.

    Raises
    ------
    TypeError
        `estimator` is not private.
    ValueError
        A parameter is out of range, nothing was released, the time does not suffice for a bound, or there is one canary
        where one is to take the place of another. That nothing was released is a finding where what the fit leaves
        behind depends on the record, and on nothing that is drawn elsewhere.

    Notes
    -----
    **Replay.** Both fits follow one trajectory, so the difference of the exact values is what the canary adds to each
    release, and to no lot but those that it is drawn for. A release of noise s and shift D is the Gaussian mechanism of
    noise s/||D||, sampled where it is of a lot, and the accountant composes them. The bound is a proof for this canary
    where shifts do not depend on the trajectory, as under a clip that all of them reach; else it is the least over the
    trajectories that were tried. It takes the noise to be normal, with the largest standard deviation that a chi-square
    interval admits at a level of 1e-6, and lots to be drawn at the rate that was stated; both are tested
    (`check_release_noise`, `check_sampling`). No word of a secret stream may be drawn twice, and what lots are drawn
    from is longer by one with the record, of whatever number of rows. All that the two fits leave behind must be equal
    bit for bit. The charge is held against what the accountant asks for the releases that were heard, and against a
    threshold on a weighted sum of them, whose error rates no accountant reckons.

    Examples
    --------
    >>> from skdp import DPRidge
    >>> from skdp.audit import audit_estimator
    >>> audit = audit_estimator(DPRidge(y_bounds=(0, 1), epsilon=1.0), max_seconds=5)
    >>> bool(0.9 < audit.epsilon_lower_bound <= audit.epsilon_claimed)
    True
    >>> audit.findings
    ()
    """
    # Parameters, before any fit.
    if method == "many_runs":
        raise ValueError("method='many_runs' was removed: use 'replay', or 'one_run' for bounds from outputs alone.")
    check_choice("method", method, ("replay", "one_run"))
    if isinstance(canary, str):
        check_choice("canary", canary, ("contradict",))
    check_real("confidence", confidence, above=0, below=1, remedy="choose a probability such as 0.95")
    until = time.monotonic() + check_real(
        "max_seconds", max_seconds, above=0, remedy="give the seconds after which no fit begins"
    )
    seed = check_count("random_state", random_state, at_least=0, remedy="give a whole number, the seed of the audit")
    # The attack, whose bounds assume nothing but what they say.
    if method == "one_run":
        if not isinstance(canary, str):
            raise ValueError("canary is given with method='one_run', which makes up its own: leave it out.")
        found = one_run(estimator, X, y, groups, confidence, seed)
    else:
        found = replay(Subject(estimator, _tables(estimator, X, y, groups, canary)), seed, until)
    # What was found, beside what the audited fit claims.
    model = found.model
    return AuditResult(
        estimator=type(estimator).__name__,
        method=method,
        epsilon_lower_bound=next(iter(found.bounds.values())),
        epsilon_claimed=model.epsilon_,
        delta=model.delta_,
        adjacency=model.adjacency_,
        confidence=1.0 - LEVEL if method == "replay" else confidence,
        bounds=found.bounds,
        findings=(*found.findings, *beyond(found.sure_epsilon, model.epsilon_)),
        steps=dict(found.steps),
        n_fits=found.n_fits,
        claimed_event=model.privacy_event_,
        event=found.event,
    )


def _tables(estimator: Any, X: Any, y: Any, groups: Any, canary: Any) -> Neighbours:
    """The tables to audit on, and a leak where they are the user's."""
    if X is not None:
        report_leak(
            "X and y are read without a charge, and exact sums of them under a known seed: they must be public or made "
            "up; use X=None for a table that is made up, or method='one_run' for private rows."
        )
        is_exchange = hasattr(estimator, "get_params") and parameter(estimator, "adjacency") == "replace_one"
        return given_case(X, y, groups, canary, is_exchange)
    if y is not None or groups is not None or not isinstance(canary, str):
        raise ValueError("y, groups or canary is given without X: give X, or leave all of them to the audit.")
    return worst_case(estimator)
