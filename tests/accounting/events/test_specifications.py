"""Events are specifications: what they accept, how they combine, what they say when refused."""

from __future__ import annotations

import dataclasses
import math
import subprocess
import sys

import numpy as np
import pytest

from skdp import accounting
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
    from_dp_accounting,
    get_epsilon,
    to_dp_accounting,
)
from skdp.accounting.events.composition import walk

STEP = PoissonSampledDpEvent(0.01, GaussianDpEvent(1.1))


G = GaussianDpEvent(1.0)


def test_a_walk_visits_all_that_an_event_is_made_of():
    """Also what is inside samples, tries and possibilities, and what a third party's event says dominates it."""

    class Theirs(DpEvent):
        def __dominating_event__(self):
            return SelfComposedDpEvent(PoissonSampledDpEvent(0.1, GaussianDpEvent(4.0)), 10**9)

    search = RepeatAndSelectDpEvent(WorstOfDpEvent([GaussianDpEvent(2.0), LaplaceDpEvent(3.0)]), 5.0, 1.0)
    visited = [type(each).__name__.removesuffix("DpEvent") for each in walk(ComposedDpEvent([search, Theirs()]))]
    assert visited == [
        "Composed", "RepeatAndSelect", "WorstOf", "Gaussian", "Laplace", "SelfComposed", "PoissonSampled", "Gaussian",
    ]  # fmt: skip
    assert [each.noise_multiplier for each in walk(Theirs()) if isinstance(each, GaussianDpEvent)] == [4.0]


def test_inner_events_are_validated():
    for make in (
        lambda: PoissonSampledDpEvent(0.1, 1.0),
        lambda: SelfComposedDpEvent("x", 2),
        lambda: SampledWithoutReplacementDpEvent(10, 1, None),
        lambda: RepeatAndSelectDpEvent(1, 2.0, 0.0),
    ):
        with pytest.raises(TypeError, match="give a DpEvent"):
            make()
    with pytest.raises(ValueError, match="sample_size=11 is not valid"):
        SampledWithoutReplacementDpEvent(10, 11, STEP)
    with pytest.raises(TypeError, match="tuple of DpEvents"):
        ComposedDpEvent(STEP)
    with pytest.raises(TypeError, match="give a DpEvent"):
        ComposedDpEvent((STEP, 3))


def test_events_are_frozen_hashable_and_equal_by_value():
    event = ComposedDpEvent([SelfComposedDpEvent(STEP, np.int64(3)), GaussianDpEvent(np.float32(2.0))])
    same = ComposedDpEvent((SelfComposedDpEvent(STEP, 3), GaussianDpEvent(2)))
    assert event == same
    assert hash(event) == hash(same)
    assert isinstance(event.events, tuple)
    with pytest.raises(dataclasses.FrozenInstanceError):
        event.events = ()


def test_compose_merges_equal_neighbours():
    gauss = GaussianDpEvent(2.0)
    event = compose([STEP] * 1000 + [NoOpDpEvent(), gauss] + [SelfComposedDpEvent(gauss, 4), STEP])
    assert event == ComposedDpEvent((SelfComposedDpEvent(STEP, 1000), SelfComposedDpEvent(gauss, 5), STEP))
    assert compose([]) == NoOpDpEvent()
    assert compose([STEP]) == STEP
    assert compose([SelfComposedDpEvent(STEP, 0)]) == NoOpDpEvent()


def test_flatten_lists_basic_events():
    gauss = GaussianDpEvent(2.0)
    nested = ComposedDpEvent(
        (
            SelfComposedDpEvent(ComposedDpEvent((STEP, gauss, SelfComposedDpEvent(STEP, 2))), 5),
            PoissonSampledDpEvent(1.0, gauss),
            PoissonSampledDpEvent(0.0, gauss),
            PoissonSampledDpEvent(0.1, PoissonSampledDpEvent(0.1, GaussianDpEvent(1.1))),
            NoOpDpEvent(),
        )
    )
    found = flatten(nested)
    assert found[gauss] == 6
    assert found[STEP] == 15
    assert sum(found.values()) == 22


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


def test_import_is_light():
    code = (
        "import sys, skdp.accounting as a; a.get_epsilon(a.GaussianDpEvent(3.0), 1e-5);"
        "bad = {'sklearn', 'numba', 'dp_accounting', 'pandas', 'matplotlib', 'scipy.optimize', 'scipy.stats'}"
        " & set(sys.modules);"
        "sys.exit(repr(bad) if bad else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_base_of_all_events_is_refused_by_type_wherever_it_turns_up():
    from skdp.accounting.ledger.serial import event_from_dict, event_to_dict

    for event in (DpEvent(), PoissonSampledDpEvent(0.5, DpEvent()), SelfComposedDpEvent(DpEvent(), 3)):
        with pytest.raises(TypeError, match=r"event=[^\n]*DpEvent has no price here by any method"):
            get_epsilon(event, 1e-5)
        with pytest.raises(TypeError, match="cannot be written as JSON"):
            event_to_dict(event)
    with pytest.raises(ValueError, match="DpEvent"):
        event_from_dict({"event": "DpEvent"})
    for stranger in (None, "x", 5, GaussianDpEvent):
        with pytest.raises(TypeError, match="is not a DpEvent; give an event such as"):
            compose([stranger])


def test_the_least_and_the_most_noise_have_a_price():
    assert get_epsilon(SelfComposedDpEvent(GaussianDpEvent(1e-100), 10**12), 1e-5) > 1e200
    assert 0.0 < get_epsilon(GaussianDpEvent(1e100), 1e-5) < 1e-90
    with pytest.raises(ValueError, match="count="):
        SelfComposedDpEvent(GaussianDpEvent(1.0), 10**400)


def test_flatten_survives_deep_nesting():
    event: DpEvent = STEP
    for _ in range(300):
        event = SelfComposedDpEvent(event, 1)
    assert flatten(event) == {STEP: 1}


def test_what_has_no_price_is_refused_by_name():
    class OtherEvent(DpEvent):
        pass

    for event in (OtherEvent(), PoissonSampledDpEvent(0.1, ComposedDpEvent((STEP, GaussianDpEvent(1.0))))):
        with pytest.raises(TypeError, match="has no price here"):
            get_epsilon(event, 1e-5)
    with pytest.raises(TypeError, match="not a DpEvent"):
        get_epsilon(1.0, 1e-5)


def test_what_another_version_has_too_is_converted(monkeypatch):
    """By name and fields, whatever the version: one with another field is another event."""
    other = pytest.importorskip("dp_accounting.dp_event")

    @dataclasses.dataclass(frozen=True)
    class EpsilonDeltaDpEvent(other.DpEvent):
        epsilon: float
        delta: float

    @dataclasses.dataclass(frozen=True)
    class DiscreteGaussianDpEvent(other.DpEvent):
        noise_multiplier: float

    for theirs in (EpsilonDeltaDpEvent, DiscreteGaussianDpEvent):
        monkeypatch.setattr(other, theirs.__name__, theirs, raising=False)
    ours = accounting.EpsilonDeltaDpEvent(1.0, 1e-6)
    assert to_dp_accounting(ours) == EpsilonDeltaDpEvent(1.0, 1e-6)
    assert from_dp_accounting(EpsilonDeltaDpEvent(1.0, 1e-6)) == ours
    with pytest.raises(TypeError, match=r"no counterpart in dp-accounting; .*ZCDpEvent"):
        to_dp_accounting(accounting.DiscreteGaussianDpEvent(2.0, 1))
    with pytest.raises(TypeError, match=r"no counterpart in skdp\.accounting"):
        from_dp_accounting(DiscreteGaussianDpEvent(2.0))
