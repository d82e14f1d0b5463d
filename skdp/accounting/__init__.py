"""Privacy accounting: what a computation on private data costs.

A package that could stand alone: it needs numpy and scipy only.

- `events`: frozen specifications of what was done (names as in Google's dp-accounting)
- `_composition`: `compose` joins events, `flatten` lists what they consist of
- `_methods`: `get_epsilon`, `get_delta`: the price of an event by a named method
- `_pld`, `_pairs`, `_tilting`: privacy loss distributions; `_rdp`: Rényi; `_gaussian`: the closed form
- `_calibration`: `calibrate_noise_multiplier`, from a price back to the noise
- `_accountant`, `_filters`: `PrivacyAccountant`, the running bill, and what its ceiling admits
- `_interop`: `to_dp_accounting`
"""

from __future__ import annotations

from ._accountant import Charge, PrivacyAccountant
from ._calibration import calibrate_noise_multiplier
from ._composition import compose, flatten
from ._interop import to_dp_accounting
from ._methods import ADJACENCIES, METHODS, get_delta, get_epsilon
from .events import (
    ComposedDpEvent,
    DpEvent,
    GaussianDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
)

__all__ = [
    "ADJACENCIES",
    "METHODS",
    "Charge",
    "ComposedDpEvent",
    "DpEvent",
    "GaussianDpEvent",
    "NoOpDpEvent",
    "NonPrivateDpEvent",
    "PoissonSampledDpEvent",
    "PrivacyAccountant",
    "SelfComposedDpEvent",
    "calibrate_noise_multiplier",
    "compose",
    "flatten",
    "get_delta",
    "get_epsilon",
    "to_dp_accounting",
]
