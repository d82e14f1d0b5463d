"""Forms of a privacy report: well-formed, readable, closed to hostile names; and epsilon above the diagram."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.pipeline import make_pipeline

import skdp
from skdp import DPPCA, DPGridSearchCV, DPLogisticRegression, PrivacyReport, allocate_budget, privacy_report
from skdp.report.report_data import shown
from skdp.report.sentences import one_line

RNG = np.random.default_rng(0)
ROWS = RNG.uniform(-1, 1, (300, 4))
Y = (ROWS[:, 0] > 0).astype(int)
HOSTILE = [
    "<script>alert(1)</script>",
    "</style></td></table><img src=x onerror=alert(1)>",
    '"]}\n{"epsilon": 0}, \'" onload="x',
    "a\nNoise and clipping\n------------------\r\n\u2028\u2029\x85\x0b\x0c! lies",
    "\x1b[31m\x00\x07\u202edesrever\u200b\ufeff",
    "\ud800 lone",
    "&lt;b&gt; &amp; \\u003c",
    "x" * 5000,
]


def linear(**parameters):
    return DPLogisticRegression(**{"classes": [0, 1], "max_iter": 3, "delta": 1e-5, **parameters})


def fit(model, rows=ROWS, labels=Y):
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


def test_report_hostile_names_do_not_change_structure(benign, hostile):
    for pair in zip(benign, hostile, strict=True):
        # Noise decides how many diagnostics there are.
        reports = [PrivacyReport({**privacy_report(model).to_dict(), "notices": []}) for model in pair]
        plain, odd = (Page(report.to_html()) for report in reports)
        assert plain.tags == odd.tags
        ids = [value for _, name, value in odd.attributes if name == "id"]
        assert ids == [value for _, name, value in plain.attributes if name == "id"]
        assert len(set(ids)) == len(ids)
        texts = list(map(str, reports))
        titles = [re.findall(r"(?m)^(\S.*)\n-+$", text) for text in texts]
        assert titles[0] == titles[1]
        for lines in map(str.splitlines, texts):
            assert max(map(len, lines)) <= 100
            assert "! lies" not in [line.strip()[:6] for line in lines]


def test_report_hostile_names_are_escaped(hostile):
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
    facts["model"]["class"] = facts["accounting"]["event"] = facts["unaccounted"]["reads"] = HOSTILE[1]
    facts["unaccounted"]["reads"] = [{"kind": "caller", "text": HOSTILE[3]}]
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


# --- values -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e-6, "1e-06"),
        (np.arange(300.0).reshape(3, 100), "ndarray of shape (3, 100)"),
        (pd.DataFrame({"secret": [1]}), "DataFrame of shape (1, 1)"),
        (list(range(100)), f"[{', '.join(map(str, range(20)))}, ... (100 in all)]"),
        (linear(random_state=3), "DPLogisticRegression"),
        ("a\nb", "'a\\nb'"),
        ("x" * 500, "'" + "x" * 236 + "..."),
    ],
)
def test_values_are_shown_in_one_line(value, text):
    assert shown(value) == text


def test_shown_value_without_repr_has_no_address():
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
        assert line in model._repr_mimebundle_()["text/html"]
    assert "\u03b5" not in linear()._repr_html_()


def test_the_diagram_warns_of_what_the_price_does_not_cover():
    seeded, read = fit(linear(random_state=987654321)), fit(linear(classes=None))
    assert "not valid against anyone who knows the seed" in seeded._repr_html_().split("sk-container-id")[0]
    assert "some data were read outside this guarantee" in read._repr_html_().split("sk-container-id")[0]
    clean = fit(linear())._repr_html_().split("sk-container-id")[0]
    assert "seed" not in clean.split("</div>")[0]


def test_parts_without_a_joint_price_are_named_above_the_diagram():
    pipe = fit(allocate_budget(make_pipeline(DPPCA(2), linear()), 1.0, 1e-6))
    fit(pipe[-1].set_params(adjacency="replace_one", noise_multiplier=None, epsilon=1.0), pipe[:-1].transform(ROWS))
    assert "no joint epsilon" in pipe._repr_html_()
    with pytest.raises(ValueError, match="cannot be composed"):
        privacy_report(pipe)
