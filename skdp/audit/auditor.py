"""Privacy audit of an estimator: `audit_estimator`."""

from __future__ import annotations

import time
from typing import Any

from skdp._checks.leaks import report_leak
from skdp._checks.parameters import check_choice, check_count, check_real
from skdp.audit.checks import LEVEL, beyond
from skdp.audit.one_run import one_run
from skdp.audit.replay import replay
from skdp.audit.subjects import AuditResult, Subject
from skdp.audit.worst_case import Neighbors, given_case, parameter, worst_case


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
    """Audit the privacy of an estimator empirically by attacking one record.

    The audit fits clones of the estimator to neighboring tables and computes a lower bound on epsilon. If the bound
    exceeds `epsilon_`, the implementation has a bug. Clones do not charge the accountant of `estimator`, except with
    ``method="one_run"``. See ``docs/privacy_auditing.md``.

    Parameters
    ----------
    estimator : estimator
        Private estimator, or a pipeline or search with one budget. It is not changed.
    X, y : array-like, default=None
        Public or simulated data. Private data are not protected: the audit reads exact sums under a known seed, so any
        `X` issues a `PrivacyLeakWarning` (an error under ``on_leak="raise"``). None uses a simulated worst-case table
        for the type of estimator.
    groups : array-like of shape (n_samples,) or None, default=None
        Group identifiers, to audit group-level privacy. Requires `X`.
    canary : "contradict", int, (int, int), row, or tuple (row, target), default="contradict"
        The record that is in only one of the two tables:

        - "contradict" uses a row whose target contradicts all others, and the most visible of several candidates.
        - An int is a row number of `X`; with `groups`, all rows of its group are the canary.
        - A row has the type of `X`, and may be sparse or a data frame.

        Under ``"replace_one"``, pass two row numbers, or two rows with two targets: one replaces the other.
    method : {"replay", "one_run"}, default="replay"
        - "replay" couples a fit with the canary to a fit without it, through a shared transcript of releases, and
          computes the privacy loss from the differences of the exact values.
        - "one_run" guesses from a single fit which of many canaries are in it. Its noise is secret, the fit is charged
          to the accountant of `estimator`, and `X` may be private. The estimator must have `coef_` and accept sparse
          rows.
    confidence : float, default=0.95
        Confidence level of the bounds of "one_run". The bound of "replay" holds with confidence 1 - 1e-6.
    max_seconds : float, default=60.0
        No fit starts after this time, except those that are required for a bound.
    random_state : int, default=0
        Seed of the noise, the lots and the selection of canaries in the audit. Fits outside the audit keep secret
        noise.

    Returns
    -------
    AuditResult
        Bounds and findings of this attack. They do not prove privacy: another attack may find more.

    Raises
    ------
    TypeError
        `estimator` is not private.
    ValueError
        A parameter is invalid, nothing was released, `max_seconds` is too short for a bound, or "replace_one" has a
        single canary. If nothing was released but the fitted state depends on the record, this is a finding instead.

    Notes
    -----
    **Replay.** Both fits follow the same trajectory, so the difference of the exact values is the contribution of the
    canary to each release. A release with noise s and difference D is a Gaussian mechanism with noise s/||D||,
    subsampled if it belongs to a lot, and the accountant composes these mechanisms. If the differences do not depend on
    the trajectory, for example because all of them reach the clipping norm, the bound is exact for this canary.
    Otherwise it is the smallest bound over the trajectories that were tried.

    The bound assumes Gaussian noise, with the largest standard deviation in a chi-square interval at a level of 1e-6,
    and lots with the stated sampling rate. Both assumptions are tested (`check_release_noise`, `check_sampling`), and
    no random word may be drawn twice. Apart from the releases, both fits must return bit-identical results. The charge
    is compared with the privacy cost of the recorded releases, and with a threshold test on a weighted sum of them.

    Examples
    --------
    >>> from skdp import DPRidge
    >>> from skdp.audit import audit_estimator
    >>> audit = audit_estimator(DPRidge(y_bounds=(0, 1), epsilon=1.0), max_seconds=5)
    >>> print(f"epsilon >= {audit.epsilon_lower_bound:.1f}, claimed {audit.epsilon_claimed:.1f}")
    epsilon >= 1.0, claimed 1.0
    >>> audit.findings
    ()
    """
    # Parameters, before any fit.
    if method == "many_runs":
        raise ValueError(
            "method='many_runs' was removed. Use 'replay', or 'one_run' for bounds from the outputs alone."
        )
    check_choice("method", method, ("replay", "one_run"))
    if isinstance(canary, str):
        check_choice("canary", canary, ("contradict",))
    check_real("confidence", confidence, above=0, below=1, constraint="a number in (0, 1), such as 0.95")
    until = time.monotonic() + check_real(
        "max_seconds", max_seconds, above=0, constraint="a positive number of seconds, such as 60"
    )
    seed = check_count(
        "random_state", random_state, at_least=0, constraint="a nonnegative integer, the seed of the audit"
    )
    # The attack, whose bounds assume nothing but what they say.
    if method == "one_run":
        if not isinstance(canary, str):
            raise ValueError(
                "`canary` must not be set for method='one_run', which generates its own canaries. Remove it."
            )
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


def _tables(estimator: Any, X: Any, y: Any, groups: Any, canary: Any) -> Neighbors:
    """The tables to audit on, and a leak where they are the user's."""
    if X is not None:
        report_leak(
            "X and y are read without being accounted for, and exact sums of them are revealed under a known seed. "
            "They must be public or simulated. Set X=None for simulated data, or use method='one_run' for private "
            "data."
        )
        is_exchange = hasattr(estimator, "get_params") and parameter(estimator, "adjacency") == "replace_one"
        return given_case(X, y, groups, canary, is_exchange)
    if y is not None or groups is not None or not isinstance(canary, str):
        raise ValueError("`y`, `groups` and `canary` require X. Pass X, or remove all of them to use simulated data.")
    return worst_case(estimator)
