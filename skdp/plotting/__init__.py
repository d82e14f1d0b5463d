"""Displays, as in scikit-learn: numbers that are held, and drawn by `plot`.

matplotlib is imported when something is drawn. `_axes` has what all displays share.
"""

from __future__ import annotations

from skdp import lazy_face

__getattr__, __dir__, __all__ = lazy_face(
    __name__,
    {
        "AccountantComparisonDisplay": "skdp.plotting.accountants",
        "BudgetDisplay": "skdp.plotting.budget",
        "CoefficientDisplay": "skdp.plotting.coefficients",
        "EffectDisplay": "skdp.plotting.coefficients",
        "PrivacyUtilityDisplay": "skdp.plotting.utility",
        "PrivateCalibrationDisplay": "skdp.plotting.scores",
        "PrivateConfusionMatrixDisplay": "skdp.plotting.scores",
        "PrivateRocCurveDisplay": "skdp.plotting.scores",
        "PrivateSubgroupDisplay": "skdp.plotting.scores",
        "RiskDisplay": "skdp.plotting.budget",
        "TradeOffDisplay": "skdp.plotting.accountants",
    },
)
