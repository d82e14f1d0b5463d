"""Privacy accounting: what a computation on private data costs.

A package that could stand alone: it needs numpy and scipy only.

- `events`: frozen specifications of what was done (names as in Google's dp-accounting)
- `_composition`: `compose` joins events, `flatten` lists what they consist of
- `_methods`: `get_epsilon`, `get_delta`: the price of an event by a named method
- `_refusals`: `METHODS` and `APPROXIMATIONS`, and which events each of them can price
- `_certified`: `get_epsilon_bounds`, the truth from both sides
- `_pld`, `_pairs`, `_bounded`, `_tilting`, `_grid`, `_bounds`: privacy loss distributions; `_gaussian`: the closed form
- `_repeats`, `_profiles`, `_directions`, `_rdp_selection`: selection by random stopping, by profiles and Rényi;
  `_selection`: noise for a whole search
- `_rdp`, `_rdp_events`, `_rdp_sampled`: Rényi; `_moments`: the moments accountant of 2016; `_gdp`: the central limit
- `_strong`: naive, strong and optimal composition, and the strong bound as published in 2016
- `_compare`: `compare_accountants`, all methods in one table
- `_calibration`, `_joint_calibration`: from a price back to the noise, the steps or the sampling rate
- `_accountant`, `_bill`, `_charges`: `PrivacyAccountant`, its ledger and the entries; `_resolve`: what a parameter
  `accountant` stands for
- `_filters`, `_odometer`: what a ceiling admits, and what a run costs however it was chosen; `_admission`,
  `_affordable`: whether an entry may be written, what is told if not, and what the next one may cost
- `_log`, `_store`, `_sqlite`, `_placing`, `_serial`: where a ledger is kept, in memory or in a file that processes
  share; JSON and the chain of hashes; `_figures`, `_report`, `_rounding`: how it is shown
- `_interop`: `to_dp_accounting`, `from_dp_accounting`
"""

from __future__ import annotations

from ._accountant import Charge, PrivacyAccountant
from ._calibration import calibrate_noise_multiplier, calibrate_sampling_rate, calibrate_steps
from ._certified import get_epsilon_bounds
from ._compare import compare_accountants
from ._composition import compose, flatten
from ._interop import from_dp_accounting, to_dp_accounting
from ._joint_calibration import calibrate_jointly
from ._methods import ADJACENCIES, APPROXIMATIONS, METHODS, get_delta, get_epsilon
from ._repeats import NumberOfTries
from ._resolve import resolve_accountant as resolve_accountant  # for the estimators
from ._selection import CalibratedSelection, calibrate_selection, cheapest_tries
from .events import (
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

__all__ = [
    "ADJACENCIES",
    "APPROXIMATIONS",
    "METHODS",
    "CalibratedSelection",
    "Charge",
    "ComposedDpEvent",
    "DpEvent",
    "EpsilonDeltaDpEvent",
    "GaussianDpEvent",
    "LaplaceDpEvent",
    "NoOpDpEvent",
    "NonPrivateDpEvent",
    "NumberOfTries",
    "PoissonSampledDpEvent",
    "PrivacyAccountant",
    "RepeatAndSelectDpEvent",
    "SampledWithoutReplacementDpEvent",
    "SelfComposedDpEvent",
    "WorstOfDpEvent",
    "ZCDpEvent",
    "calibrate_jointly",
    "calibrate_noise_multiplier",
    "calibrate_sampling_rate",
    "calibrate_selection",
    "calibrate_steps",
    "cheapest_tries",
    "compare_accountants",
    "compose",
    "flatten",
    "from_dp_accounting",
    "get_delta",
    "get_epsilon",
    "get_epsilon_bounds",
    "to_dp_accounting",
]
