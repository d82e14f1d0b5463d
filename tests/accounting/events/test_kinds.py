"""One table of kinds: every event of the library has a row, and what reads the table agrees with what computes."""

import dataclasses
import math
import pickle

import pytest
from combinations import over_rows

import skdp.accounting
from skdp.accounting import (
    METHODS,
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
from skdp.accounting.events import noise_events, specifications
from skdp.accounting.events.composition import group_event
from skdp.accounting.events.kinds import (
    BY_NAME,
    EVENT_KINDS,
    FORMS,
    REMOVED_EVENTS,
    Kind,
    adjacency_refusal,
    is_priced,
    kind_of,
)
from skdp.accounting.events.specifications import DpEvent
from skdp.accounting.ledger.serial import event_from_dict, event_to_dict
from skdp.accounting.methods import APPROXIMATIONS
from skdp.accounting.rdp.others import _shift
from skdp.accounting.releases import Releases
from skdp.report.release_table import mechanism_rows

EXAMPLES = {
    "GaussianDpEvent": GaussianDpEvent(2.0),
    "LaplaceDpEvent": skdp.accounting.LaplaceDpEvent(2.0),
    "DiscreteLaplaceDpEvent": skdp.accounting.DiscreteLaplaceDpEvent(0.5, 1),
    "DiscreteGaussianDpEvent": skdp.accounting.DiscreteGaussianDpEvent(2.0, 1),
    "EpsilonDeltaDpEvent": skdp.accounting.EpsilonDeltaDpEvent(0.5, 1e-7),
    "ZCDpEvent": skdp.accounting.ZCDpEvent(0.1),
    "MixtureOfGaussiansDpEvent": skdp.accounting.MixtureOfGaussiansDpEvent(2.0, (0.0, 1.0), (0.5, 0.5)),
    "PoissonSampledDpEvent": skdp.accounting.PoissonSampledDpEvent(0.1, GaussianDpEvent(2.0)),
    "SampledWithoutReplacementDpEvent": skdp.accounting.SampledWithoutReplacementDpEvent(100, 10, GaussianDpEvent(2.0)),
    "RepeatAndSelectDpEvent": skdp.accounting.RepeatAndSelectDpEvent(GaussianDpEvent(2.0), 4.0, 1.0),
    "WorstOfDpEvent": skdp.accounting.WorstOfDpEvent((GaussianDpEvent(2.0), GaussianDpEvent(3.0))),
}
WHOLE = (-1, 1.0, True, "3", math.nan)
REAL = (math.nan, math.inf, True, "1", None, 1j)
NOISE = (*REAL, 0.0, -1.0, 1e-101, 1e-308, 1e101, 10**400)  # a square that no double holds would be priced as free
BAD = {
    "noise_multiplier": NOISE,
    "sampling_probability": (*REAL, -0.1, 1.1),
    "epsilon": (*REAL, -1.0),
    "delta": (*REAL, -1e-5, 1.0),
    "rho": (*REAL, -0.1),
    "xi": (*REAL, -0.1),
    "mean": (*REAL, 0.5, 1e13),
    "shape": (math.nan, True, "1", None, -0.1),
    "standard_deviation": NOISE,
    "noise_parameter": (*REAL, -0.1),
    "sensitivity": (*WHOLE, 10**7),
    "sensitivities": (1.0, (-1.0, 1.0)),
    "sampling_probs": (1.0, (0.5, 0.4), (1.0,), (1.5, -0.5)),
    "source_dataset_size": (*WHOLE, 0),
    "sample_size": WHOLE,
    "count": (*WHOLE, 10**400),
}
TAKEN_APART = {"NoOpDpEvent", "NonPrivateDpEvent", "SelfComposedDpEvent", "ComposedDpEvent"}


OUR_OWN = {
    "EpsilonDeltaDpEvent": "from_privacy_parameters",
    "DiscreteGaussianDpEvent": "ZCDpEvent",
    "WorstOfDpEvent": "",
}
"""Events that dp-accounting does not have, and what a refusal names instead."""
NESTED = (
    NoOpDpEvent(),
    NonPrivateDpEvent(),
    SelfComposedDpEvent(EXAMPLES["PoissonSampledDpEvent"], 7),
    ComposedDpEvent((EXAMPLES["GaussianDpEvent"], SelfComposedDpEvent(ComposedDpEvent((EXAMPLES["ZCDpEvent"],)), 2))),
)


def events_of_the_library():
    found = {}
    for module in (specifications, noise_events):
        for name, value in vars(module).items():
            if isinstance(value, type) and issubclass(value, DpEvent) and value is not DpEvent:
                found[name] = value
    return found


def test_every_event_has_a_row():
    assert events_of_the_library() == {row.event.__name__: row.event for row in EVENT_KINDS.values()}
    assert set(EXAMPLES) | TAKEN_APART == {row.__name__ for row in EVENT_KINDS}


@over_rows("event", [*EXAMPLES.values(), SelfComposedDpEvent(GaussianDpEvent(2.0), 3)])
def test_field_that_is_not_valid_raises_one_line_that_names_it(event):
    fields = [field.name for field in dataclasses.fields(event) if field.name not in ("event", "events")]
    for name in fields:
        for bad in BAD[name]:
            with pytest.raises((ValueError, TypeError), match=f"{name}=.* is not valid; give a ") as error:
                dataclasses.replace(event, **{name: bad})
            assert "\n" not in str(error.value), (name, bad)


@over_rows("event", [*(EXAMPLES[name] for name in EXAMPLES if name not in OUR_OWN), *NESTED])
def test_round_trip_through_dp_accounting(event):
    other = pytest.importorskip("dp_accounting.dp_event")
    converted = to_dp_accounting(event)
    assert type(converted) is getattr(other, type(event).__name__)
    assert from_dp_accounting(converted) == event


def test_event_without_counterpart_raises_with_a_substitute():
    other = pytest.importorskip("dp_accounting.dp_event")
    rows = [(EXAMPLES[name], substitute) for name, substitute in OUR_OWN.items()]
    rows += [(SelfComposedDpEvent(EXAMPLES["EpsilonDeltaDpEvent"], 2), "from_privacy_parameters")]
    for ours, substitute in [*rows, (DpEvent(), "an event of skdp.accounting")]:
        with pytest.raises(TypeError, match=f"no counterpart in dp-accounting; .*{substitute}") as error:
            to_dp_accounting(ours)
        assert "\n" not in str(error.value)
    for theirs in (other.UnsupportedDpEvent(), 3):
        with pytest.raises(TypeError, match=r"no counterpart in skdp\.accounting; use EpsilonDeltaDpEvent"):
            from_dp_accounting(theirs)
    with pytest.raises(ValueError, match=r"noise_multiplier=0\.0"):
        from_dp_accounting(other.GaussianDpEvent(0.0))


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
    assert names == set(theirs) | ({*EXAMPLES, *TAKEN_APART} - set(OUR_OWN))
    for name, event in theirs.items():
        for whole in (event, other.ComposedDpEvent([gauss, other.SelfComposedDpEvent(event, 2)])):
            with pytest.raises(TypeError, match=name) as error:
                from_dp_accounting(whole)
            assert REMOVED_EVENTS.get(name, "EpsilonDeltaDpEvent") in str(error.value)
            assert "\n" not in str(error.value)
    assert set(theirs) - {"UnsupportedDpEvent"} <= set(REMOVED_EVENTS)
    assert not set(REMOVED_EVENTS) & set(BY_NAME)


def test_event_that_is_taken_apart_can_be_written():
    for event in NESTED:
        assert event_from_dict(event_to_dict(event)) == event


def test_forms_are_the_fields_that_hold_releases_and_name_methods_that_exist():
    assert set(FORMS) <= {field.name for field in dataclasses.fields(Releases)}
    assert {row.form for row in EVENT_KINDS.values()} <= {*FORMS, "", "non_private"}
    assert {method for form in FORMS.values() for method in form.methods} == {*METHODS, *APPROXIMATIONS}


@over_rows("name", EXAMPLES)
def test_a_kind_has_a_price_under_the_neighbours_of_its_row(name):
    event = EXAMPLES[name]
    method = "rdp" if name == "ZCDpEvent" else "pld"
    for adjacency in ("zero_out", "replace_one"):
        refused = adjacency_refusal(event, adjacency == "replace_one") is not None
        assert refused == (kind_of(event).adjacency == "replace_one" and adjacency == "zero_out")
        if refused:
            with pytest.raises(ValueError, match="adjacency"):
                get_epsilon(event, 1e-5, method=method, adjacency=adjacency)
        else:
            assert 0.0 < get_epsilon(event, 1e-5, method=method, adjacency=adjacency) < 100.0


@over_rows("name", EXAMPLES)
def test_an_event_is_written_charged_and_costs_less_with_more_noise_and_more_for_a_group(name):
    event, kind = EXAMPLES[name], kind_of(EXAMPLES[name])
    method = "rdp" if name == "ZCDpEvent" else "pld"
    terms = {"method": method, "adjacency": kind.adjacency or "zero_out"}
    price = get_epsilon(event, 1e-5, **terms)
    assert event_from_dict(event_to_dict(event)) == pickle.loads(pickle.dumps(event)) == event
    assert hash(pickle.loads(pickle.dumps(event))) == hash(event)
    accountant = PrivacyAccountant()
    accountant.spend(SelfComposedDpEvent(event, 3), "some", adjacency=terms["adjacency"])
    again = PrivacyAccountant.from_json(accountant.to_json())
    assert again.history[0].event == SelfComposedDpEvent(event, 3)
    assert again.get_epsilon(1e-5) == get_epsilon(SelfComposedDpEvent(event, 3), 1e-5, **terms)
    assert "3 x " in str(accountant)
    rows, number = mechanism_rows(SelfComposedDpEvent(event, 3))
    assert len(rows) == number >= 1
    assert 3 in [row["times"] for row in rows]
    assert all(row["mechanism"][:1].islower() or row["mechanism"].startswith(("Gaussian", "Laplace")) for row in rows)
    if kind.scaled is not None:
        assert get_epsilon(kind.scaled(event, 2.0), 1e-5, **terms) < price
    if (group := group_event(event, 2)) is not None:
        assert get_epsilon(group, 1e-5, **terms) > price


def test_the_renyi_divergence_of_losses_that_nobody_follows_is_infinite():
    @dataclasses.dataclass(frozen=True)
    class Stranger(DpEvent):
        """Of a pair, as of an event that was added to the library."""

    # at high orders a grid that ends where low ones need no more would make it too small
    assert _shift(Stranger()) == math.inf
    assert _shift(skdp.accounting.PoissonSampledDpEvent(0.1, GaussianDpEvent(2.0))) == 1.0
    assert _shift(skdp.accounting.LaplaceDpEvent(2.0)) == 0.0


def test_an_event_without_a_row_is_taken_for_nothing_that_is_known():
    @dataclasses.dataclass(frozen=True)
    class Stranger(DpEvent):
        event: DpEvent

    stranger = Stranger(GaussianDpEvent(1.0))
    assert kind_of(stranger) == Kind(DpEvent, "", note=kind_of(stranger).note)
    assert not is_priced(stranger)
    assert group_event(stranger, 2) is None
    with pytest.raises(TypeError):
        get_epsilon(stranger, 1e-5)
