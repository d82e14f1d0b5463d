"""Display classes in the style of scikit-learn: they store numbers, and `plot` draws them.

matplotlib is imported when something is drawn. `_axes` has the shared functions.

- `_axes`: shared axes, colors and notes. Axes that are passed are used without pyplot
- `accountants`: `AccountantComparisonDisplay`: epsilon of one computation by several accounting methods
- `budget`: `BudgetDisplay`: charges of an accountant and its remaining budget; `RiskDisplay`
- `coefficients`: `CoefficientDisplay`: coefficients and their noise, or importances; `EffectDisplay`
- `scores`: displays of private evaluations: curves and confusion matrix with intervals, and metrics of subgroups
- `utility`: `PrivacyUtilityDisplay`: score of a model against its privacy budget
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
