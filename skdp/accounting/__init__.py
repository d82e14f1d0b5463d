"""Privacy accounting: the privacy cost of a computation on private data.

The package stands alone: beside NumPy and SciPy it imports `skdp.exceptions` only.

- `events`: specifications of what was done (names as in Google's dp-accounting), their composition, groups of records,
  and conversion from and to dp-accounting
- `formulas`: closed forms, root finding, quadrature, and `dominating`, the pairs that dominate a release
- `releases`: a composition as the methods read it
- `rdp`, `pld`, `classic`: the methods; `methods`: which events each of them covers, `get_epsilon` and its kin
- `statements`: `PrivacyProfile`, `RenyiCurve`, and what a budget is stated in
- `calibration`: from a budget back to the noise
- `ledger`: `PrivacyAccountant`
"""

from __future__ import annotations

from skdp.accounting.calibration import (
    calibrate_jointly,
    calibrate_noise_multiplier,
    calibrate_selection,
    fewest_trials,
)
from skdp.accounting.events import specifications
from skdp.accounting.events.composition import compose, flatten
from skdp.accounting.events.kinds import from_dp_accounting, to_dp_accounting
from skdp.accounting.events.specifications import *  # noqa: F403 - the events, which `__all__` of the module lists
from skdp.accounting.formulas.selection_law import NumberOfTrials
from skdp.accounting.ledger import Charge, PrivacyAccountant
from skdp.accounting.ledger import resolve_accountant as resolve_accountant  # for the estimators
from skdp.accounting.methods import AddRemove as AddRemove  # the public names are skdp.AddRemove and skdp.Risk
from skdp.accounting.methods import get_delta, get_epsilon, get_epsilon_bounds
from skdp.accounting.statements.privacy_curves import PrivacyProfile, RenyiCurve, compare_accountants
from skdp.accounting.statements.targets import Risk as Risk

__all__ = [
    "Charge", "NumberOfTrials", "PrivacyAccountant", "PrivacyProfile", "RenyiCurve", "calibrate_jointly",
    "calibrate_noise_multiplier", "calibrate_selection", "compare_accountants", "compose", "fewest_trials", "flatten",
    "from_dp_accounting", "get_delta", "get_epsilon", "get_epsilon_bounds", "to_dp_accounting",
]  # fmt: skip
__all__ += specifications.__all__
