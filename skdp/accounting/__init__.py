"""Privacy accounting: the privacy cost of a computation on private data.

Besides NumPy and SciPy, the package imports only `skdp.exceptions`.

- `events`: privacy events (frozen specifications, named as in dp-accounting) and their composition
- `formulas`: closed forms and shared numerical methods
- `releases`: a composition sorted by type of release, the input of the accounting methods
- `rdp`: Rényi divergences of a composition (`rdp`) and of one release (`mechanisms`)
- `classic`: composition of (epsilon, delta) guarantees (naive, strong, optimal, strong of 2016), and the moments
  accountant
- `pld`: privacy loss distributions
- `methods`: `get_epsilon` and `get_delta` by a given method, and `get_epsilon_bounds` with certified bounds
- `statements`: Rényi curve, privacy profile and trade-off function of an event (`privacy_curves`), and the target of a
  calibration (`targets`)
- `calibration`: noise that meets a privacy budget
- `ledger`: `PrivacyAccountant`: the charges to one data set, the admission of further charges, and their storage
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
