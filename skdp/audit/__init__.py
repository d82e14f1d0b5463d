"""Audits: what an attacker finds of one record in what an estimator releases, beside what the estimator claims.

- `auditor`: `audit_estimator`; `subjects`: an estimator as an audit fits it, again and again, and `AuditResult`
- `worst_case`: two tables that differ in one record, the canary; `leaves` of a fitted estimator, by their place
- `replay`: two fits that see the same releases, and what these cost at least; `one_run`: many canaries in one fit
- `checks`: noise and lots that were heard, against their distributions
- `conformance`, `conformance_releases`: checks of private estimators of any author, by the tables of `checking`
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
