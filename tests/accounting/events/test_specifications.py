"""Events are specifications: what they accept, how they combine, what they say when refused."""

from __future__ import annotations

import dataclasses
import math
import subprocess
import sys

import numpy as np
import pytest
from combinations import over_rows

from skdp import accounting
from skdp.accounting import (
    ComposedDpEvent,
    DiscreteGaussianDpEvent,
    DiscreteLaplaceDpEvent,
    DpEvent,
    EpsilonDeltaDpEvent,
    ExponentialMechanismDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    MixtureOfGaussiansDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    RandomAllocationDpEvent,
    RandomizedResponseDpEvent,
    RepeatAndSelectDpEvent,
    ReportNoisyMaxDpEvent,
    SampledWithoutReplacementDpEvent,
    SampledWithReplacementDpEvent,
    SelfComposedDpEvent,
    SingleEpochTreeAggregationDpEvent,
    TruncatedSubsampledGaussianDpEvent,
    WorstOfDpEvent,
    ZCDpEvent,
    compose,
    flatten,
    from_dp_accounting,
    get_delta,
    get_epsilon,
    to_dp_accounting,
)
from skdp.accounting.events.composition import walk

STEP = PoissonSampledDpEvent(0.01, GaussianDpEvent(1.1))


@over_rows("bad", [0, -1.0, math.nan, math.inf, True, "1", None, 1j])
def test_noise_multiplier_is_validated(bad):
    with pytest.raises(
        ValueError, match=r"GaussianDpEvent: noise_multiplier=.* give a number from 1e-100 to 1e100"
    ) as error:
        GaussianDpEvent(bad)
    assert "\n" not in str(error.value)


@over_rows("bad", [-0.1, 1.1, math.nan, True, "0.5", None])
def test_sampling_probability_is_validated(bad):
    with pytest.raises(ValueError, match=r"sampling_probability=.* between 0 and 1"):
        PoissonSampledDpEvent(bad, GaussianDpEvent(1.0))


G = GaussianDpEvent(1.0)


@over_rows(
    ("make", "named"),
    [
        (lambda: LaplaceDpEvent(0.0), "noise_multiplier=0.0"),
        (lambda: LaplaceDpEvent("1"), "noise_multiplier='1'"),
        (lambda: EpsilonDeltaDpEvent(-1.0, 0.0), "epsilon=-1.0"),
        (lambda: EpsilonDeltaDpEvent(math.inf, 0.0), "epsilon=inf"),
        (lambda: EpsilonDeltaDpEvent(1.0, 1.0), "delta=1.0"),
        (lambda: EpsilonDeltaDpEvent(1.0, math.nan), "delta=nan"),
        (lambda: ZCDpEvent(-0.1), "rho=-0.1"),
        (lambda: ZCDpEvent(0.1, math.inf), "xi=inf"),
        (lambda: SampledWithoutReplacementDpEvent(0, 0, G), "source_dataset_size=0"),
        (lambda: SampledWithoutReplacementDpEvent(10.0, 1, G), "source_dataset_size=10.0"),
        (lambda: SampledWithoutReplacementDpEvent(10, 11, G), "sample_size=11"),
        (lambda: SampledWithoutReplacementDpEvent(10, True, G), "sample_size=True"),
        (lambda: RepeatAndSelectDpEvent(G, 0.5, 1.0), "mean=0.5"),
        (lambda: RepeatAndSelectDpEvent(G, math.inf, 1.0), "mean=inf"),
        (lambda: RepeatAndSelectDpEvent(G, 2.0, -0.1), "shape=-0.1"),
        (lambda: RepeatAndSelectDpEvent(G, 2.0, math.nan), "shape=nan"),
        (lambda: RandomizedResponseDpEvent(1.1, 2), "noise_parameter=1.1"),
        (lambda: RandomizedResponseDpEvent(0.1, 0), "num_buckets=0"),
        (lambda: DiscreteLaplaceDpEvent(0.0, 1), "noise_parameter=0.0"),
        (lambda: DiscreteLaplaceDpEvent(1.0, 1.0), "sensitivity=1.0"),
        (lambda: DiscreteGaussianDpEvent(0.001, 1), "standard_deviation=0.001"),
        (lambda: DiscreteGaussianDpEvent(1.0, 10**7), "sensitivity=10000000"),
        (lambda: ExponentialMechanismDpEvent(-1.0), "epsilon=-1.0"),
        (lambda: ReportNoisyMaxDpEvent(float("inf")), "epsilon=inf"),
        (lambda: MixtureOfGaussiansDpEvent(0.0, (1.0,), (1.0,)), "standard_deviation=0.0"),
        (lambda: MixtureOfGaussiansDpEvent(1.0, (-1.0,), (1.0,)), "sensitivities="),
        (lambda: MixtureOfGaussiansDpEvent(1.0, (1.0,), (0.5,)), "sampling_probs=0.5"),
        (lambda: MixtureOfGaussiansDpEvent(1.0, (1.0,), (0.5, 0.5)), "sampling_probs=2"),
        (lambda: SingleEpochTreeAggregationDpEvent(1.0, 0), "step_counts=0"),
        (lambda: SingleEpochTreeAggregationDpEvent(1.0, ()), "step_counts="),
        (lambda: SampledWithReplacementDpEvent(0, 1, G), "source_dataset_size=0"),
        (lambda: TruncatedSubsampledGaussianDpEvent(10, 1.5, 3, 1.0), "sampling_probability=1.5"),
        (lambda: TruncatedSubsampledGaussianDpEvent(10, 0.5, -3, 1.0), "truncated_batch_size=-3"),
        (lambda: RandomAllocationDpEvent(1.0, 3, 4), "num_selected=4"),
        (lambda: RandomAllocationDpEvent(1.0, 0), "num_steps=0"),
    ],
)
def test_fields_of_the_other_events_are_validated_in_one_line(make, named):
    with pytest.raises(ValueError, match="is not valid; give a ") as error:
        make()
    assert named in str(error.value)
    assert "\n" not in str(error.value)


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


@over_rows("delta", [0.0, 1.0, -1e-5, math.nan, "1e-5", True, None])
def test_delta_is_validated(delta):
    with pytest.raises(ValueError, match=r"delta=.* above 0 and below 1"):
        get_epsilon(STEP, delta)


@over_rows("epsilon", [-1.0, math.inf, math.nan, "1", False, None])
def test_epsilon_is_validated(epsilon):
    with pytest.raises(ValueError, match=r"epsilon=.* finite number"):
        get_delta(STEP, epsilon)


def test_unknown_names_list_the_known():
    with pytest.raises(ValueError, match="pld, rdp, moments"):
        get_epsilon(STEP, 1e-5, method="prv")
    with pytest.raises(ValueError, match="zero_out, add_remove, replace_one"):
        get_epsilon(STEP, 1e-5, adjacency="substitute")


ALL_SHARED = [
    NoOpDpEvent(),
    NonPrivateDpEvent(),
    G,
    LaplaceDpEvent(2.0),
    ZCDpEvent(0.1, 0.01),
    STEP,
    SampledWithoutReplacementDpEvent(100, 10, G),
    RepeatAndSelectDpEvent(STEP, 3.0, math.inf),
    SelfComposedDpEvent(STEP, 7),
    ComposedDpEvent((G, SelfComposedDpEvent(ComposedDpEvent((STEP, LaplaceDpEvent(3.0))), 2))),
    RandomizedResponseDpEvent(0.2, 4),
    DiscreteLaplaceDpEvent(0.5, 3),
    MixtureOfGaussiansDpEvent(1.5, (0.0, 1.0), (0.9, 0.1)),
    SampledWithReplacementDpEvent(100, 10, G),
    SingleEpochTreeAggregationDpEvent(2.0, 7),
    SingleEpochTreeAggregationDpEvent(2.0, (7, 3)),
    TruncatedSubsampledGaussianDpEvent(100, 0.1, 15, 1.0),
]


@over_rows("event", ALL_SHARED)
def test_round_trip_through_dp_accounting(event):
    other = pytest.importorskip("dp_accounting.dp_event")
    converted = to_dp_accounting(event)
    assert type(converted) is getattr(other, type(event).__name__)
    assert from_dp_accounting(converted) == event


def test_events_without_counterpart_are_refused_by_name():
    other = pytest.importorskip("dp_accounting.dp_event")
    for ours, substitute in (
        (DpEvent(), "an event of skdp.accounting"),
        (EpsilonDeltaDpEvent(1.0, 0.0), "from_privacy_parameters"),
        (SelfComposedDpEvent(EpsilonDeltaDpEvent(1.0, 0.0), 2), "from_privacy_parameters"),
        (DiscreteGaussianDpEvent(2.0, 1), "ZCDpEvent"),
        (ExponentialMechanismDpEvent(1.0), "ZCDpEvent"),
        (ReportNoisyMaxDpEvent(1.0), "LaplaceDpEvent"),
        (RandomAllocationDpEvent(2.0, 9), "SelfComposedDpEvent"),
    ):
        with pytest.raises(TypeError, match=f"no counterpart in dp-accounting; .*{substitute}") as error:
            to_dp_accounting(ours)
        assert "\n" not in str(error.value)
    for theirs in (other.UnsupportedDpEvent(), 3):
        with pytest.raises(TypeError, match=r"no counterpart in skdp\.accounting"):
            from_dp_accounting(theirs)
    with pytest.raises(ValueError, match=r"noise_multiplier=0\.0"):
        from_dp_accounting(other.GaussianDpEvent(0.0))


def test_import_is_light():
    code = (
        "import sys, skdp.accounting as a; a.get_epsilon(a.GaussianDpEvent(3.0), 1e-5);"
        "bad = {'sklearn', 'numba', 'dp_accounting', 'pandas', 'matplotlib', 'scipy.optimize', 'scipy.stats'}"
        " & set(sys.modules);"
        "sys.exit(repr(bad) if bad else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@over_rows("noise", [1e-101, 1e-160, 1e-308, 1e101, 1e155, 10**400])
def test_noise_whose_square_has_no_double_is_refused(noise):
    """1 / noise**2 would be infinite or 0, and the release priced as free."""
    with pytest.raises(ValueError, match=r"noise_multiplier=[^\n]*from 1e-100 to 1e100"):
        GaussianDpEvent(noise)


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


@pytest.mark.parametrize("bad", [-1, 1.0, True, "3", math.nan])
def test_count_is_validated(bad):
    with pytest.raises(ValueError, match=r"count=.* whole number"):
        SelfComposedDpEvent(STEP, bad)


def test_flatten_survives_deep_nesting():
    event: DpEvent = STEP
    for _ in range(300):
        event = SelfComposedDpEvent(event, 1)
    assert flatten(event) == {STEP: 1}


@pytest.mark.parametrize("method", ["pld", "rdp"])
def test_edges_of_the_prices(method):
    assert get_epsilon(NoOpDpEvent(), 1e-5, method=method) == 0.0
    assert get_delta(SelfComposedDpEvent(STEP, 0), 1.0, method=method) == 0.0
    assert get_epsilon(ComposedDpEvent((STEP, NonPrivateDpEvent())), 1e-5, method=method) == math.inf
    assert get_delta(NonPrivateDpEvent(), 3.0, method=method) == 1.0
    assert get_epsilon(PoissonSampledDpEvent(0.0, GaussianDpEvent(1.0)), 1e-5, method=method) == 0.0


def test_what_has_no_price_is_refused_by_name():
    class OtherEvent(DpEvent):
        pass

    for event in (OtherEvent(), PoissonSampledDpEvent(0.1, ComposedDpEvent((STEP, GaussianDpEvent(1.0))))):
        with pytest.raises(TypeError, match="has no price here"):
            get_epsilon(event, 1e-5)
    with pytest.raises(TypeError, match="not a DpEvent"):
        get_epsilon(1.0, 1e-5)


def test_conversion_to_dp_accounting_keeps_the_price():
    pytest.importorskip("dp_accounting")
    from dp_accounting import rdp

    event = ComposedDpEvent((SelfComposedDpEvent(STEP, 500), GaussianDpEvent(5.0), NoOpDpEvent()))
    theirs = rdp.RdpAccountant().compose(to_dp_accounting(event)).get_epsilon(1e-5)
    assert get_epsilon(event, 1e-5, method="rdp") == pytest.approx(theirs, rel=5e-3)


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
