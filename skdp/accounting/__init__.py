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

from .calibration.joint import calibrate_jointly
from .calibration.noise import calibrate_noise_multiplier
from .calibration.selection import calibrate_selection, fewest_trials
from .curves import PrivacyProfile, RenyiCurve, compare_accountants
from .events import noise_events
from .events.composition import compose, flatten
from .events.interop import from_dp_accounting, to_dp_accounting
from .events.noise_events import *  # noqa: F403 - the events that `__all__` of the module lists
from .events.specifications import (
    ComposedDpEvent,
    DpEvent,
    EpsilonDeltaDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    RepeatAndSelectDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
    WorstOfDpEvent,
    ZCDpEvent,
)
from .formulas.selection_law import NumberOfTrials
from .ledger import Charge, PrivacyAccountant
from .ledger import resolve_accountant as resolve_accountant  # for the estimators
from .methods import AddRemove as AddRemove  # the public names are skdp.AddRemove and skdp.Risk
from .methods import get_delta, get_epsilon, get_epsilon_bounds
from .targets import Risk as Risk

__all__ = [
    "Charge",
    "ComposedDpEvent",
    "DpEvent",
    "EpsilonDeltaDpEvent",
    "GaussianDpEvent",
    "LaplaceDpEvent",
    "NoOpDpEvent",
    "NonPrivateDpEvent",
    "NumberOfTrials",
    "PoissonSampledDpEvent",
    "PrivacyAccountant",
    "PrivacyProfile",
    "RenyiCurve",
    "RepeatAndSelectDpEvent",
    "SampledWithoutReplacementDpEvent",
    "SelfComposedDpEvent",
    "WorstOfDpEvent",
    "ZCDpEvent",
    "calibrate_jointly",
    "calibrate_noise_multiplier",
    "calibrate_selection",
    "compare_accountants",
    "compose",
    "fewest_trials",
    "flatten",
    "from_dp_accounting",
    "get_delta",
    "get_epsilon",
    "get_epsilon_bounds",
    "to_dp_accounting",
]
__all__ += noise_events.__all__
