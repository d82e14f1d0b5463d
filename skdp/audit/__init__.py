"""Audits: what an attacker finds of one record in what an estimator releases, beside what the estimator claims.

- `published`: every number and text within a fitted estimator, by its place
- `checks`: noise and lots that were heard, against their laws; what is found is an `AuditFinding`
- `worst_case`: two tables that differ in one record, the canary
- `subjects`: an estimator as an audit fits it, again and again
- `own_price`: what releases cost at least, without the accountant
- `replay`: two fits that see the same releases; `one_run`: many canaries in one fit
- `result`: `AuditResult`; `auditor`: `audit_estimator`
"""

from __future__ import annotations

from skdp import lazy_face

__getattr__, __dir__, __all__ = lazy_face(
    __name__,
    {
        "AuditFinding": "skdp.audit.checks",
        "AuditResult": "skdp.audit.subjects",
        "audit_estimator": "skdp.audit.auditor",
        "check_release_noise": "skdp.audit.checks",
        "check_sampling": "skdp.audit.checks",
        "one_run_epsilon": "skdp.audit.one_run",
    },
)
