"""Building blocks of private estimators, for this package and for third parties: see `docs/extending.md`.

- `budget`: privacy parameters of an estimator: budget, noise, privacy cost, releases, and the randomness of a fit
- `estimates`: estimates with confidence intervals, of evaluations and descriptive statistics
- `row_wise`: functions that transform rows one by one, and their test on simulated rows
- `saved_state`: the state of a model as skops writes and reads it: plain values, arrays and nested estimators
- `public_steps`: stateless steps of a pipeline, which read no private data and treat rows one by one
- `pipeline_issues`: issues of a composition before it is fitted: data read outside the guarantee, repeated use of the
  budget, and remedies
- `foreign_fits`: warnings about third-party compositions that use private estimators and read rows without accounting
  for it
- `fit`: the fit object, whose methods a private ``fit`` calls in order: begin, plan, read, charge, release, publish
- `private_step`: the protocol by which pipelines and searches fit private estimators and allot their noise
- `estimator`: base classes of private estimators: parameters, parameters of scikit-learn that are not available,
  privacy attributes, and diagrams
"""

from __future__ import annotations

from skdp._checks.parameters import absolute_path, check_real, public_n, reject_fit_params
from skdp._checks.rows import check_labels, check_table, check_targets, encode_labels
from skdp._checks.targets import check_y_bounds
from skdp.base.budget import Budget, PrivacyCost, cost_of, read_epsilon, root_stream, solve_noise
from skdp.base.estimator import JointPrivacyCost, PrivateEstimator
from skdp.base.fit import Fit, NoisySum, begin, warn_of_weak_delta
from skdp.base.private_step import StepPlan, StepTraits, traits_of

__all__ = [
    "Budget", "Fit", "JointPrivacyCost", "NoisySum", "PrivacyCost", "PrivateEstimator", "StepPlan", "StepTraits",
    "absolute_path", "begin", "check_labels", "check_real", "check_table", "check_targets", "check_y_bounds", "cost_of",
    "encode_labels", "public_n", "read_epsilon", "reject_fit_params", "root_stream", "solve_noise", "traits_of",
    "warn_of_weak_delta",
]  # fmt: skip
