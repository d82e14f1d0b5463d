"""`audit_estimator`: an attack on one record, and what it found."""

from __future__ import annotations

import time
from typing import Any

from skdp._checks.leak_setting import report_leak
from skdp._checks.parameters import check_choice, check_real
from skdp._checks.protocols import is_private
from skdp.audit.checks import LEVEL, AuditFinding
from skdp.audit.replay import replay
from skdp.audit.result import AuditResult
from skdp.audit.subjects import Subject
from skdp.audit.worst_case import Neighbours, worst_case

METHODS = ("replay",)


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
    start = time.monotonic()
    if not is_private(estimator):
        raise TypeError(f"{type(estimator).__name__} is no private estimator: give one that states its epsilon.")
    check_choice("method", method, METHODS)
    seconds = check_real("max_seconds", max_seconds, above=0, remedy="give the seconds after which no fit begins")
    tables = worst_case(estimator)
    subject = Subject(estimator, tables)
    found = replay(subject, random_state, start + seconds)
    model = found.fitted.model
    findings = list(found.findings)
    if found.epsilon > model.epsilon_ * (1 + 1e-6):
        findings.append(AuditFinding("bound", f"epsilon is at least {found.epsilon:.4g}, and {model.epsilon_:.4g} is claimed."))
    return AuditResult(
        type(estimator).__name__,
        method,
        found.epsilon,
        model.epsilon_,
        model.delta_,
        model.adjacency_,
        1.0 - LEVEL,
        ("normal noise of the scale that was heard",),
        tuple(findings),
        found.parts,
        subject.n_fits,
        time.monotonic() - start,
        model.privacy_event_,
        found.event,
    )
