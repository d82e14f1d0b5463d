"""Privacy accounting: the privacy cost of a computation on private data.

The package stands alone: beside NumPy and SciPy it imports `skdp.exceptions` only.

- `events`: what was done, without behaviour: frozen specifications, named as in dp-accounting, and their composition
- `formulas`: closed forms, and the searches and sums that they share
- `releases`: a composition sorted by kind of release, as the methods read it
- `rdp`: Rényi divergences of a composition (`rdp`), and of one release (`mechanisms`)
- `classic`: composition of (epsilon, delta) statements (naive, strong, optimal, strong of 2016), and the moments
  accountant
- `pld`: privacy loss distributions: the releases of an event go down once, and a number comes up once
- `methods`: `get_epsilon`, `get_delta` by the method that is named, and `get_epsilon_bounds`, the truth from both
  sides
- `statements`: what is said of an event, or of a budget: curves (`curves`), and the target of a budget (`targets`)
- `calibration`: from a budget back to the noise that fits it
- `ledger`: `PrivacyAccountant`: the record of one data set, what a budget admits, and where it is kept
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
