"""Display classes in the style of scikit-learn: they store numbers, and `plot` draws them.

matplotlib is imported when something is drawn. `_axes` has the shared functions.

- `_axes`: what the displays share: axes, colors, small print. Axes that are given are drawn on without pyplot
- `accountants`: `AccountantComparisonDisplay`: what one computation costs by several methods of accounting
- `budget`: `BudgetDisplay`: what each charge took from a ledger, and what is left
- `coefficients`: `CoefficientDisplay`: what the coefficients are, and what noise alone could make of them; or
  importances
- `scores`: displays of private evaluations: curves and confusion matrix with bands, and figures of subgroups
- `survival`: `PrivateSurvivalDisplay`: survival curves with bands of intervals
- `utility`: `PrivacyUtilityDisplay`: the quality of a model against its privacy budget
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
        "PrivateSurvivalDisplay": "skdp.plotting.survival",
        "RiskDisplay": "skdp.plotting.budget",
        "TradeOffDisplay": "skdp.plotting.accountants",
    },
)
