"""Injected faults are found by the structure of the code: layout, local names and places of modules do not matter."""

import importlib
import pathlib

import pytest

TEXT = """
import math

@decorated
def scale(a, b):
    '''Scale a.'''
    total = a * math.sqrt(b)  # a comment
    if total > b:
        check(total)
    return total

class Noise:
    spread = 2.0

    def draw(self, a):
        def inner(b):
            return a + b
        return inner(self.sigma * a)
"""
LONG = TEXT.replace("a * math.sqrt(b)", "(\n        a\n        * math.sqrt(\n            b,\n        )\n    )")
RENAMED = TEXT.replace("total", "whole")


@pytest.fixture
def fault(monkeypatch):
    monkeypatch.syspath_prepend(str(pathlib.Path(__file__).parent / "mutants"))
    return importlib.import_module("fault")


def changed(fault, pattern, replacement, function="scale", text=TEXT):
    found = fault.Fault("fault", "module", function, pattern, replacement)
    return fault.changed_text(text, function, found)


@pytest.mark.parametrize("text", [TEXT, LONG, RENAMED])
@pytest.mark.parametrize(
    ("pattern", "replacement", "expected"),
    [
        ("a * math.sqrt(b)", "a * b", "total = a * b"),
        ("total = a * math.sqrt(b)", "total = a", "total = a\n"),
        ("if total > b:\n    check(total)", "pass", "    pass\n    return total"),
        ("check(total)", "pass", "if total > b:\n        pass"),
        ("_1 * math.sqrt(_2)", "_1 * math.sqrt(2.0 * _2)", "total = a * math.sqrt(2.0 * b)"),
        ("total > b", "b > total", "if b > total:"),
    ],
)
def test_pattern_any_layout_and_names_is_found(fault, text, pattern, replacement, expected):
    found = changed(fault, pattern, replacement, text=text)
    assert expected in found.replace("whole", "total")
    assert "@decorated\ndef scale(a, b):\n" in found
    assert "\n        def inner(b):\n" in found


@pytest.mark.parametrize(
    ("function", "pattern", "replacement", "expected"),
    [
        ("Noise", "spread = 2.0", "spread = 1.0", "    spread = 1.0\n\n    def draw"),
        ("Noise.draw", "self.sigma * a", "a", "return inner(a)"),
        ("Noise.draw.inner", "a + b", "a", "            return a\n"),
        ("", "spread = 2.0", "spread = 1.0", "    spread = 1.0\n"),
    ],
)
def test_function_nested_is_found(fault, function, pattern, replacement, expected):
    assert expected in changed(fault, pattern, replacement, function)


@pytest.mark.parametrize(
    ("pattern", "times"), [("a * math.sqrt(a)", 0), ("a * math.exp(b)", 0), ("other(b)", 0), ("total", 4)]
)
def test_pattern_not_found_once_raises(fault, pattern, times):
    with pytest.raises(fault.NotInCode, match=f"contains the pattern {times} times"):
        changed(fault, pattern, "0.0")


def test_replacement_equal_to_pattern_raises(fault):
    with pytest.raises(fault.NotInCode, match="the replacement is the pattern"):
        changed(fault, "a * math.sqrt(b)", "(a * math.sqrt(b))")


def test_moves_of_modules_and_names_are_followed(fault, monkeypatch):
    moves = {"skdp._old": "skdp.new", "skdp._old.loop:Plan": "skdp.new.plan:Schedule"}
    places = importlib.import_module("places")
    monkeypatch.setattr(places, "MOVES", moves)
    assert places.moved("skdp._old.loop", "run") == ("skdp.new.loop", "run")
    assert places.moved("skdp._old.loop", "Plan.event") == ("skdp.new.plan", "Schedule.event")
    assert places.moved("skdp._older.loop", "Plan") == ("skdp._older.loop", "Plan")
    text = TEXT.replace("check(", "Schedule(")
    assert "if total > b:\n        pass" in changed(fault, "Plan(total)", "pass", text=text)
