"""Displays, as in scikit-learn: numbers that are held, and drawn by `plot`.

matplotlib is imported when something is drawn, scikit-learn when something is fitted.
"""

from __future__ import annotations

from skdp.plotting.accountants import AccountantComparisonDisplay, TradeOffDisplay
from skdp.plotting.budget import BudgetDisplay, RiskDisplay
from skdp.plotting.coefficients import CoefficientDisplay, EffectDisplay
from skdp.plotting.scores import (
    PrivateCalibrationDisplay,
    PrivateConfusionMatrixDisplay,
    PrivateRocCurveDisplay,
    PrivateSubgroupDisplay,
)
from skdp.plotting.utility import PrivacyUtilityDisplay

__all__ = [
    "AccountantComparisonDisplay",
    "BudgetDisplay",
    "CoefficientDisplay",
    "EffectDisplay",
    "PrivacyUtilityDisplay",
    "PrivateCalibrationDisplay",
    "PrivateConfusionMatrixDisplay",
    "PrivateRocCurveDisplay",
    "PrivateSubgroupDisplay",
    "RiskDisplay",
    "TradeOffDisplay",
]
