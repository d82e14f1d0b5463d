"""One table of kinds: every event of the library has a row, and what reads the table agrees with what computes."""

import dataclasses
import math

import pytest
from combinations import over_rows

import skdp.accounting
from skdp.accounting import METHODS, GaussianDpEvent, get_epsilon
from skdp.accounting.events import noise_events, sampling_events, specifications
from skdp.accounting.events.composition import group_event
from skdp.accounting.events.kinds import EVENT_KINDS, FORMS, Kind, adjacency_refusal, is_priced, kind_of
from skdp.accounting.events.specifications import DpEvent
from skdp.accounting.ledger.serial import event_from_dict, event_to_dict
from skdp.accounting.methods import APPROXIMATIONS
from skdp.accounting.rdp.others import _shift
from skdp.accounting.releases import Releases

EXAMPLES = {
    "GaussianDpEvent": GaussianDpEvent(2.0),
    "LaplaceDpEvent": skdp.accounting.LaplaceDpEvent(2.0),
    "DiscreteLaplaceDpEvent": skdp.accounting.DiscreteLaplaceDpEvent(0.5, 1),
    "DiscreteGaussianDpEvent": skdp.accounting.DiscreteGaussianDpEvent(2.0, 1),
    "EpsilonDeltaDpEvent": skdp.accounting.EpsilonDeltaDpEvent(0.5, 1e-7),
    "ExponentialMechanismDpEvent": skdp.accounting.ExponentialMechanismDpEvent(0.5),
    "ReportNoisyMaxDpEvent": skdp.accounting.ReportNoisyMaxDpEvent(0.5),
    "RandomizedResponseDpEvent": skdp.accounting.RandomizedResponseDpEvent(0.5, 4),
    "ZCDpEvent": skdp.accounting.ZCDpEvent(0.1),
    "MixtureOfGaussiansDpEvent": skdp.accounting.MixtureOfGaussiansDpEvent(2.0, (0.0, 1.0), (0.5, 0.5)),
    "TruncatedSubsampledGaussianDpEvent": skdp.accounting.TruncatedSubsampledGaussianDpEvent(100, 0.1, 20, 2.0),
    "RandomAllocationDpEvent": skdp.accounting.RandomAllocationDpEvent(2.0, 10),
    "SingleEpochTreeAggregationDpEvent": skdp.accounting.SingleEpochTreeAggregationDpEvent(4.0, (4,)),
    "PoissonSampledDpEvent": skdp.accounting.PoissonSampledDpEvent(0.1, GaussianDpEvent(2.0)),
    "SampledWithoutReplacementDpEvent": skdp.accounting.SampledWithoutReplacementDpEvent(100, 10, GaussianDpEvent(2.0)),
    "SampledWithReplacementDpEvent": skdp.accounting.SampledWithReplacementDpEvent(100, 10, GaussianDpEvent(2.0)),
    "RepeatAndSelectDpEvent": skdp.accounting.RepeatAndSelectDpEvent(GaussianDpEvent(2.0), 4.0, 1.0),
    "WorstOfDpEvent": skdp.accounting.WorstOfDpEvent((GaussianDpEvent(2.0), GaussianDpEvent(3.0))),
}
TAKEN_APART = {"NoOpDpEvent", "NonPrivateDpEvent", "SelfComposedDpEvent", "ComposedDpEvent"}


def events_of_the_library():
    found = {}
    for module in (specifications, noise_events, sampling_events):
        for name, value in vars(module).items():
            if isinstance(value, type) and issubclass(value, DpEvent) and value is not DpEvent:
                found[name] = value
    return found


def test_every_event_has_a_row():
    assert events_of_the_library() == {row.event.__name__: row.event for row in EVENT_KINDS.values()}
    assert set(EXAMPLES) | TAKEN_APART == {row.__name__ for row in EVENT_KINDS}


def test_forms_are_the_fields_that_hold_releases_and_name_methods_that_exist():
    assert set(FORMS) <= {field.name for field in dataclasses.fields(Releases)}
    assert {row.form for row in EVENT_KINDS.values()} <= {*FORMS, "", "non_private"}
    assert {method for form in FORMS.values() for method in form.methods} == {*METHODS, *APPROXIMATIONS}


@over_rows("name", EXAMPLES)
def test_a_kind_has_a_price_under_the_neighbours_of_its_row(name):
    event = EXAMPLES[name]
    method = "rdp" if name in ("ZCDpEvent", "RandomAllocationDpEvent") else "pld"
    for adjacency in ("zero_out", "replace_one"):
        refused = adjacency_refusal(event, adjacency == "replace_one") is not None
        other = {"": False, "replace_one": adjacency == "zero_out", "add_remove": adjacency == "replace_one"}
        assert refused == other[kind_of(event).adjacency]
        if refused:
            with pytest.raises(ValueError, match="adjacency"):
                get_epsilon(event, 1e-5, method=method, adjacency=adjacency)
        else:
            assert 0.0 < get_epsilon(event, 1e-5, method=method, adjacency=adjacency) < 100.0


@over_rows("name", EXAMPLES)
def test_more_noise_costs_less_and_a_group_no_less_than_one(name):
    event, kind = EXAMPLES[name], kind_of(EXAMPLES[name])
    method = "rdp" if name in ("ZCDpEvent", "RandomAllocationDpEvent") else "pld"
    terms = {"method": method, "adjacency": kind.adjacency or "zero_out"}
    price = get_epsilon(event, 1e-5, **terms)
    assert event_from_dict(event_to_dict(event)) == event
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
