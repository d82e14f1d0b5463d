"""Mutants are found by what the code says: another layout of it does not unplant them, other code does."""

import importlib.util
import pathlib

import pytest

PLACE = pathlib.Path(__file__).parent / "mutants" / "mutant.py"
SPEC = importlib.util.spec_from_file_location("mutant_to_test", PLACE)
planting = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(planting)

SHORT = "def f(a, b):\n    return g(a, [b, 1], c=2)\n\n\ndef h():\n    return g(0)\n"
LONG = "def f(a, b):\n    return g(\n        a,\n        [b, 1],\n        c=2,\n    )\n\n\ndef h():\n    return g(0)\n"


@pytest.mark.parametrize("text", [SHORT, LONG])
@pytest.mark.parametrize("old", ["return g(a, [b, 1], c=2)", "    return g(a, [b, 1], c=2)\n", "[b, 1], c=2)"])
def test_a_text_is_found_in_any_layout(old, text):
    ((start, end),) = planting.places_of(old, text)
    assert "".join(text[start:end].split()).replace(",)", ")") == "".join(old.split())


def test_other_code_is_not_found():
    assert planting.places_of("return g(a, [b, 2], c=2)", LONG) == []
    assert planting.places_of("return gg(", LONG) == []
    assert len(planting.places_of("return g(", LONG)) == 2


@pytest.mark.parametrize("layout", [SHORT, LONG])
def test_a_mutant_plants_in_any_layout(tmp_path, layout):
    (tmp_path / "code.py").write_text(layout)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_it.py").write_text("")
    planted = planting.mutant("x", ("code.py", "    return g(a, [b, 1], c=2)\n", "    return a\n"), tests="it")
    text = planting.planted_texts(tmp_path, planted)["code.py"]
    assert compile(text, "code.py", "exec")
    assert text.split("\n\n")[0].splitlines() == ["def f(a, b):", "    return a"]


def test_a_mutant_that_does_not_fit_is_an_error(tmp_path):
    (tmp_path / "code.py").write_text(SHORT)
    planted = planting.mutant("x", ("code.py", "return g(", "return h("), tests="it")
    with pytest.raises(planting.DoesNotPlant, match="contains 2 times, not once"):
        planting.planted_texts(tmp_path, planted)
