"""One table of kinds: every event of the library has a row, and what reads the table agrees with what computes."""

import dataclasses
import math
import pickle

import pytest
from combinations import over_rows

import skdp.accounting
from skdp.accounting import (
    ComposedDpEvent,
    GaussianDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    PrivacyAccountant,
    SelfComposedDpEvent,
    from_dp_accounting,
    get_epsilon,
    to_dp_accounting,
)
from skdp.accounting.events import specifications
from skdp.accounting.events.composition import group_event
from skdp.accounting.events.kinds import EVENT_KINDS, REMOVED_EVENTS, kind_of
from skdp.accounting.events.specifications import DpEvent
from skdp.accounting.ledger.serial import event_from_dict, event_to_dict
from skdp.report.report_data import mechanism_rows

TAKEN_APART = {NoOpDpEvent, NonPrivateDpEvent, SelfComposedDpEvent, ComposedDpEvent}
GAUSS = GaussianDpEvent(2.0)
WHOLE = (-1, 1.0, True, "3")
REAL = (math.nan, math.inf, True, "1")
NOISE = (*REAL, 0.0, -1.0, 1e-101, 1e-308, 1e101, 10**400)  # a square that no double holds would be charged as free
FIELDS = {  # by the name of a field: a value of the example, and values that are not valid
    "event": (GAUSS, ()),
    "events": ((GAUSS, GaussianDpEvent(3.0)), ()),
    "noise_multiplier": (2.0, NOISE),
    "sampling_probability": (0.1, (*REAL, -0.1, 1.1)),
    "epsilon": (0.5, (*REAL, -1.0)),
    "delta": (1e-7, (*REAL, -1e-5, 1.0)),
    "rho": (0.1, (*REAL, -0.1)),
    "xi": (0.0, (*REAL, -0.1)),
    "mean": (4.0, (*REAL, 0.5, 1e13)),
    "shape": (1.0, (math.nan, True, "1", None, -0.1)),
    "standard_deviation": (2.0, NOISE),
    "noise_parameter": (0.5, (*REAL, -0.1)),
    "sensitivity": (1, (*WHOLE, 10**7)),
    "sensitivities": ((0.0, 1.0), (1.0, (-1.0, 1.0))),
    "sampling_probs": ((0.5, 0.5), (1.0, (0.5, 0.4), (1.0,), (1.5, -0.5))),
    "source_dataset_size": (100, (*WHOLE, 0)),
    "sample_size": (10, WHOLE),
    "count": (3, (*WHOLE, 10**400)),
}


def example(kind):
    return kind(**{field.name: FIELDS[field.name][0] for field in dataclasses.fields(kind)})


EXAMPLES = {kind.__name__: example(kind) for kind in EVENT_KINDS if kind not in TAKEN_APART}
NESTED = (
    NoOpDpEvent(),
    NonPrivateDpEvent(),
    SelfComposedDpEvent(EXAMPLES["PoissonSampledDpEvent"], 7),
    ComposedDpEvent((GAUSS, SelfComposedDpEvent(ComposedDpEvent((EXAMPLES["ZCDpEvent"],)), 2))),
)


def events_of_the_library():
    classes = {name: value for name, value in vars(specifications).items() if isinstance(value, type)}
    return {name: value for name, value in classes.items() if issubclass(value, DpEvent) and value is not DpEvent}


def test_every_event_has_a_row():
    assert events_of_the_library() == {row.event.__name__: row.event for row in EVENT_KINDS.values()}
    assert {kind.__name__ for kind in EVENT_KINDS} <= set(skdp.accounting.__all__)


@over_rows("event", [*EXAMPLES.values(), SelfComposedDpEvent(GaussianDpEvent(2.0), 3)])
def test_field_that_is_not_valid_raises_one_line_that_names_it(event):
    fields = [field.name for field in dataclasses.fields(event) if field.name not in ("event", "events")]
    for name in fields:
        for bad in FIELDS[name][1]:
            with pytest.raises((ValueError, TypeError), match=f"`{name}` must be .*, got ") as error:
                dataclasses.replace(event, **{name: bad})
            assert "\n" not in str(error.value), (name, bad)


@over_rows("event", [*EXAMPLES.values(), *NESTED])
def test_round_trip_through_dp_accounting(event):
    other = pytest.importorskip("dp_accounting.dp_event")
    if not hasattr(other, type(event).__name__):
        with pytest.raises(TypeError, match="no counterpart in dp-accounting"):
            to_dp_accounting(event)
        return
    converted = to_dp_accounting(event)
    assert type(converted) is getattr(other, type(event).__name__)
    assert from_dp_accounting(converted) == event


def test_each_event_of_dp_accounting_is_converted_or_named():
    other = pytest.importorskip("dp_accounting.dp_event")
    gauss = other.GaussianDpEvent(2.0)
    theirs = {
        "RandomizedResponseDpEvent": other.RandomizedResponseDpEvent(0.5, 4),
        "SampledWithReplacementDpEvent": other.SampledWithReplacementDpEvent(100, 10, gauss),
        "SingleEpochTreeAggregationDpEvent": other.SingleEpochTreeAggregationDpEvent(4.0, 4),
        "TruncatedSubsampledGaussianDpEvent": other.TruncatedSubsampledGaussianDpEvent(100, 0.1, 20, 2.0),
        "UnsupportedDpEvent": other.UnsupportedDpEvent(),
    }
    names = {name for name in vars(other) if name.endswith("DpEvent") and name != "DpEvent"}
    assert names - {kind.__name__ for kind in EVENT_KINDS} == set(theirs)
    for name, event in theirs.items():
        for whole in (event, other.ComposedDpEvent([gauss, other.SelfComposedDpEvent(event, 2)])):
            with pytest.raises(TypeError, match=name) as error:
                from_dp_accounting(whole)
            assert REMOVED_EVENTS.get(name, "EpsilonDeltaDpEvent") in str(error.value)
            assert "\n" not in str(error.value)


@over_rows("name", EXAMPLES)
def test_an_event_is_written_charged_and_costs_less_with_more_noise_and_more_for_a_group(name):
    event, kind = EXAMPLES[name], kind_of(EXAMPLES[name])
    method = "rdp" if name == "ZCDpEvent" else "pld"
    adjacency = "replace_one" if name == "SampledWithoutReplacementDpEvent" else "zero_out"
    terms = {"method": method, "adjacency": adjacency}
    cost = get_epsilon(event, 1e-5, **terms)
    assert event_from_dict(event_to_dict(event)) == pickle.loads(pickle.dumps(event)) == event
    accountant = PrivacyAccountant()
    accountant.spend(SelfComposedDpEvent(event, 3), "some", adjacency=terms["adjacency"])
    again = PrivacyAccountant.from_json(accountant.to_json())
    assert again.history[0].event == SelfComposedDpEvent(event, 3)
    assert again.get_epsilon(1e-5) == get_epsilon(SelfComposedDpEvent(event, 3), 1e-5, **terms)
    assert "3 x " in str(accountant)
    rows, number = mechanism_rows(SelfComposedDpEvent(event, 3))
    assert len(rows) == number >= 1
    assert 3 in [row["times"] for row in rows]
    if kind.scaled is not None:
        assert get_epsilon(kind.scaled(event, 2.0), 1e-5, **terms) < cost
    if (group := group_event(event, 2)) is not None:
        assert get_epsilon(group, 1e-5, **terms) > cost
