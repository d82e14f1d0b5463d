"""Arguments of costs, curves, calibration and accountants: each is rejected in one line that names it."""

import math

import pytest
from combinations import over_rows

from skdp.accounting import (
    GaussianDpEvent,
    PrivacyAccountant,
    PrivacyProfile,
    RenyiCurve,
    Risk,
    calibrate_jointly,
    calibrate_noise_multiplier,
    get_delta,
    get_epsilon,
    get_epsilon_bounds,
)

G = GaussianDpEvent(1.0)
RISK = Risk(advantage=0.1)
NO_RISKS = (
    {},
    {"advantage": 1.0},
    {"advantage": "much"},
    {"tpr": 0.1},
    {"tpr": 0.1, "fpr": 0.1},
    {"advantage": 0.1, "tpr": 0.2, "fpr": 0.1},
)

CALLS = [
    *(
        (cost, (G, bad), {}, r"`delta` must be a number above 0 and below 1")
        for cost in (get_epsilon, get_epsilon_bounds)
        for bad in (0.0, 1.0, math.nan, "1e-5")
    ),
    *((get_delta, (G, bad), {}, r"`epsilon` must be a finite number") for bad in (-1.0, math.inf, "1")),
    *(
        (cost, (G, 0.5), {"group_size": bad}, "`group_size` must be an integer")
        for cost in (get_epsilon, get_delta)
        for bad in (0, 1.0, 10**6)
    ),
    *(
        (cost, (G, 0.5), {"adjacency": "substitute"}, "zero_out, add_remove, replace_one")
        for cost in (get_epsilon, get_delta, get_epsilon_bounds)
    ),
    (get_epsilon, (G, 1e-5), {"method": "prv"}, "pld, rdp, moments"),
    (RenyiCurve(G), (1.0,), {}, r"`orders` must be numbers above 1, got 1.0"),
    (RenyiCurve, (G,), {"adjacency": "other"}, "`adjacency` must be one of .*, got 'other'"),
    (PrivacyProfile, (G,), {"method": "strong_2016"}, "not a guarantee"),
    (PrivacyProfile, (G,), {"least_delta": 0.0}, "`delta` must be"),
    (PrivacyProfile(G), (-1.0,), {}, "`epsilon` must be"),
    (PrivacyProfile(G).trade_off, (1.5,), {}, "`type_1` must be"),
    (PrivacyProfile(G).mu, (0.0,), {}, "`alpha_min` must be a number from 1e-15 to below 0.5, got 0.0"),
    (PrivacyProfile(G).bayes_risk, (1.0,), {}, "`prior` must be a number above 0 and below 1, got 1.0"),
    (PrivacyProfile(G).true_positive_rate, (1.5,), {}, "`fpr` must be numbers from 0 to 1, got 1.5"),
    (PrivacyProfile(G).reconstruction, (-0.1,), {}, "`baseline` must be numbers from 0 to 1, got -0.1"),
    *(
        (calibrate_noise_multiplier, (GaussianDpEvent, bad, 1e-5), {}, r"`epsilon` must be .*above 0")
        for bad in (0.0, -1.0, math.nan, math.inf, "1")
    ),
    *(
        (calibrate_jointly, ([GaussianDpEvent] * 2, 1.0, 1e-5, bad), {}, "`fractions` must")
        for bad in ([1.0], [1.0, 0.0], [1.0, -1.0], [1.0, math.nan])
    ),
    *(
        (Risk, (), bad, "Risk.* number above 0 and below 1|expected `advantage`, or both|must be smaller than")
        for bad in NO_RISKS
    ),
    (calibrate_noise_multiplier, (GaussianDpEvent, None), {}, "`epsilon` must be a finite number above 0, got None"),
    *(
        (PrivacyAccountant, bad, {}, r"`(epsilon|delta)`.* must .*got")
        for bad in ((1.0, None), (None, 1e-5), (0.0, 1e-5), (1.0, 0.0), (math.inf, 1e-5), ("1", 1e-5))
    ),
    (PrivacyAccountant, (1.0, 1e-5), {"unit": ""}, "`unit` must be a non-empty string"),
    (PrivacyAccountant, (1.0, 1e-5), {"filter_family": "rdp "}, "`filter_family` must be one of"),
    (PrivacyAccountant, (RISK,), {}, "`delta` must be set"),
    (PrivacyAccountant, (RISK, 0.2), {}, "cannot be guaranteed at delta=0.2. Lower `delta`, or raise the risk"),
]


@over_rows(("call", "arguments", "options", "message"), CALLS)
def test_argument_that_is_not_valid_raises_one_line(call, arguments, options, message):
    with pytest.raises(ValueError, match=message) as error:
        call(*arguments, **options)
    assert "\n" not in str(error.value)


@over_rows(
    ("arguments", "options", "kind", "message"),
    [
        ((1.0,), {}, TypeError, "must be a DpEvent"),
        ((G, 3), {}, TypeError, "label"),
        ((G,), {"adjacency": "other"}, ValueError, "adjacency"),
    ],
)
def test_charge_that_is_not_valid_leaves_the_accountant_empty(arguments, options, kind, message):
    accountant = PrivacyAccountant()
    with pytest.raises(kind, match=message):
        accountant.spend(*arguments, **options)
    assert accountant.history == ()
