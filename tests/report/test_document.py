"""Privacy reports: every figure against the event, every sentence against the facts."""

import json
import math
import re
import sys
import types
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from relations import with_n_public
from scipy.stats import norm
from sklearn.ensemble import BaggingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

import skdp
from skdp import (
    DPPCA,
    AddRemove,
    DPGridSearchCV,
    DPLogisticRegression,
    DPMLPClassifier,
    PrivacyAccountant,
    PrivacyLeakWarning,
    PrivacyReport,
    allocate_budget,
    privacy_report,
)
from skdp.accounting import (
    GaussianDpEvent,
    NonPrivateDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
    ZCDpEvent,
    compose,
    flatten,
    get_delta,
    get_epsilon,
    get_epsilon_bounds,
)
from skdp.report import sentences as wording
from skdp.report.sentences import StatedGuarantee, attacker_accuracy_by_profile, guess_at

ROOT = Path(__file__).resolve().parents[2]
RNG = np.random.default_rng(0)
N = 400
X = pd.DataFrame(RNG.uniform(-1, 1, (N, 4)), columns=list("abcd"))
Y = (X["a"] > 0).to_numpy().astype(int)
SEED = 987654321


def linear(**parameters):
    return DPLogisticRegression(**{"classes": [0, 1], "max_iter": 5, "delta": 1e-5, **parameters})


def fit(model, rows=X, labels=Y, *, groups=False):
    """A fitted model; with groups, rows are their own."""
    return model.fit(rows, labels, groups=np.arange(len(rows))) if groups else model.fit(rows, labels)


def pipeline(**parameters):
    steps = make_pipeline(Normalizer(), DPPCA(2), linear(**parameters))
    return allocate_budget(steps, epsilon=1.0, delta=1e-6)


def search(estimator=None, **parameters):
    return DPGridSearchCV(estimator or linear(), {"alpha": [0.0, 0.1, 0.2]}, **{"epsilon": 3.0, **parameters})


MODELS = {
    "linear": lambda: linear(),
    "linear by lot": lambda: linear(sampling_rate=0.2),
    "linear, add_remove": lambda: linear(adjacency=AddRemove(500), sampling_rate=0.2),
    "linear, replace_one": lambda: linear(adjacency="replace_one"),
    "linear, rdp": lambda: linear(accountant=PrivacyAccountant(method="rdp"), sampling_rate=0.2),
    "linear by noise": lambda: linear(epsilon=None, noise_multiplier=30.0),
    "network": lambda: DPMLPClassifier((3,), classes=[0, 1], max_iter=2, delta=1e-5),
    "pca": lambda: DPPCA(2, delta=1e-5),
    "pipeline": pipeline,
    "search": search,
    "search of all": lambda: search(strategy="compose"),
    "search without refit": lambda: search(refit=False),
    "search of one": lambda: DPGridSearchCV(linear(), {"alpha": [0.1]}, epsilon=3.0),
}
_fitted = {}


def fitted(name):
    if name not in _fitted:
        _fitted[name] = fit(MODELS[name]())
    return _fitted[name]


def facts_of(model):
    return privacy_report(model).to_dict()


def section_of(text, title):
    """The text of one section, in one line."""
    body = text.split(f"\n{title}\n{'-' * len(title)}\n")[1]
    return " ".join(re.split(r"\n\n[^\n]+\n---+\n", body)[0].split())


# --- figures ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_figures_are_those_of_the_model_and_of_its_event(name):
    model = fitted(name)
    facts = facts_of(model)
    found, accounting = facts["guarantee"], facts["accounting"]
    assert (found["epsilon"], found["delta"], found["adjacency"]) == (model.epsilon_, model.delta_, model.adjacency_)
    cost = get_epsilon(model.privacy_event_, model.delta_, method=accounting["method"], adjacency=model.adjacency_)
    assert cost == model.epsilon_
    assert accounting["method"] == ("rdp" if name.endswith("rdp") else "pld")
    bounds = get_epsilon_bounds(model.privacy_event_, model.delta_, adjacency=model.adjacency_)
    assert (accounting["epsilon_at_least"], accounting["epsilon_at_most"]) == bounds
    assert bounds[0] <= model.epsilon_
    simple = (math.exp(model.epsilon_) + model.delta_) / (1 + math.exp(model.epsilon_))
    assert found["attacker_accuracy"] == pytest.approx(simple, rel=1e-12)
    profile = (1 + get_delta(model.privacy_event_, 0.0, adjacency=model.adjacency_)) / 2
    if profile < simple:
        assert found["attacker_accuracy_by_profile"] == pytest.approx(profile, rel=1e-12)
    assert found["attacker_accuracy_by_profile"] <= found["attacker_accuracy"]


def test_the_simple_bound_is_reached_by_the_worst_mechanism():
    """It tells all with probability delta, else the truth with odds e^epsilon (Kairouz, Oh & Viswanath 2015)."""
    for epsilon, delta in ((0.0, 0.0), (0.3, 1e-5), (1.0, 0.1), (8.0, 1e-3), (800.0, 1e-3)):
        told = delta + (1 - delta) / (1 + math.exp(-epsilon))
        assert guess_at(epsilon, delta) == pytest.approx(told, rel=1e-15)
    assert guess_at(math.inf, 1e-5) == 1.0


@pytest.mark.parametrize("sigma", [0.5, 50.0])
def test_the_bound_by_the_profile_is_the_exact_chance_against_gaussian_noise(sigma):
    """The best test of N(0, sigma^2) against N(1, sigma^2) cuts at 1/2: right with probability Phi(1 / (2 sigma))."""
    event = GaussianDpEvent(sigma)
    charged = StatedGuarantee(event, get_epsilon(event, 1e-5), 1e-5, "zero_out", "pld", None)
    exact = norm.cdf(0.5 / sigma)
    assert exact <= attacker_accuracy_by_profile(charged) * (1 + 1e-15)
    assert attacker_accuracy_by_profile(charged) == pytest.approx(exact, rel=1e-9)


def test_an_event_that_pld_cannot_price_has_no_bracket_and_no_profile():
    event = ZCDpEvent(0.1)
    charged = StatedGuarantee(event, get_epsilon(event, 1e-5, method="rdp"), 1e-5, "zero_out", "rdp", None)
    assert attacker_accuracy_by_profile(charged) is None
    facts = facts_of(fitted("linear"))
    facts["guarantee"]["attacker_accuracy_by_profile"] = None
    facts["accounting"]["epsilon_at_least"] = facts["accounting"]["epsilon_at_most"] = None
    assert "there is no certified bracket" in " ".join(str(PrivacyReport(facts)).split())


@pytest.mark.parametrize("name", MODELS)
def test_report_rho_only_for_gaussian_mechanisms(name):
    facts = facts_of(fitted(name))
    found, text = facts["guarantee"], str(PrivacyReport(facts))
    basic = [each for each in flatten(fitted(name).privacy_event_)]
    if not all(isinstance(each, GaussianDpEvent) for each in basic):
        assert found["rho"] is None
        assert "zero-concentrated DP, mu" not in text
        return
    times = flatten(fitted(name).privacy_event_)
    mu = math.sqrt(sum(n / event.noise_multiplier**2 for event, n in times.items()))
    mu *= 2 if found["adjacency"] == "replace_one" else 1
    assert found["rho"] == pytest.approx(mu**2 / 2, rel=1e-9)
    assert get_epsilon(ZCDpEvent(found["rho"]), 1e-5, method="rdp") >= get_epsilon(
        fitted(name).privacy_event_, 1e-5, adjacency=found["adjacency"]
    )
    shown = [re.search(r"zero-concentrated DP, mu\^2 / 2\D*at most ([\d.e-]+)", each) for each in
             (text, PrivacyReport(facts).to_html())]  # fmt: skip
    assert all(found["rho"] <= float(each[1]) <= found["rho"] * 1.001 for each in shown)


@pytest.mark.parametrize("adjacency", wording.NEIGHBORS)
def test_report_answers_three_questions_of_opinion_05_2014(adjacency):
    facts = facts_of(fit(linear(adjacency=with_n_public(adjacency, 500))))
    found = facts["guarantee"]
    singling_out, linking, inference = wording.opinion_rows(facts)
    assert (singling_out[0], linking[0], inference[0]) == ("Singling out", "Linking", "Inference")
    for row in (singling_out, linking):
        assert wording.percent(found["attacker_accuracy_by_profile"]) in row[1]
    (tpr,) = re.findall(r"at most ([\d.]+)% of the rows are detected", singling_out[1])
    (more,) = re.findall(r"([\d.]+) percentage points", inference[1])
    for shown, exact in ((tpr, found["tpr_at_1_percent_fpr"]), (more, found["advantage"])):
        assert exact <= float(shown) / 100 + 1e-11 <= exact + 2e-5
    assert ("which of two given rows" in singling_out[1]) == (adjacency == "replace_one")
    assert ("fitted without it" in inference[1]) == (adjacency != "replace_one")
    assert "correlations and about groups" in inference[2]
    text = section_of(str(PrivacyReport(facts)), "Singling out, linking and inference")
    assert "does not state that the model is anonymous in the legal sense" in text
    assert "exceptions" not in text
    assert "Opinion 05/2014" in PrivacyReport(facts).to_html()


def test_report_opinion_without_profile_uses_epsilon_and_delta():
    facts = facts_of(fit(linear(random_state=SEED), X, Y))
    names = ("attacker_accuracy_by_profile", "mu", "rho", "advantage", "tpr_at_1_percent_fpr", "tpr_at_01_percent_fpr")
    facts["guarantee"].update(dict.fromkeys(names))
    singling_out, _, inference = wording.opinion_rows(facts)
    assert singling_out[1].endswith(f"at most {wording.percent(facts['guarantee']['attacker_accuracy'])}.")
    (more,) = re.findall(r"([\d.]+) percentage points", inference[1])
    assert float(more) / 100 >= 2 * facts["guarantee"]["attacker_accuracy"] - 1 - 1e-11
    text = section_of(str(PrivacyReport(facts)), "Singling out, linking and inference")
    assert "The exceptions in the summary apply" in text


@pytest.mark.parametrize("name", MODELS)
def test_printed_figures_are_never_below_the_exact_ones(name):
    facts = facts_of(fitted(name))
    words = section_of(str(PrivacyReport(facts)), "Summary")
    epsilon = float(re.search(r"Epsilon (\S+)", words)[1])
    assert facts["guarantee"]["epsilon"] <= epsilon <= facts["guarantee"]["epsilon"] * (1 + 1e-3)
    shown = [float(each) / 100 for each in re.findall(r"at most (\d+\.\d)%", words)]
    simple, profile = facts["guarantee"]["attacker_accuracy"], facts["guarantee"]["attacker_accuracy_by_profile"]
    for one, other in zip(shown, [simple, simple, profile], strict=True):  # the sentence, and two rows of the table
        assert other <= one + 1e-15 < other + 0.0011
    low, high = re.search(r"lies between (\S+) and (\S+);", " ".join(str(PrivacyReport(facts)).split())).groups()
    assert float(low) <= facts["accounting"]["epsilon_at_least"]
    assert float(high) >= facts["accounting"]["epsilon_at_most"]


def test_percentages_round_up():
    assert [wording.percent(each) for each in (0.5, 0.50001, 0.7310586, 0.99999, 1.0)] == [
        "50.0%", "50.1%", "73.2%", "100.0%", "100.0%"
    ]  # fmt: skip


# --- noise, clip, steps, tuning ---------------------------------------------------------------------------------------


def event_of(rows):
    """The composition that rows without choices list."""
    made = []
    for row in rows:
        inner = GaussianDpEvent(row["noise_multiplier"])
        sampled = inner if row["rows"] == "all rows" else PoissonSampledDpEvent(row["sampling_rate"], inner)
        made.append(SelfComposedDpEvent(sampled, row["times"]))
    return compose(made)


@pytest.mark.parametrize("name", [name for name in MODELS if "search" not in name])
def test_the_listed_releases_cost_what_the_model_costs(name):
    model, facts = fitted(name), facts_of(fitted(name))
    event = event_of(facts["mechanisms"]["rows"])
    assert flatten(event) == flatten(model.privacy_event_)
    cost = get_epsilon(event, model.delta_, method=facts["accounting"]["method"], adjacency=model.adjacency_)
    assert cost == model.epsilon_


@pytest.mark.parametrize("name", ["linear", "linear by lot", "network", "pca"])
def test_constants_are_those_of_the_fit(name):
    model, facts = fitted(name), facts_of(fitted(name))
    ((part,),) = [facts["constants"]]
    listed = {row["name"]: row["value"] for row in part["rows"]}
    assert listed["noise_multiplier_"] == model.noise_multiplier_
    assert listed["data_norm_"] == model.data_norm_
    if name == "pca":
        assert listed["noise_scale_"] == model.noise_scale_
        return
    assert listed["max_grad_norm_"] == model.max_grad_norm_
    assert listed["noise_multiplier_ * max_grad_norm_"] == model.noise_multiplier_ * model.max_grad_norm_
    assert (listed["n_steps_"], listed["sampling_rate_"]) == (model.n_steps_, model.sampling_rate_)


def test_shares_of_steps_are_those_that_were_allotted():
    model = fitted("pipeline")
    shares = facts_of(model)["fractions"]
    assert [each["part"] for each in shares] == ["dppca", "dplogisticregression"]
    assert [each["fraction"] for each in shares] == pytest.approx([0.15, 0.85], abs=1e-4)
    for each in shares:
        event = model.named_steps[each["part"]].privacy_event_
        assert each["epsilon_alone"] == get_epsilon(event, model.delta_)
    assert sum(each["epsilon_alone"] for each in shares) > model.epsilon_


@pytest.mark.parametrize("name", ["search", "search of all", "search without refit"])
def test_the_choice_and_the_refit_compose_to_the_whole_search(name):
    model = fitted(name)
    events, tuning = model._fitted_tuning, facts_of(model)["tuning"]
    assert compose(events.values()) == model.privacy_event_
    assert tuning["epsilon_of_choice"] == get_epsilon(events["choice"], model.delta_)
    assert tuning["epsilon_of_refit"] == get_epsilon(events["refit"], model.delta_)
    assert (tuning["epsilon_of_refit"] == 0.0) == (not model.refit)
    assert tuning["candidates"] == 3


# --- what was read, seeds, callers ------------------------------------------------------------------------------------


def kinds_of(model):
    return [each["kind"] for each in facts_of(model)["unaccounted"]["reads"]]


@pytest.mark.parametrize("make", [lambda **p: linear(**p), lambda **p: pipeline(**p), lambda **p: search(linear(**p))])
def test_classes_that_were_read_are_told_of_and_not_shown(make):
    labels = np.where(Y == 1, "hasdisease", "healthy")
    model = fit(make(classes=None), X, labels)
    report = privacy_report(model)
    assert kinds_of(model) == ["classes"]
    assert report.to_dict()["public"]["classes"] is None
    for text in (str(report), report.to_html(), report.to_json()):
        assert "hasdisease" not in text
    assert "The classes were read from the labels" in section_of(str(report), "Summary")
    given = fit(make(classes=["hasdisease", "healthy"]), X, labels)
    assert facts_of(given)["public"]["classes"] == ["hasdisease", "healthy"]
    assert kinds_of(given) == []


SEEDED = {
    "linear": lambda: linear(random_state=SEED),
    "pipeline": lambda: pipeline(random_state=SEED),
    "search": lambda: search(random_state=SEED),
    "search of a seeded pipeline": lambda: DPGridSearchCV(
        pipeline(), {"dplogisticregression__alpha": [0.0, 0.1]}, epsilon=3.0, random_state=SEED
    ),
}


@pytest.mark.parametrize("name", SEEDED)
def test_seeded_noise_is_told_of_and_the_seed_is_not(name):
    model = fit(SEEDED[name]())
    if "search" not in name:
        model.set_params(**{key: None for key in model.get_params() if key.endswith("random_state")})  # too late
    report = privacy_report(model)
    assert report.to_dict()["noise"]["source"] == "seeded"
    assert "subtract the noise" in str(report)
    assert "The noise is seeded" in section_of(str(report), "Summary")
    for text in (str(report), report.to_html(), report.to_json(), repr(report)):
        assert str(SEED) not in text
    if name == "search":
        assert facts_of(model.best_estimator_)["noise"]["source"] == "seeded"


def test_the_seed_of_a_public_step_is_not_shown_either():
    steps = make_pipeline(RBFSampler(gamma=0.5, n_components=4, random_state=SEED), linear(random_state=SEED))
    model = fit(allocate_budget(steps, 1.0, 1e-6))
    report = privacy_report(model)
    assert str(SEED) not in report.to_json() + str(report) + report.to_html()
    (step,) = report.to_dict()["model"]["public_steps"]
    assert step == {"part": "rbfsampler", "class": "RBFSampler", "package": "sklearn"}
    assert {"name": "rbfsampler__gamma", "value": "0.5"} in report.to_dict()["public"]["parameters"]


def test_a_later_parameter_does_not_change_what_was_secret():
    model = fit(linear()).set_params(random_state=SEED, adjacency="replace_one", delta=0.1)
    facts = facts_of(model)
    assert facts["noise"]["source"] == "secret"
    assert (facts["guarantee"]["adjacency"], facts["guarantee"]["delta"]) == ("zero_out", 1e-5)
    assert facts["accounting"]["method"] == "pld"


def test_a_new_fit_starts_a_new_record_and_an_instalment_continues_it():
    model = fit(linear(random_state=SEED, classes=None))
    model.set_params(random_state=None, classes=[0, 1])
    with warnings.catch_warnings(action="error", category=PrivacyLeakWarning):
        model.partial_fit(X, Y)
        assert facts_of(model)["noise"]["source"] == "seeded"
        assert kinds_of(model) == ["classes"]
        model.set_params(warm_start=True).fit(X, Y)
        assert facts_of(model)["noise"]["source"] == "seeded"
        model.set_params(warm_start=False).fit(X, Y)
    assert facts_of(model)["noise"]["source"] == "secret"
    assert kinds_of(model) == []


def test_a_step_that_was_fitted_alone_later_is_part_of_the_record():
    model = fit(pipeline())
    last = model[-1].set_params(random_state=SEED, epsilon=0.1, noise_multiplier=None)
    last.partial_fit(model[:-1].transform(X), Y)
    assert facts_of(model)["noise"]["source"] == "seeded"
    assert facts_of(model)["guarantee"]["epsilon"] == model.epsilon_ > 1.0


CALLERS = {
    "StandardScaler": lambda: make_pipeline(StandardScaler(), linear()).fit(X, Y)[-1],
    "GridSearchCV": lambda: GridSearchCV(linear(), {"alpha": [0.0, 0.1]}, cv=2).fit(X, Y).best_estimator_,
    "BaggingClassifier": lambda: BaggingClassifier(linear(), n_estimators=2).fit(X, Y).estimators_[1],
}


@pytest.mark.parametrize("name", CALLERS)
def test_compositions_around_a_fit_are_told_of_each_time(name):
    """A warning is given once for each composition; the record holds it for each fit."""
    model = CALLERS[name]()
    assert kinds_of(model) == ["caller"]
    (read,) = facts_of(model)["unaccounted"]["reads"]
    assert name in read["text"]
    assert "It was fitted inside" in section_of(str(privacy_report(model)), "Summary")


def test_a_state_without_a_record_says_so():
    model = fit(linear())
    del model._fitted_leaks
    report = privacy_report(model)
    assert report.to_dict()["unaccounted"]["recorded"] is False
    assert report.to_dict()["noise"]["source"] == "not recorded"
    assert "not recorded, or not always" in section_of(str(report), "Summary")


# --- numbers of records --------------------------------------------------------------------------------------------


def test_the_number_of_rows_is_named_where_it_is_public():
    public = section_of(str(privacy_report(fitted("linear"))), "Public information")
    assert "number of rows 400, which is public" in public
    private = str(privacy_report(fitted("linear, add_remove")))
    assert "number of rows 500, a public estimate" in section_of(private, "Public information")
    assert "400" not in private


def test_units_are_counted_and_not_their_rows():
    model = linear().fit(X, Y, groups=np.arange(N) // 3)
    facts = facts_of(model)
    assert (facts["guarantee"]["n_units_public"], facts["public"]["n_units"]) == (N // 3 + 1, "public")
    assert str(N) not in privacy_report(model).to_json()


# --- sentences --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", wording.NEIGHBORS)
def test_neighbors_and_the_guess_are_worded_by_adjacency(adjacency):
    text = str(privacy_report(fit(linear(adjacency=with_n_public(adjacency, 500)))))
    words = " ".join(text.split())
    assert wording.NEIGHBORS[adjacency].format(unit="row") in words
    assert ("which of two given rows was used" in words) == (adjacency == "replace_one")
    assert ("The number of rows is private." in words) == (adjacency == "add_remove")
    assert ("Number of rows" in section_of(text, "Outside the guarantee")) == (adjacency != "add_remove")


def test_a_weak_delta_is_an_exception():
    facts = facts_of(fit(linear(delta=1 / N)))
    assert "Delta is too large: publishing one whole record would satisfy it." in wording.exceptions(facts)
    assert "which should be well below 1" in wording.delta_and_rows(facts_of(fit(linear(delta=0.5 / N))))


def test_no_guarantee_is_told_as_such():
    model = fit(linear())
    model.privacy_event_, model.epsilon_ = NonPrivateDpEvent(), math.inf
    report = privacy_report(model)
    assert report.to_dict()["guarantee"]["epsilon"] == "infinity"
    assert "Epsilon is infinite: there is no guarantee." in section_of(str(report), "Summary")
    assert "at most 100.0%" in str(report)
    assert PrivacyReport.from_json(report.to_json()) == report


def test_an_epsilon_below_its_event_is_rejected():
    model = fit(linear())
    model.epsilon_ *= 0.9
    with pytest.raises(ValueError, match="must be at least the epsilon of privacy_event_"):
        privacy_report(model)


def test_the_unit_is_that_of_the_ledger():
    plain, person = PrivacyAccountant(), PrivacyAccountant(unit="person\n<b>")
    assert "Several rows of the same person" in wording.unit(facts_of(fit(linear(accountant=plain))))
    report = privacy_report(fit(linear(accountant=person), groups=True))
    assert wording.unit(report.to_dict()) == "One person <b>: all rows with the same group identifier."


def test_no_path_is_shown(tmp_path):
    PrivacyAccountant(epsilon=3.0, delta=1e-5, path=tmp_path / "secretname.budget")
    model = fit(linear(accountant=tmp_path / "secretname.budget", checkpoint=tmp_path / "secretname.npz"))
    report = privacy_report(model)
    for text in (str(report), report.to_html(), report.to_json()):
        assert "secretname" not in text


def test_a_class_of_a_third_party_is_an_exception():
    page = (ROOT / "docs" / "extending.md").read_text()
    block = next(each for each in re.findall(r"(?ms)^```python\n(.*?)^```", page) if "class DPNearestCentroid" in each)
    module = sys.modules["page_of_report"] = types.ModuleType("page_of_report")
    exec(block, vars(module))
    model = fit(module.DPNearestCentroid([0, 1]))
    report = privacy_report(model)
    assert report.to_dict()["guarantee"]["n_units_public"] == N
    assert report.to_dict()["noise"]["source"] == "secret"
    assert wording.exceptions(report.to_dict()) == [
        "DPNearestCentroid is a third-party class of page_of_report: skdp cannot verify its sensitivity."
    ]


# --- errors --------------------------------------------------------------------------------------------------


def test_privacy_report_unfitted_model_raises():
    for make in (linear, pipeline, search):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            privacy_report(make())


def test_privacy_report_object_without_budget_raises():
    part = fitted("pipeline")[:-1]
    for model in (LogisticRegression(), make_pipeline(linear()), PrivacyAccountant(), part):
        with pytest.raises(TypeError, match="has no privacy budget of its own"):
            privacy_report(model)
    for text in ("{}", "[]", '{"schema": "skdp.privacy_report", "schema_version": 3}'):
        with pytest.raises(ValueError, match="to_dict or to_json"):
            PrivacyReport.from_json(text)


# --- forms ------------------------------------------------------------------------------------------------------------


def test_private_figures_are_stated_with_their_price():
    scores = np.linspace(0, 1, 400)
    found = skdp.evaluate(None, scores, (scores > 0.4).astype(int), epsilon=0.7)
    model = fitted("linear")
    report = privacy_report(model, evaluation=found)
    assert report.to_dict()["quality"]["within"] is False
    words = section_of(str(report), "Quality")
    for name, each in found.summary().items():
        assert f"{name.replace('_', ' ')} {each.value:.4g} {each.low:.4g} {each.high:.4g}" in words
    assert "epsilon = 0.7" in words
    assert "does not include it" in words
    with pytest.raises(TypeError, match=r"must be a result of skdp\.evaluate, got dict"):
        privacy_report(model, evaluation={"roc_auc": 0.9})


def test_a_model_of_a_table_reports_it_and_no_search():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 2))
    model = skdp.DPCalibratedClassifier(linear(), epsilon=1.0).fit(X, (X[:, 0] > 0).astype(int))
    report = privacy_report(model)
    assert report.to_dict()["quality"]["within"] is True
    assert report.to_dict()["tuning"] is None
    assert "the stated epsilon includes them" in section_of(str(report), "Quality")
    assert report.to_dict()["quality"]["figures"][0]["value"] == model.evaluation_.roc_auc.value


SCHEMA = {
    "": ["schema", "schema_version", "model", "guarantee", "accounting", "noise", "mechanisms", "constants",
         "fractions", "tuning", "quality", "effects", "public", "unaccounted", "notices", "versions"],
    "model": ["class", "kind", "private_parts", "public_steps", "has_accountant"],
    "guarantee": ["unit", "accountant_unit", "groups", "partition", "partition_rule", "adjacency", "epsilon",
                  "delta", "attacker_accuracy", "attacker_accuracy_by_profile", "mu", "rho", "advantage",
                  "tpr_at_1_percent_fpr", "tpr_at_01_percent_fpr", "n_units_public"],
    "accounting": ["method", "epsilon_at_least", "epsilon_at_most", "event", "sampling"],
    "noise": ["source"],
    "mechanisms": ["rows", "number"],
    "tuning": ["candidates", "trials", "trials_on_average", "worst_of_possibilities", "scoring", "epsilon_of_choice",
               "epsilon_of_refit"],
    "public": ["parameters", "n_units", "n_features", "feature_names", "columns", "classes",
               "classes_read_from_labels"],
    "unaccounted": ["recorded", "reads"],
    "versions": ["skdp", "numpy", "scikit-learn", "python"],
}  # fmt: skip
ROWS = {"mechanism", "rows", "sampling_rate", "noise_multiplier", "note", "times", "within"}


def test_report_clean_fit_has_schema_and_no_exceptions(tmp_path):
    for name in MODELS:
        report = privacy_report(fitted(name))
        facts = report.to_dict()
        assert (facts["schema"], facts["schema_version"]) == ("skdp.privacy_report", 4)
        for key, keys in SCHEMA.items():
            found = facts if not key else facts[key]
            assert found is None or list(found) == keys, (name, key)
        assert (facts["tuning"] is None) == ("search" not in name)
        assert all(set(row) == ROWS for row in facts["mechanisms"]["rows"])
        assert all(set(row) == {"name", "value", "meaning"} for part in facts["constants"] for row in part["rows"])
        assert facts["noise"]["source"] == "secret"
        assert facts["unaccounted"] == {"recorded": True, "reads": []}
        assert wording.exceptions(facts) == []
        assert section_of(str(report), "Unaccounted reads of the data") == "None was detected during the fit."
        assert json.loads(report.to_json(tmp_path / "report.json")) == facts
        read = PrivacyReport.from_json((tmp_path / "report.json").read_text(encoding="utf-8"))
        assert read == report
        assert hash(read) == hash(report)
        assert (str(read), read.to_html(), read.to_json()) == (str(report), report.to_html(), report.to_json())
    assert report.to_html(tmp_path / "report.html") == (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_report_is_a_copy():
    model = fit(linear())
    report = privacy_report(model)
    before = report.to_json()
    report.to_dict()["guarantee"]["epsilon"] = 0.0
    fit(model.set_params(epsilon=0.2))
    assert report.to_json() == before
    assert "epsilon=" in repr(report)
    assert report != privacy_report(model)
    assert report != before


def test_columns_are_listed_as_given_or_estimated():
    people = skdp.datasets.make_census(2_000, features=["age", "sex"], as_frame=True, random_state=0)
    table = people.data.assign(number=1)
    schema = {"age": (18, 90), "sex": "category", "number": "drop"}
    model = skdp.tabular_pipeline(schema=schema, classes=[0, 1]).fit(table, people.target)
    model[0].set_params(schema={})  # a report is about the fit
    columns = {each["name"]: each for each in facts_of(model)["public"]["columns"]}
    assert [columns[name]["source"] for name in ("age", "sex", "number")] == ["given", "estimated", ""]
    assert columns["age"]["known"] == "18 to 90"


def test_a_report_says_that_time_depends_on_rows_that_repeat():
    """Unless no row is grouped; and it says the same whether any was."""
    on, merged, off = (
        dict(wording.not_covered(facts_of(fit(linear(**given)))))["Run time"]
        for given in ({}, {"merge_equal_rows": True}, {"merge_equal_rows": False})
    )
    assert "depend on the number of distinct rows" in on
    assert merged == on
    assert off == "The run time of a fit can depend on the rows."
