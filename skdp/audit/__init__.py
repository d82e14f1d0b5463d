"""Audits: what an attacker finds of one record in what an estimator releases, beside what the estimator claims.

- `checks`: noise and lots that were heard, against the laws that they are priced by
- `worst_case`: two tables that differ in one record, the canary: the worst ones for an estimator's kind, or those of
  the user
- `subjects`: an estimator as an audit fits it, again and again: clones without a ledger, with a tape
- `one_run`: one-run audits: guesses, from one fit, which of many canaries are in it
- `replay`: forced replay: two fits that see the same releases, one with the canary and one without
- `auditor`: `audit_estimator`: an attack on one record, and what it found
- `checking`: what the checks of private estimators share: tables, neighbours of them, and what one fit leaves behind
- `conformance_releases`: checks of what a fit releases: how far a record moves it, and that all else follows from it
- `conformance`: the conformance suite of private estimators, public as `skdp.testing`
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
