"""What an estimator is made of, here and for a third party: see `docs/extending.md`.

- `budget`: the privacy parameters of an estimator: budget, noise, privacy cost, releases, and the randomness of a fit
- `estimates`: figures with intervals, of evaluations and of descriptions
- `row_wise`: functions that transform rows one by one: the promise, and its test on simulated rows
- `saved_state`: the state of a model as skops writes and reads it: plain values, arrays and nested estimators
- `public_steps`: which steps of a pipeline read nothing of their rows and treat them one by one
- `pipeline_issues`: findings about a composition before it is fitted: what it reads without paying, how often it
  spends, what to use
- `foreign_fits`: warnings about compositions of other packages that use private estimators and read rows without
  accounting for it
- `fit`: the fit object, which a private ``fit`` asks in order: begin, plan, read, charge, release, publish
- `private_step`: the protocol by which pipelines and searches fit private estimators whose noise they allot
  themselves
- `estimator`: base of private estimators: parameters, also those of scikit-learn that are missing, privacy facts, and
  diagrams
"""

from __future__ import annotations

from skdp._checks.parameters import absolute_path, check_real, public_n, reject_fit_params
from skdp._checks.rows import check_labels, check_table, encode_labels
from skdp.base.budget import Budget, PrivacyCost, cost_of, read_epsilon, root_stream, solve_noise
from skdp.base.estimator import JointPrivacyCost, PrivateEstimator
from skdp.base.fit import Fit, NoisySum, begin, warn_of_weak_delta
from skdp.base.private_step import StepPlan, StepTraits, traits_of

__all__ = [
    "Budget", "Fit", "JointPrivacyCost", "NoisySum", "PrivacyCost", "PrivateEstimator", "StepPlan", "StepTraits",
    "absolute_path", "begin", "check_labels", "check_real", "check_table", "cost_of", "encode_labels", "public_n",
    "read_epsilon", "reject_fit_params", "root_stream", "solve_noise", "traits_of", "warn_of_weak_delta",
]  # fmt: skip
