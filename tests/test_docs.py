"""The pages: their code runs, their links lead somewhere, and the reference has every public object."""

import importlib
import json
import re
import statistics
import sys

import pages
import pytest

import skdp
from skdp.base.estimator import REPLACEMENTS

API = "\n".join(path.read_text(encoding="utf-8") for path in sorted((pages.ROOT / "docs" / "api").glob("*.md")))
WITH_CODE = [page for page in pages.PAGES if "```python" in (pages.ROOT / page).read_text(encoding="utf-8")]


@pytest.mark.parametrize("page", WITH_CODE)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    """In an empty folder; `pages` says what a comment promises."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "page", raising=False)
    monkeypatch.setenv("MPLBACKEND", "agg")
    pages.run_page(page)


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("1 / 3  # 0.34", "is shown as 0.34"),
        ("1 / 0  # raises ValueError", "division by zero"),
        ("1 + 1  # raises ValueError", "was not raised"),
        ("import warnings\nwarnings.warn('unforeseen', stacklevel=1)", "unforeseen"),
        ("import warnings\nwarnings.warn('another', stacklevel=1)  # warns FutureWarning", "UserWarning"),
        ("1 + 1  # warns FutureWarning", "FutureWarning"),
        ("print('one')\n```\n\n```text\ntwo", "the output is one"),
    ],
)
def test_a_comment_that_is_wrong_is_found(code, fault):
    with pytest.raises((AssertionError, ArithmeticError, UserWarning), match=re.escape(fault)) as caught:
        pages.run_text(f"```python\n{code}\n```\n", "a page", "wrong_page")
    assert re.match(r"a page, line \d", caught.value.__notes__[0])


RIGHT = """
```python
third = 1 / 3
third  # 0.33
3e-5 * 1  # 3e-5, a rate
1 / 0  # raises ZeroDivisionError
print("one", "two", sep="\\n")
```

```text
one
...
```
"""


def test_a_comment_that_is_right_passes():
    assert pages.run_text(RIGHT, "a page", "right_page")["third"] == 1 / 3


def anchors(page):
    """Anchors of the headings of a page, as GitHub and MyST make them."""
    headings = re.findall(r"^#+ (.*)$", (pages.ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_lead_somewhere():
    """On a page as it is read in the repository; the build of the site checks its own."""
    for page in pages.PAGES:
        text = (pages.ROOT / page).read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            path, _, anchor = target.partition("#")
            if "://" in path or path.startswith("auto_examples"):
                continue
            found = (pages.ROOT / page).parent / path if path else pages.ROOT / page
            assert found.is_file(), (page, target)
            assert not anchor or anchor in anchors(found), (page, target)


BENCHMARK_ROWS = {
    "Adult (income)": "adult",
    "Fulton County PUMS (employed)": "fulton_employed",
    "Fulton County PUMS (married)": "fulton",
    "Colorado ACS (income)": "colorado",
    "Credit default": "credit",
}


@pytest.mark.parametrize("name", ["README.md", "docs/index.md"])
def test_home_page_scores_match_benchmark_results(name):
    results = json.loads((pages.ROOT / "benchmarks" / "results" / "splits.json").read_text(encoding="utf-8"))
    models = "default/1", "DP-EBM/1", "diffprivlib/1", "boosted trees, not private/-"
    page = (pages.ROOT / name).read_text(encoding="utf-8").replace("**", "")
    for row, table in BENCHMARK_ROWS.items():
        means = [statistics.fmean(results[f"{table}/{model}"]["score"]) for model in models]
        cells = " | ".join(f"{mean:.3f}" for mean in means)
        assert f"| {row} | {cells} |" in page


def test_every_parameter_that_is_rejected_by_name_is_explained():
    page = (pages.ROOT / "docs" / "migrating.md").read_text(encoding="utf-8")
    assert [name for name in REPLACEMENTS if f"`{name}`" not in page] == []
    assert "## Coming from scikit-learn\n" in page  # where the message sends to


def public_objects():
    """Qualified names of everything that can be imported from a public module and called."""
    modules = {f"skdp.{name}": importlib.import_module(f"skdp.{name}") for name in [*skdp._MODULES, "base"]}
    for name, module in modules.items():
        yield from (f"{name}.{each}" for each in module.__all__ if callable(getattr(module, each)))
    yield from (f"skdp.{each}" for each in skdp._PUBLIC)


def listed():
    """Objects that the reference lists, by what they are."""
    module = ""
    for line in API.splitlines():
        if found := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = found[1]
        elif found := re.match(r"   (\w+)$", line):
            yield getattr(importlib.import_module(module), found[1])


def test_the_reference_lists_every_public_object_once():
    found = list(listed())
    wanted = {name: getattr(importlib.import_module(name.rpartition(".")[0]), name.rpartition(".")[2])
              for name in public_objects()}  # fmt: skip
    assert {name for name, each in wanted.items() if each not in found} == set()
    assert len(found) == len(set(found))
    assert all(each in wanted.values() for each in found)


def test_stability_page_lists_every_public_name_once():
    page = (pages.ROOT / "docs" / "stability.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(skdp[.\w]*)` \| (.*) \| (.*) \|$", page, re.MULTILINE)
    found = [f"{module}.{name}" for module, *cells in rows for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    modules = [*(f"skdp.{name}" for name in skdp._MODULES), "skdp.base"]
    wanted = {f"{name}.{each}" for name in modules for each in importlib.import_module(name).__all__}
    elsewhere = {name.rpartition(".")[2] for name in wanted}
    assert sorted(found) == sorted(wanted | {f"skdp.{name}" for name in skdp._PUBLIC.keys() - elsewhere})


def test_test_files_named_on_pages_exist():
    tests = {path.name for path in (pages.ROOT / "tests").rglob("test_*.py")}
    named = {
        page: re.findall(r"\btest_\w+\.py\b", (pages.ROOT / page).read_text(encoding="utf-8")) for page in pages.PAGES
    }
    assert {name for names in named.values() for name in names} <= tests
    assert len(named["docs/guarantees.md"]) > 30
