"""Checks of privacy for estimators of any author, in the manner of scikit-learn's estimator checks.

- `tables`: made-up tables and neighbours of them, hostile rows, tables that nobody may read, bad input
- `subjects`: an estimator as the checks fit it: clones, with a ledger and a tape
- `demands`: what a check does
- `charges`, `refusals`, `releases`, `copies`: what a private estimator promises, one function each; it takes a
  `CheckedEstimator` and returns None, or raises what `demands` has
- `suite`: `check_private_estimator` and `parametrize_with_private_checks`
"""

from __future__ import annotations

from skdp._lazy import lazy_face

__getattr__, __dir__, __all__ = lazy_face(
    __name__,
    {
        "check_private_estimator": "skdp.testing.suite",
        "parametrize_with_private_checks": "skdp.testing.suite",
        "private_checks": "skdp.testing.suite",
    },
)
