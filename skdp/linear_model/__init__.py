"""Private linear models."""

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
