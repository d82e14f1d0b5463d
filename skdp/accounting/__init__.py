"""Privacy accounting: what a computation on private data costs.

A package that could stand alone: it needs numpy and scipy only.

- `events`: frozen specifications of what was done (names as in Google's dp-accounting), their composition, events of
  several records; `to_dp_accounting`, `from_dp_accounting`
- `releases`: what methods read of a composition; `methods`: which events each of them can price, `get_epsilon`,
  `get_delta`, `get_epsilon_bounds`; `curves`: `RenyiCurve`, `PrivacyProfile`, all methods in one table
- `dominating`: pairs that dominate a release, as weighted losses
- `pld`, `rdp`, `classic`: the methods; `formulas`: closed forms, and what they share
- `calibration`: from a price back to the noise
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
from skdp.accounting.statements.curves import PrivacyProfile, RenyiCurve, compare_accountants
from skdp.accounting.statements.targets import Risk as Risk

__all__ = [
    "Charge", "NumberOfTrials", "PrivacyAccountant", "PrivacyProfile", "RenyiCurve", "calibrate_jointly",
    "calibrate_noise_multiplier", "calibrate_selection", "compare_accountants", "compose", "fewest_trials", "flatten",
    "from_dp_accounting", "get_delta", "get_epsilon", "get_epsilon_bounds", "to_dp_accounting",
]  # fmt: skip
__all__ += specifications.__all__
