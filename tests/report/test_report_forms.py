"""Forms of a privacy report: well-formed, readable, closed to hostile names; and epsilon above the diagram."""

from __future__ import annotations

import json
import re
import warnings
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import skdp
from skdp import (
    DPPCA,
    DPGridSearchCV,
    DPLogisticRegression,
    PrivacyReport,
    allocate_budget,
    privacy_report,
)
from skdp.report.values import one_line, shown

RNG = np.random.default_rng(0)
ROWS = RNG.uniform(-1, 1, (300, 4))
Y = (ROWS[:, 0] > 0).astype(int)
HOSTILE = [
    "<script>alert(1)</script>",
    "</style></td></table><img src=x onerror=alert(1)>",
    '"]}\n{"epsilon": 0}, \'" onload="x',
    "a\nNoise and clip\n--------------\r\n\u2028\u2029\x85\x0b\x0c! lies",
    "\x1b[31m\x00\x07\u202edesrever\u200b\ufeff",
    "\ud800 lone",
    "&lt;b&gt; &amp; \\u003c",
    "x" * 5000,
]


def linear(**parameters):
    return DPLogisticRegression(**{"classes": [0, 1], "max_iter": 3, "delta": 1e-5, **parameters})


def fit(model, rows=ROWS, labels=Y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(rows, labels)


def models(names=tuple("abcd"), classes=(0, 1), step="dppca"):
    """Fitted models of all kinds, with these names of columns, classes and a step."""
    rows = pd.DataFrame(np.tile(ROWS, 2)[:, : len(names)], columns=pd.Index(list(names), dtype=object))
    labels = np.asarray(classes, dtype=object)[Y] if isinstance(classes[0], str) else np.asarray(classes)[Y]
    classifier = linear(classes=list(classes))
    pipe = allocate_budget(make_pipeline(DPPCA(2), classifier), 1.0, 1e-6)
    pipe.steps[0] = (step, pipe.steps[0][1])
    search = DPGridSearchCV(classifier, {"alpha": [0.0, 0.5]}, epsilon=2.0)
    return [fit(model, rows, labels) for model in (classifier, pipe, search)]


class Page(HTMLParser):
    """Tags, attributes and text of a page; unclosed or crossed tags are an error."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.texts = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *each) for each in attrs]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else "", data))

    def text_in(self, *tags):
        return [text for tag, text in self.texts if tag in tags]


TAGS = {
    "html", "head", "meta", "title", "style", "body", "div", "main", "header", "section", "h1", "h2", "p", "table",
    "caption", "thead", "tbody", "tr", "th", "td",
}  # fmt: skip
ATTRIBUTES = {
    "lang", "charset", "name", "content", "class", "id", "aria-labelledby", "aria-label", "role", "tabindex", "scope",
}  # fmt: skip


@pytest.fixture(scope="module")
def benign():
    return models()


@pytest.fixture(scope="module")
def hostile():
    return models(HOSTILE, HOSTILE[:2], HOSTILE[0].replace("__", ""))


def test_the_page_is_well_formed_and_needs_nothing_else(benign, hostile):
    for model in (*benign, *hostile):
        page = Page(privacy_report(model).to_html())
        assert set(page.tags) <= TAGS
        assert {name for _, name, _ in page.attributes} <= ATTRIBUTES
        (style,) = {text for text in page.text_in("style") if "skdp-report" in text}
        assert "url(" not in style
        assert "@import" not in style
        assert "<" not in style


def test_names_do_not_change_the_structure_of_a_page(benign, hostile):
    for one, other in zip(benign, hostile, strict=True):
        plain, odd = (Page(privacy_report(model).to_html()) for model in (one, other))
        assert plain.tags == odd.tags
        ids = [value for _, name, value in odd.attributes if name == "id"]
        assert ids == [value for _, name, value in plain.attributes if name == "id"]
        assert len(set(ids)) == len(ids)


def test_names_are_shown_and_escaped(hostile):
    model = hostile[0]
    html, text = privacy_report(model).to_html(), str(privacy_report(model))
    assert "<script" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "<script>alert(1)</script>" in text
    for form in (html, text):
        assert not [each for each in form if not each.isprintable() and each != "\n"]
        assert "\\x1b[31m\\x00\\x07\\u202edesrever\\u200b\\ufeff" in form
        assert "\\ud800" in form
        form.encode("utf-8")


def test_names_do_not_add_lines_or_titles_to_the_text(benign, hostile):
    for one, other in zip(benign, hostile, strict=True):
        found = [re.findall(r"(?m)^(\S.*)\n-+$", str(privacy_report(model))) for model in (one, other)]
        assert found[0] == found[1]
        assert max(map(len, str(privacy_report(other)).splitlines())) <= 100
        assert "! lies" not in [line.strip()[:6] for line in str(privacy_report(other)).splitlines()]


def test_names_do_not_break_out_of_json(hostile):
    for model in hostile:
        text = privacy_report(model).to_json()
        assert text.isascii()
        assert not set("<>&") & set(text)
        assert json.loads(text) == privacy_report(model).to_dict()
    names = privacy_report(hostile[0]).to_dict()["public"]["feature_names"]
    assert names == [one_line(name) for name in HOSTILE]
    assert not [name for name in names if "\n" in name]


def test_facts_that_others_wrote_are_escaped_too(benign):
    """A report that is read from a file may have been changed."""
    facts = privacy_report(benign[0]).to_dict()
    facts["model"]["class"] = facts["accounting"]["event"] = facts["unpaid"]["reads"] = HOSTILE[1]
    facts["unpaid"]["reads"] = [{"kind": "caller", "text": HOSTILE[3]}]
    facts["constants"][0]["part"] = HOSTILE[1]
    facts["mechanisms"]["rows"][0]["note"] = HOSTILE[0]
    facts["versions"]["skdp"] = HOSTILE[2]
    report = PrivacyReport(facts)
    assert set(Page(report.to_html()).tags) <= TAGS
    assert "! lies" not in [line[:6] for line in str(report).splitlines()]


def test_the_page_is_accessible(benign):
    for model in benign:
        html = privacy_report(model).to_html()
        page = Page(html)
        assert html.startswith('<!DOCTYPE html>\n<html lang="en">')
        assert page.tags.count("h1") == page.tags.count("main") == page.tags.count("title") == 1
        assert page.tags.count("section") == page.tags.count("h2") >= 9
        assert page.tags.count("table") == page.tags.count("caption") == page.tags.count("thead")
        scopes = [value for tag, name, value in page.attributes if (tag, name) == ("th", "scope")]
        assert len(scopes) == page.tags.count("th")
        assert set(scopes) == {"col", "row"}
        assert all(text.strip() for text in page.text_in("caption", "h1", "h2", "th", "title"))
        labelled = [value for _, name, value in page.attributes if name == "aria-labelledby"]
        assert labelled == [value for _, name, value in page.attributes if name == "id"]
        assert ("meta", "name", "viewport") in page.attributes


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear_parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear_parts))


@pytest.mark.parametrize("place", ["light", "dark", "print"])
def test_contrast_is_that_of_wcag_aa(benign, place):
    style = max(Page(privacy_report(benign[0]).to_html()).text_in("style"), key=len)
    block = {
        "light": style.split("@media")[0],
        "dark": style.split("@media (prefers-color-scheme: dark)")[1].split("} }")[0],
        "print": style.split("@media print")[1],
    }[place]
    colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", block))
    assert set(colours) == {"ink", "soft", "line", "ground", "band", "accent", "warn-ink", "warn"}
    for ink, ground in (("ink", "ground"), ("soft", "ground"), ("accent", "ground"), ("ink", "band"),
                        ("warn-ink", "warn")):  # fmt: skip
        high, low = sorted([luminance(colours[ink]), luminance(colours[ground])], reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 4.5, (ink, ground)


def test_a_notebook_gets_an_element_without_a_document(benign):
    page = Page(privacy_report(benign[0])._repr_html_())
    assert not {"html", "body", "head", "title"} & set(page.tags)
    assert page.tags[0] == "div"


def test_text_lines_are_short(benign):
    for model in benign:
        assert max(map(len, str(privacy_report(model)).splitlines())) <= 100


# --- values -----------------------------------------------------------------------------------------------------------


def named(x):
    return x


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        (1e-6, "1e-06"),
        (np.float64(0.5), "0.5"),
        (np.str_("a"), "'a'"),
        ([1, (2.0, "b")], "[1, (2.0, 'b')]"),
        ({"a": [0, 1]}, "{'a': [0, 1]}"),
        (np.arange(3), "[0, 1, 2]"),
        (np.arange(300.0).reshape(3, 100), "ndarray of shape (3, 100)"),
        (pd.DataFrame({"secret": [1]}), "DataFrame of shape (1, 1)"),
        (list(range(100)), f"[{', '.join(map(str, range(20)))}, ... (100 in all)]"),
        (named, "named"),
        (int, "int"),
        (linear(random_state=3), "DPLogisticRegression"),
        ([FunctionTransformer(np.tanh)], "[FunctionTransformer]"),
        ("a\nb", "'a\\nb'"),
        ("x" * 500, "'" + "x" * 236 + "..."),
    ],
)
def test_values_are_shown_in_one_line(value, text):
    assert shown(value) == text


def test_no_address_in_memory_is_shown_and_no_error_of_a_repr():
    class Plain:
        pass

    class Broken:
        def __repr__(self):
            raise RuntimeError("secret")

    assert "0x" not in shown(Plain())
    assert shown(Broken()) == "Broken"


# --- the diagram ------------------------------------------------------------------------------------------------------


def test_the_diagram_of_a_fitted_model_shows_epsilon(benign):
    for model in benign:
        line = f"\u03b5 = {skdp.report.sentences.figure(model.epsilon_)} at \u03b4 = {model.delta_:g}"
        with sklearn.config_context(display="diagram"):
            html = model._repr_html_()
        assert html.index(line) < html.index("sk-container-id")
        assert type(model).__name__ in html
        assert line in model._repr_mimebundle_()["text/html"]
        assert model._repr_mimebundle_()["text/plain"] == repr(model)


def test_the_diagram_of_an_unfitted_model_is_that_of_scikit_learn():
    for model in (linear(), DPPCA(2), DPGridSearchCV(linear(), {"alpha": [0.0, 1.0]}, epsilon=1.0)):
        assert "\u03b5" not in model._repr_html_()
        assert "sk-container-id" in model._repr_html_()
    pipe = allocate_budget(make_pipeline(DPPCA(2), linear()), 1.0, 1e-6)
    assert "\u03b5" not in pipe._repr_html_()


def test_without_diagrams_there_is_none(benign):
    with sklearn.config_context(display="text"):
        for model in benign:
            assert not hasattr(model, "_repr_html_")
            assert "text/html" not in model._repr_mimebundle_()


def test_the_diagram_warns_of_what_the_price_does_not_cover():
    seeded, read = fit(linear(random_state=987654321)), fit(linear(classes=None))
    assert "not against those who know the seed" in seeded._repr_html_().split("sk-container-id")[0]
    assert "something was read without payment" in read._repr_html_().split("sk-container-id")[0]
    clean = fit(linear())._repr_html_().split("sk-container-id")[0]
    assert "seed" not in clean.split("</div>")[0]


def test_parts_without_a_joint_price_are_named_above_the_diagram():
    pipe = fit(allocate_budget(make_pipeline(DPPCA(2), linear()), 1.0, 1e-6))
    fit(pipe[-1].set_params(adjacency="replace_one", noise_multiplier=None, epsilon=1.0), pipe[:-1].transform(ROWS))
    assert "no joint epsilon" in pipe._repr_html_()
    with pytest.raises(ValueError, match="no joint price"):
        privacy_report(pipe)


def test_a_model_inside_a_pipeline_of_scikit_learn_keeps_its_diagram():
    model = make_pipeline(linear())
    assert "DPLogisticRegression" in model._repr_html_()
