"""Displays, as in scikit-learn: numbers that are held, and drawn by `plot`.

matplotlib is imported when something is drawn, scikit-learn when something is fitted.
"""

from __future__ import annotations

from .accountants import AccountantComparisonDisplay
from .budget import BudgetDisplay
from .coefficients import CoefficientDisplay
from .effects import EffectDisplay
from .risk import RiskDisplay
from .scores import (
    PrivateCalibrationDisplay,
    PrivateConfusionMatrixDisplay,
    PrivateRocCurveDisplay,
    PrivateSubgroupDisplay,
)
from .trade_off import TradeOffDisplay
from .utility import PrivacyUtilityDisplay

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
