"""Style of README, docs, public docstrings and messages: words that the style guide rejects, and lengths."""

import ast
import importlib
import inspect
import re
from pathlib import Path

import skdp

ROOT = Path(__file__).resolve().parents[1]
COMPARATIVES = "longer|more|less|fewer|better|worse|larger|smaller|greater|higher|lower|wider|narrower|closer"
REJECTED = re.compile(
    r"(?<![\"`])\b(?:made-up|bought|mended|heard|dearer|unpaid|whoever|what goes with what"
    rf"|(?<!there )(?:is|are) no (?!(?:{COMPARATIVES})\b)[^\W\d_]+)\b",
    re.IGNORECASE,
)
SCOPES = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def _is_private(name):
    return name.startswith("_") and not name.endswith("__")


def _private_docstrings(node, private):
    """Docstrings of private names and of everything defined inside them."""
    if isinstance(node, SCOPES):
        private = private or _is_private(node.name)
    if private and isinstance(node, (ast.Module, *SCOPES)) and ast.get_docstring(node) is not None:
        yield node.body[0].value
    for child in ast.iter_child_nodes(node):
        yield from _private_docstrings(child, private)


def _strings(source, private):
    """Strings of a module that users can read: public docstrings, messages and other literals."""
    tree = ast.parse(source)
    skipped = set(_private_docstrings(tree, private))
    for node in ast.walk(tree):  # breadth first, hence an f-string comes before its parts
        if isinstance(node, ast.JoinedStr):
            skipped.update(node.values)
            yield "".join(part.value if isinstance(part, ast.Constant) else "0" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in skipped:
            yield node.value


def rejected_words(source, *, python=False, private=False):
    """Rejected words of a page, or of the public strings of a Python module, apart from quoted names and keys."""
    texts = (text for text in _strings(source, private) if not text.isidentifier()) if python else [source]
    return [word for text in texts for word in REJECTED.findall(" ".join(text.split()))]


def _checked_files():
    files = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("skdp/**/*.py")]
    return sorted(path.relative_to(ROOT).as_posix() for path in files)


def test_no_file_has_rejected_words():
    found = {}
    for name in _checked_files():
        path = ROOT / name
        private = any(_is_private(part) for part in Path(name).with_suffix("").parts)
        found[name] = rejected_words(path.read_text(encoding="utf-8"), python=path.suffix == ".py", private=private)
    assert {name: words for name, words in found.items() if words} == {}


def test_rejected_words_only_in_user_facing_text():
    page = 'There is no fee, it is no longer slow and is no larger. `unpaid` or "bought" is\nno table; Whoever pays'
    assert rejected_words(page) == ["is no table", "Whoever"]
    module = (
        'def f():\n "Bought."\n # heard\ndef _g(x):\n  "Mended."\n  raise E(f"{x} is no {x}, " "are no rows", "bought")'
    )
    assert rejected_words(module, python=True) == ["Bought", "are no rows"]
    assert rejected_words(module, python=True, private=True) == ["are no rows"]


REFERENCE_PAGES = {"accounting", "architecture", "benchmarks", "changelog", "extending", "guarantees", "migrating"}
REFERENCE_PAGES |= {"trusted_modules", "warnings_and_errors"}


def test_pages_are_short():
    pages = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")}
    words = {name: len(text.split()) for name, text in pages.items() if name not in REFERENCE_PAGES}
    assert {name: count for name, count in words.items() if count > 1500} == {}
    assert (ROOT / "README.md").read_text(encoding="utf-8").count("\n") <= 125


def test_class_docstrings_are_short():
    modules = ["skdp", *(f"skdp.{name}" for name in skdp._MODULES)]
    found = [getattr(importlib.import_module(module), name) for module in modules
             for name in importlib.import_module(module).__all__]  # fmt: skip
    words = {each.__name__: len(inspect.getdoc(each).split()) for each in found if inspect.isclass(each)}
    assert len(words) > 60
    assert {name: count for name, count in words.items() if count > 1500} == {}
