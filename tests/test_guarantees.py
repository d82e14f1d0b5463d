"""Each sentence under *Guarantees* in a docstring has a test, and each test in `guarantees.txt` a sentence.

The table has the name of an object, below it each sentence of its guarantees, and below each sentence its tests.
"""

import functools
import importlib
import inspect
import pkgutil
import re

import pytest

import skdp


@pytest.fixture(scope="module")
def table(request):
    """The tests of each sentence, for each object by its name."""
    found, sentences, tests = {}, {}, []
    for line in (request.config.rootpath / "tests" / "guarantees.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("    "):
            tests.append(line.strip())
        elif line.startswith("  "):
            tests = sentences.setdefault(line.strip(), [])
        elif line:
            sentences = found.setdefault(line, {})
    return found


def documented(thing):
    """A class or function, and all that is written in it: methods, properties and classes."""
    yield thing
    for each in vars(thing).values() if isinstance(thing, type) else ():
        each = getattr(each, "fget", getattr(each, "func", getattr(each, "__func__", each)))
        if hasattr(each, "__qualname__") and each.__qualname__.startswith(f"{thing.__qualname__}."):
            yield from documented(each)


@functools.cache
def written_guarantees():
    """Guarantees of all docstrings, those of compiled and private functions too, by the name of the object."""
    found = {}
    names = [module.name for module in pkgutil.walk_packages(skdp.__path__, "skdp.")]
    for module in map(importlib.import_module, (name for name in names if not name.endswith("__main__"))):
        own = [each for each in vars(module).values() if getattr(each, "__module__", None) == module.__name__]
        for thing in own:
            for each in documented(thing) if hasattr(thing, "__qualname__") else ():
                if "**Guarantees.**" in (each.__doc__ or ""):
                    section = inspect.getdoc(each).split("**Guarantees.**")[1]
                    text = " ".join(section.strip().split("\n\n")[0].split())
                    found[f"{each.__module__}.{each.__qualname__}"] = text
    return found


def test_all_guarantees_that_are_written_are_in_the_table(table, request):
    assert written_guarantees().keys() == table.keys()
    sources = (request.config.rootpath / "skdp").rglob("*.py")  # a second look, at what no module might lead to
    assert sum(path.read_text().count("**Guarantees.**") for path in sources) == len(table)


def test_each_guarantee_that_is_written_has_a_test(table, request):
    """And each that has a test is written: a changed sentence fails here, and asks what tests it now."""
    read = functools.cache(lambda path: (request.config.rootpath / path).read_text())
    for subject, text in written_guarantees().items():
        for sentence, tests in table[subject].items():
            assert sentence in text, subject
            text = text.replace(sentence, "")
            assert tests, f"no test is named for: {sentence}"
            for test in tests:
                path, _, name = test.rpartition("::")
                assert f"def {name}(" in read(path), f"{test} does not exist"
        text = re.sub(r"\([^()]*\d{4}[^()]*\)", "", text)  # references
        assert not re.search(r"\w", text), f"no test is named for: {text}"


@pytest.mark.parametrize("page", ["guarantees"])
def test_each_test_that_a_page_names_exists(page, request):
    texts = {path.name: path.read_text() for path in (request.config.rootpath / "tests").rglob("test_*.py")}
    text = (request.config.rootpath / "docs" / f"{page}.md").read_text()
    named = re.findall(r"(test_\w+\.py)(?:::(\w+))?", text)
    assert named
    missing = [f"{file}::{name}" for file, name in named if f"def {name}" not in texts.get(file, "")]
    assert not missing
