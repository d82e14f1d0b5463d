"""What an estimator is made of, here and for a third party: see `docs/extending.md`.

- `estimator`: `PrivateEstimator`
- `fit`: the object that plans, reads, charges, releases and publishes
- `budget`: what a fit may spend, and what was released
- `private_step`: what a pipeline asks of a step
- `public_steps`: steps of scikit-learn that read no other row
- `row_wise`: functions that do not
- `findings`: meta-estimators of scikit-learn, and what their fits cost
- `foreign_fits`: the warning where one of them is running
- `estimates`: numbers with confidence intervals
- `saved_state`: a fitted model as plain data
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
