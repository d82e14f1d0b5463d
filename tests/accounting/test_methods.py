"""What each method costs, rejects and promises; all of them in one table."""

import math
from pathlib import Path

import accounting_table
import pytest
from combinations import over_rows
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp.accounting import (
    ComposedDpEvent,
    DiscreteGaussianDpEvent,
    EpsilonDeltaDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    PrivacyAccountant,
    RepeatAndSelectDpEvent,
    SelfComposedDpEvent,
    ZCDpEvent,
    calibrate_noise_multiplier,
    compare_accountants,
    get_delta,
    get_epsilon,
    get_epsilon_bounds,
)
from skdp.accounting.methods import APPROXIMATIONS, METHODS

G = GaussianDpEvent(4.0)
PAPER = SelfComposedDpEvent(PoissonSampledDpEvent(0.01, G), 10_000)
EVERY = set(METHODS + APPROXIMATIONS)
SEARCHED = ("optimal_exact", "optimal", "strong")  # their delta is a search for epsilon: classic/test_composition.py

# Beside the events of the table of the docs: what is composed of them or selected from them.
OTHERS = (
    RepeatAndSelectDpEvent(PoissonSampledDpEvent(0.1, G), 3.0, 1.0),
    RepeatAndSelectDpEvent(EpsilonDeltaDpEvent(1.0, 1e-9), 3.0, 1.0),
    RepeatAndSelectDpEvent(ZCDpEvent(0.1), 3.0, 1.0),
    DiscreteGaussianDpEvent(1e6, 10**5),
    ComposedDpEvent((ZCDpEvent(0.1), PoissonSampledDpEvent(0.1, LaplaceDpEvent(5.0)))),
    ComposedDpEvent((G, LaplaceDpEvent(5.0))),
)


@over_rows("event", [*accounting_table.EVENTS.values(), *sum(accounting_table.ALIKE.values(), ()), *OTHERS])
@over_rows("adjacency", ["zero_out", "replace_one"])
def test_event_has_epsilon_or_rejection_names_remedy(event, adjacency):
    """By each method as the table of the docs has it, which the next test holds to the text of the docs."""
    for method in sorted(EVERY):
        if ("a" if adjacency == "zero_out" else "r") in accounting_table.entry(event, method).split():
            assert 0.0 < get_epsilon(event, 1e-5, method=method, adjacency=adjacency) < math.inf, method
            if method not in SEARCHED:
                assert 0.0 < get_delta(event, 1.0, method=method, adjacency=adjacency) <= 1.0, method
            continue
        for cost in (get_epsilon, get_delta):
            with pytest.raises((TypeError, ValueError), match=r"DpEvent|adjacency") as error:
                cost(event, 0.1, method=method, adjacency=adjacency)
            text = str(error.value)
            assert "\n" not in text
            assert ". Use " in text or ". No method" in text


def test_the_table_of_the_docs_is_what_the_code_prices():
    text = (Path(__file__).resolve().parents[2] / "docs" / "accounting.md").read_text(encoding="utf-8")
    assert accounting_table.markdown() in text
    for name, event in accounting_table.EVENTS.items():
        for other in accounting_table.ALIKE.get(name, ()):
            assert accounting_table.row(other)[:-1] == accounting_table.row(event)[:-1], other
        for method, others in accounting_table.TOGETHER.items():
            for other in others:
                assert accounting_table.entry(event, other) == accounting_table.entry(event, method), (event, other)


@over_rows("method", sorted(EVERY))
def test_edges(method):
    assert get_epsilon(NoOpDpEvent(), 1e-5, method=method) == 0.0
    assert get_delta(NoOpDpEvent(), 1.0, method=method) == 0.0
    assert get_epsilon(NonPrivateDpEvent(), 1e-5, method=method) == math.inf
    assert get_delta(NonPrivateDpEvent(), 1.0, method=method) == 1.0
    assert get_epsilon(PoissonSampledDpEvent(1e-7, GaussianDpEvent(50.0)), 0.5, method=method) > 0.0


@over_rows("method", APPROXIMATIONS)
def test_approximations_are_read_but_never_charged(method):
    assert get_epsilon(PAPER, 1e-5, method=method) > 0.0
    assert method not in METHODS
    with pytest.raises(ValueError, match="not a guarantee and cannot be charged"):
        calibrate_noise_multiplier(GaussianDpEvent, 1.0, 1e-5, method=method)
    accountant = PrivacyAccountant()
    accountant.spend(PAPER)
    with pytest.raises(ValueError, match=f"{method}.*Use one of"):
        accountant.get_epsilon(1e-5, method=method)


def test_compare_accountants():
    pytest.importorskip("pandas")
    frame = compare_accountants(PAPER, 1e-5).set_index("method")
    assert list(frame.index) == [*METHODS, *APPROXIMATIONS]
    assert list(frame.columns) == ["epsilon", "guarantee", "note"]
    figures = {"pld": 0.94687, "rdp": 1.0355, "moments": 1.2586, "optimal": 14.184, "strong": 16.844}
    figures |= {"optimal_exact": 12.447, "strong_2016": 9.353}
    for method, figure in figures.items():
        assert frame.epsilon[method] == pytest.approx(figure, abs=1e-3)
    assert frame.guarantee.sum() == len(METHODS)
    assert all("not a guarantee" in frame.note[method] for method in APPROXIMATIONS)


def test_compare_accountants_gives_reasons():
    pytest.importorskip("pandas")
    frame = compare_accountants(ZCDpEvent(0.1), 1e-5, methods=["pld", "rdp"]).set_index("method")
    assert math.isnan(frame.epsilon["pld"])
    assert "ZCDpEvent is not supported" in frame.note["pld"]
    assert frame.epsilon["rdp"] > 0.0
    with pytest.raises(ValueError, match=r"must be one of .*, got 'other'"):
        compare_accountants(ZCDpEvent(0.1), 1e-5, methods=["other"])


@settings(max_examples=4, deadline=None)
@given(st.floats(1.0, 30.0), st.integers(1, 300), st.floats(0.01, 1.0), st.sampled_from([1e-4, 1e-7]))
def test_sound_methods_are_above_the_truth_on_bounded_losses(scale, count, epsilon, delta):
    for event in (
        SelfComposedDpEvent(LaplaceDpEvent(scale), count),
        SelfComposedDpEvent(EpsilonDeltaDpEvent(epsilon, 0), count),
    ):
        truth, _ = get_epsilon_bounds(event, delta)
        for method in METHODS:
            assert get_epsilon(event, delta, method=method) >= truth * (1.0 - 1e-9), (event, method)
