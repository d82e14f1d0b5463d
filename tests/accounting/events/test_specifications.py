"""Events are specifications: what they accept, how they combine, what they say when rejected."""

import dataclasses
import math

import numpy as np
import pytest

from skdp.accounting import (
    ComposedDpEvent,
    DpEvent,
    EpsilonDeltaDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    RepeatAndSelectDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
    WorstOfDpEvent,
    ZCDpEvent,
    compose,
    flatten,
    get_epsilon,
)
from skdp.accounting.events.composition import walk

STEP = PoissonSampledDpEvent(0.01, GaussianDpEvent(1.1))


G = GaussianDpEvent(1.0)


def test_a_walk_visits_all_that_an_event_is_made_of():
    """Also what is inside samples, trials and possibilities, and what a third party's event says dominates it."""

    class Theirs(DpEvent):
        def __dominating_event__(self):
            return SelfComposedDpEvent(PoissonSampledDpEvent(0.1, GaussianDpEvent(4.0)), 10**9)

    search = RepeatAndSelectDpEvent(WorstOfDpEvent([GaussianDpEvent(2.0), LaplaceDpEvent(3.0)]), 5.0, 1.0)
    visited = [type(each).__name__.removesuffix("DpEvent") for each in walk(ComposedDpEvent([search, Theirs()]))]
    assert visited == [
        "Composed", "RepeatAndSelect", "WorstOf", "Gaussian", "Laplace", "SelfComposed", "PoissonSampled", "Gaussian",
    ]  # fmt: skip


def test_inner_events_are_validated():
    for make in (
        lambda: PoissonSampledDpEvent(0.1, 1.0),
        lambda: SelfComposedDpEvent("x", 2),
        lambda: RepeatAndSelectDpEvent(1, 2.0, 0.0),
    ):
        with pytest.raises(TypeError, match="must be a DpEvent"):
            make()
    with pytest.raises(ValueError, match=r"`sample_size` must be an integer from 0 to .*got 11"):
        SampledWithoutReplacementDpEvent(10, 11, STEP)
    with pytest.raises(TypeError, match="tuple of DpEvents"):
        ComposedDpEvent(STEP)
    with pytest.raises(TypeError, match="must be a DpEvent"):
        ComposedDpEvent((STEP, 3))


def test_events_are_frozen_hashable_and_equal_by_value():
    event = ComposedDpEvent([SelfComposedDpEvent(STEP, np.int64(3)), GaussianDpEvent(np.float32(2.0))])
    same = ComposedDpEvent((SelfComposedDpEvent(STEP, 3), GaussianDpEvent(2)))
    assert event == same
    assert hash(event) == hash(same)
    assert isinstance(event.events, tuple)
    with pytest.raises(dataclasses.FrozenInstanceError):
        event.events = ()


def test_compose_merges_equal_neighbors():
    gauss = GaussianDpEvent(2.0)
    event = compose([STEP] * 1000 + [NoOpDpEvent(), gauss] + [SelfComposedDpEvent(gauss, 4), STEP])
    assert event == ComposedDpEvent((SelfComposedDpEvent(STEP, 1000), SelfComposedDpEvent(gauss, 5), STEP))
    assert compose([]) == NoOpDpEvent()
    assert compose([STEP]) == STEP
    assert compose([SelfComposedDpEvent(STEP, 0)]) == NoOpDpEvent()


def test_flatten_simplifies_samples_and_drops_what_is_without_effect():
    two = ComposedDpEvent((GaussianDpEvent(3.0), GaussianDpEvent(4.0)))
    stacked = GaussianDpEvent(1.0 / math.sqrt(1 / 9 + 1 / 16))
    assert flatten(PoissonSampledDpEvent(0.1, two)) == {PoissonSampledDpEvent(0.1, stacked): 1}
    sampled = SampledWithoutReplacementDpEvent(10, 2, two)
    assert flatten(sampled) == {SampledWithoutReplacementDpEvent(10, 2, stacked): 1}
    assert flatten(SampledWithoutReplacementDpEvent(10, 10, G)) == {G: 1}
    nothing = (
        SampledWithoutReplacementDpEvent(10, 0, G),
        EpsilonDeltaDpEvent(0.0, 0.0),
        ZCDpEvent(0.0),
        RepeatAndSelectDpEvent(NoOpDpEvent(), 3.0, 1.0),
    )
    assert flatten(ComposedDpEvent(nothing)) == {}
    assert get_epsilon(ComposedDpEvent(nothing), 1e-5) == 0.0


def test_the_base_of_all_events_is_rejected_by_type_wherever_it_turns_up():
    from skdp.accounting.ledger.serial import event_from_dict, event_to_dict

    for event in (DpEvent(), PoissonSampledDpEvent(0.5, DpEvent())):
        with pytest.raises(TypeError, match=r"event=[^\n]*DpEvent is not supported by any accounting method"):
            get_epsilon(event, 1e-5)
        with pytest.raises(TypeError, match="cannot be written as JSON"):
            event_to_dict(event)
    with pytest.raises(ValueError, match="DpEvent"):
        event_from_dict({"event": "DpEvent"})
    with pytest.raises(TypeError, match="`event` must be a DpEvent such as"):
        compose([GaussianDpEvent])
