"""Conformance checks for private and third-party estimators, in the style of scikit-learn's estimator checks."""

from __future__ import annotations

from skdp import lazy_face

__getattr__, __dir__, __all__ = lazy_face(
    __name__,
    {
        "check_private_estimator": "skdp.audit.conformance",
        "parametrize_with_private_checks": "skdp.audit.conformance",
        "private_checks": "skdp.audit.conformance",
    },
)
