"""Privacy audits: empirical lower bounds on epsilon, compared with the epsilon that an estimator claims.

- `checks`: tests of recorded noise and lots against the declared distributions
- `worst_case`: neighboring tables that differ in one record, the canary: worst-case tables, or those of the user
- `subjects`: clones that an audit fits without an accountant, with recorded releases
- `one_run`: one-run audits, which guess from a single fit which of many canaries are in it
- `replay`: coupled runs with a shared transcript, one with the canary and one without
- `auditor`: `audit_estimator`
- `checking`: helpers of the conformance checks: tables, neighboring tables and the results of a fit
- `conformance_releases`: checks of the releases of a fit: sensitivity and post-processing
- `conformance`: the conformance checks of private estimators, public as `skdp.testing`
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
