"""What a mutant is, and how its edits are planted."""

from __future__ import annotations

import pathlib
import re
from typing import NamedTuple

BY_PROPERTY = (
    "not plain_reading and not reference_loop and not sums_at_other and not may_repeat and not come_from_one_object"
)
"""Leaves out the comparisons with the plain reading, which see everything: the property itself has to be tested."""


class Edit(NamedTuple):
    path: str
    old: str
    new: str


_ROOT = pathlib.Path(__file__).resolve().parents[2]
_TESTS = {path.stem: path.relative_to(_ROOT).as_posix() for path in (_ROOT / "tests").rglob("test_*.py")}


class Mutant(NamedTuple):
    """A mistake, the edits that plant it, and the test files (with -k expressions) that must notice."""

    name: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...]
    select: str = ""


class DoesNotPlant(Exception):
    """The code has changed under a mutant."""


def mutant(name: str, *edits: tuple[str, str, str], tests: str, select: str = "") -> Mutant:
    paths = tuple(_TESTS.get(f"test_{test}", f"tests/test_{test}.py") for test in tests.split())
    return Mutant(name, tuple(Edit(*edit) for edit in edits), paths, select)


def _tokens(text: str) -> list[tuple[str, int, int]]:
    """Words and signs, with where they stand; white space is left out, and a comma before what closes a bracket."""
    found = [(each.group(), each.start(), each.end()) for each in re.finditer(r"\w+|[^\w\s]", text)]
    after = [*(token for token, _, _ in found[1:]), ""]
    return [each for each, then in zip(found, after, strict=True) if not (each[0] == "," and then in (")", "]", "}"))]


def places_of(old: str, text: str) -> list[tuple[int, int]]:
    """Where a text stands in another: as it is, or else in another layout, as a formatter may have made of it."""
    exact = [(each.start(), each.end()) for each in re.finditer(re.escape(old), text)]
    if exact:
        return exact
    tokens, wanted = _tokens(text), [token for token, _, _ in _tokens(old)]
    words, n = [token for token, _, _ in tokens], len(wanted)
    starts = [i for i in range(len(words) - n + 1) if words[i : i + n] == wanted] if wanted else []
    return [(tokens[i][1], tokens[i + n - 1][2]) for i in starts]


def planted_texts(root: pathlib.Path, planted: Mutant) -> dict[str, str]:
    """The files that a mutant changes, by path, with its edits made one after the other.

    Raises
    ------
    DoesNotPlant
        If the old text of an edit is not found exactly once, an edit changes nothing, or a test file is missing: a
        mutant must not become a no-op in silence when the code changes.
    """
    texts: dict[str, str] = {}
    for path, old, new in planted.edits:
        if not (root / path).is_file():
            raise DoesNotPlant(f"mutant {planted.name!r} does not plant: there is no {path}")
        text = texts.get(path) or (root / path).read_text()
        places = places_of(old, text)
        if len(places) != 1 or old == new:
            found = f"{path} contains {len(places)} times, not once" if old != new else f"{path}: no change"
            raise DoesNotPlant(f"mutant {planted.name!r} does not plant: {found}: {old!r}")
        ((start, end),) = places
        # White space around the text belongs to its layout: it is there already where the layout is another one.
        given = new if text[start:end] == old else new.strip()
        texts[path] = text[:start] + given + text[end:]
    if missing := [test for test in planted.tests if not (root / test).is_file()]:
        raise DoesNotPlant(f"mutant {planted.name!r} does not plant: there is no {', '.join(missing)}")
    return texts
