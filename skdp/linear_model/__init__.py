"""Differentially private linear models.

- `likelihoods`: likelihoods whose score and curvature of one row are bounded by norm 1
- `scores`: clipped second moments of the scores, for the sandwich estimator of least squares
- `inference`: estimates, standard errors and their validity, computed from released moments
- `coefficient_table`: regression summary as text, HTML, LaTeX and a frame
- `newton`: Newton steps on noisy scores and curvatures
- `normal_equations`: least squares from one noisy matrix of second moments
- `least_squares`: linear and ridge regression
- `logistic`: logistic regression
- `ordinal`: ordinal logistic regression
- `poisson`: Poisson regression
"""

from __future__ import annotations

from skdp import lazy_face

__getattr__, __dir__, __all__ = lazy_face(
    __name__,
    {
        "CoefficientTable": "skdp.linear_model.coefficient_table",
        "DPLinearRegression": "skdp.linear_model.least_squares",
        "DPLogisticRegression": "skdp.linear_model.logistic",
        "DPOrdinalLogisticRegression": "skdp.linear_model.ordinal",
        "DPPoissonRegressor": "skdp.linear_model.poisson",
        "DPRidge": "skdp.linear_model.least_squares",
    },
)
