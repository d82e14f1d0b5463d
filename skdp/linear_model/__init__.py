"""Private linear models.

- `likelihoods`: likelihoods of which one row says no more than a vector of norm 1: score and curvature, released
  together
- `scores`: moments of the scores of units, clipped: the second release of least squares, of which the sandwich is
  made
- `inference`: what released moments say of coefficients: estimates, their errors by sampling and by noise, and doubts
- `coefficient_table`: the table of a regression, as text, HTML, LaTeX and a frame
- `newton`: Newton steps on noisy scores and curvatures: what is planned, released, and published with its errors
- `normal_equations`: private least squares from one noisy matrix of second moments
- `least_squares`: private linear and ridge regression
- `logistic`: private logistic regression
- `ordinal`: private ordinal logistic regression
- `poisson`: private Poisson regression
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
