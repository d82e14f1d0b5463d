"""Displays of budgets, coefficients and quality: what is drawn, what is charged, and what is rejected for nothing."""

import re
import sys
import warnings
from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest
from combinations import over_rows
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from unread import UnreadTable

from skdp import (
    DPPCA,
    AddRemove,
    BudgetExceededError,
    DPGridSearchCV,
    DPLogisticRegression,
    PrivacyAccountant,
    PrivacyLeakWarning,
    allocate_budget,
    config_context,
)
from skdp.accounting import GaussianDpEvent, SelfComposedDpEvent, compose, get_epsilon
from skdp.ensemble import DPRandomTreesClassifier
from skdp.mechanisms import GaussianMechanism
from skdp.plotting import (
    AccountantComparisonDisplay,
    BudgetDisplay,
    CoefficientDisplay,
    PrivacyUtilityDisplay,
    TradeOffDisplay,
)

DELTA = 1e-5
RNG = np.random.default_rng(0)
X = RNG.uniform(-1.0, 1.0, (600, 4))
Y = (X[:, 0] + 0.5 * RNG.normal(size=600) > 0).astype(int)
TRAIN, TEST = (X[:400], Y[:400]), (X[400:], Y[400:])
UNREAD = UnreadTable(400, 4), UnreadTable(400)


@pytest.fixture(autouse=True)
def plt():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.close("all")
    yield plt
    plt.close("all")


def linear(**parameters):
    return DPLogisticRegression(**{"classes": [0, 1], "delta": DELTA, "max_iter": 10, **parameters})


def study(estimator, rows=TRAIN, test=TEST, **options):
    options = {"epsilons": (0.5, 2.0), "n_repeats": 2, "test_is_public": True, **options}
    return PrivacyUtilityDisplay.from_estimator(estimator, *rows, *test, **options)


def models_of(display):
    return [model for models in display.estimators_ for model in models]


def event_of_all(display):
    """What the fitted models say that they cost, without a look at the display's own figure."""
    return compose(model.privacy_event_ for model in models_of(display))


# --- quality against budget: the picture ---


def test_line_band_and_labels_hold_the_scores():
    display = study(linear(), n_repeats=3, scoring="roc_auc")
    scores = [[roc_auc_score(TEST[1], m.decision_function(TEST[0])) for m in ms] for ms in display.estimators_]
    np.testing.assert_array_equal(display.scores, scores)
    mean, spread = np.mean(scores, axis=1), np.std(scores, axis=1, ddof=1)
    assert display.line_.get_xdata().tolist() == [0.5, 2.0]
    np.testing.assert_array_equal(display.line_.get_ydata(), mean)
    corners = display.band_.get_paths()[0].vertices
    for x, low, high in zip((0.5, 2.0), mean - spread, mean + spread, strict=True):
        drawn = corners[corners[:, 0] == x][:, 1]
        np.testing.assert_allclose([drawn.min(), drawn.max()], [low, high])
    ax = display.ax_
    assert ax.get_xscale() == "log"
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0.5", "2"]
    assert "epsilon" in ax.get_xlabel()
    assert ax.get_ylabel() == "ROC AUC on public rows"
    assert "3 fits" in ax.get_legend().get_texts()[0].get_text()
    assert display.figure_ is ax.figure


def test_scores_at_hand_are_drawn_and_cost_nothing(plt):
    figure, ax = plt.subplots()
    display = PrivacyUtilityDisplay.from_scores(
        [0.1, 1, 10], [0.6, 0.7, 0.8], baseline_score=[0.8, 0.9], score_name="R²", model_name="mine", ax=ax, color="k"
    )
    assert display.ax_ is ax
    assert display.figure_ is figure
    assert display.line_.get_color() == "k"
    assert display.line_.get_ydata().tolist() == [0.6, 0.7, 0.8]
    assert display.baseline_line_.get_ydata()[0] == pytest.approx(0.85)
    assert (display.band_, display.note_) == (None, None)
    assert ax.get_ylabel() == "R²"
    assert not hasattr(display, "epsilon_total_")
    again = display.plot()
    assert again is display
    assert display.ax_ is not ax


# --- quality against budget: what is charged ---


@pytest.mark.parametrize(
    ("adjacency", "sampling"), [("replace_one", {}), ("zero_out", {"sampling_rate": 0.5, "max_iter": 2})]
)
def test_every_fit_is_charged_repeats_included(adjacency, sampling):
    ledger = PrivacyAccountant()
    display = study(linear(accountant=ledger, adjacency=adjacency, **sampling))
    assert len(models_of(display)) == 4
    paid = get_epsilon(event_of_all(display), DELTA, adjacency=adjacency)
    assert display.epsilon_total_ == pytest.approx(paid, rel=1e-9)
    assert ledger.get_epsilon(DELTA) == pytest.approx(paid, rel=1e-9)
    assert (display.delta_, display.adjacency_, ledger.adjacency) == (DELTA, adjacency, adjacency)
    for models, epsilon in zip(display.estimators_, (0.5, 2.0), strict=True):
        for model in models:
            assert 0.999 * epsilon < model.epsilon_ <= epsilon
            assert model.epsilon == epsilon
            assert model.accountant is ledger
    assert display.epsilon_total_ > 2.0 * 1.3  # no single fit's cost
    (charge,) = ledger.history
    assert charge.label == "PrivacyUtilityDisplay"
    assert charge.parameters["epsilons"] == [0.5, 2.0]
    assert charge.parameters["n_repeats"] == 2


def test_every_fit_has_noise_of_its_own():
    display = study(linear(), n_repeats=3)
    coefs = [model.coef_.tobytes() for model in models_of(display)]
    assert len(set(coefs)) == 6
    with pytest.warns(PrivacyLeakWarning, match="noise of all fits reproducible"):
        seeded = [study(linear(), n_repeats=3, random_state=seed) for seed in (1, 1, 2)]
    coefs = [[model.coef_.tobytes() for model in models_of(each)] for each in seeded]
    assert coefs[0] == coefs[1]
    assert len(set(coefs[0])) == 6
    assert not set(coefs[0]) & set(coefs[2])
    np.testing.assert_array_equal(seeded[0].scores, seeded[1].scores)


def test_a_pipeline_is_fitted_at_each_of_the_budgets():
    ledger = PrivacyAccountant()
    half = FunctionTransformer(np.tanh)
    pipe = make_pipeline(half, DPPCA(3, center=False, accountant=ledger), linear())
    pipe = allocate_budget(pipe, 7.0, 1e-6)
    display = study(pipe)
    for models, epsilon in zip(display.estimators_, (0.5, 2.0), strict=True):
        for model in models:
            assert 0.999 * epsilon < model.epsilon_ <= epsilon
    assert display.delta_ == 1e-6
    assert display.epsilon_total_ == pytest.approx(get_epsilon(event_of_all(display), 1e-6), rel=1e-9)
    assert ledger.get_epsilon(1e-6) == pytest.approx(display.epsilon_total_, rel=1e-9)
    assert pipe.epsilon == 7.0
    assert display.model_name == "private (DPLogisticRegression)"
    assert not hasattr(pipe[-1], "coef_")


@pytest.mark.parametrize("make", [linear, lambda **k: allocate_budget(make_pipeline(DPPCA(3), linear(**k)), 1.0)])
def test_delta_is_that_of_a_fit_alone(make):
    """The number that "auto" stands for: by rule, or the ledger's."""
    ledger = PrivacyAccountant(100.0, 1e-7)
    assert study(make(delta="auto")).delta_ == 1e-5
    display = study(make(delta="auto", accountant=ledger))
    assert {display.delta_, *(model.delta_ for model in models_of(display))} == {1e-7}
    assert ledger.history[0].parameters["delta"] == 1e-7


def test_the_plan_under_add_remove_does_not_see_the_number_of_rows():
    events = set()
    for n in (390, 400):
        model = linear(adjacency=AddRemove(350), lot_size=300)
        display = study(model, (X[:n], Y[:n]), (X[500:], Y[500:]))
        events.add(display.privacy_event_)
    assert len(events) == 1


def test_a_ceiling_rejects_before_a_row_is_read_and_charges_nothing():
    ledger = PrivacyAccountant(4.0, DELTA)
    with pytest.raises(BudgetExceededError):
        study(linear(accountant=ledger), UNREAD, epsilons=(2.0,), n_repeats=10)
    assert ledger.entries == ()


def test_the_study_is_one_plan_under_a_ceiling():
    """Its joint cost fills the budget; the fits one by one would have to pass the filter, which is stricter."""
    cost = study(linear(), epsilons=(1.0,), n_repeats=4).epsilon_total_
    ledger = PrivacyAccountant(cost * (1 + 1e-6), DELTA)
    display = study(linear(accountant=ledger), epsilons=(1.0,), n_repeats=4)
    assert ledger.spent == pytest.approx(display.epsilon_total_)
    assert len(ledger.history) == 1


# --- neighbors ---


UNIT = slice(7, 12)
GROUPS = np.arange(400)
GROUPS[UNIT] = 7


@pytest.mark.parametrize("given", [
    {}, {"sample_weight": np.arange(400) != 7}, {"groups": GROUPS}
], ids=["row", "row of weight 0", "group"])  # fmt: skip
def test_one_row_changed_moves_what_is_released_by_its_bound_and_nothing_else(monkeypatch, given):
    """Replay: the second run is handed what the first released; the rehearsal before the charge sees no private row.

    A row of weight 0 moves nothing, and all rows of a group together no more than one row.
    """
    release, outputs, runs = GaussianMechanism.release, [], []

    def run(rows):
        ledger, inputs, fresh = PrivacyAccountant(unit="group" if "groups" in given else "row"), [], not outputs

        def recorded(mechanism, value, stream):
            inputs.append((len(ledger.history), np.array(value), mechanism.sensitivity))
            if fresh:
                outputs.append(release(mechanism, value, stream))
            return outputs[len(inputs) - 1].copy()

        monkeypatch.setattr(GaussianMechanism, "release", recorded)
        with warnings.catch_warnings(record=True, action="always") as caught:
            display = study(linear(accountant=ledger, weight_bound=1.0), rows, random_state=5, **given)
        runs.append((inputs, display, [str(each.message) for each in caught]))

    other = X[:400].copy(), Y[:400].copy()
    changed = UNIT if "groups" in given else slice(7, 8)
    other[0][changed], other[1][changed] = 50.0, 1 - other[1][changed]
    run(TRAIN)
    run(other)
    (one, shown, said), (two, shown_too, said_too) = runs
    assert len(one) == len(two) == 12 * (1 + 4)  # class counts, ten steps and an offset, of a rehearsal and four fits
    moves = []
    for (charged, value, bound), (charged_too, value_too, bound_too) in zip(one, two, strict=True):
        assert (charged, bound) == (charged_too, bound_too)
        move = np.linalg.norm(value - value_too)
        assert move <= 2 * bound * (1 + 1e-6) if charged else move == 0.0
        moves.append(move if charged else 0.0)
    assert [charged for charged, _, _ in one] == [0] * 12 + [1] * 48
    assert min(moves[12:]) > 0 or "sample_weight" in given  # the row was there
    assert max(moves) == 0.0 or "sample_weight" not in given
    np.testing.assert_array_equal(shown.scores, shown_too.scores)
    assert (shown.epsilon_total_, shown.privacy_event_, shown.note) == (
        shown_too.epsilon_total_, shown_too.privacy_event_, shown_too.note,
    )  # fmt: skip
    assert (shown.baseline_score, shown.score_name) == (shown_too.baseline_score, shown_too.score_name)
    assert said == said_too
    for one_model, other_model in zip(models_of(shown), models_of(shown_too), strict=True):
        np.testing.assert_array_equal(one_model.coef_, other_model.coef_)
        assert one_model.epsilon_ == other_model.epsilon_


def test_weights_reach_the_scores_and_the_baseline():
    weights, of_test = np.linspace(0.1, 1.0, 400), np.linspace(1.0, 0.1, 200) ** 3
    given = {"sample_weight": weights, "sample_weight_test": of_test}
    with pytest.warns(PrivacyLeakWarning, match="baseline"):
        display = study(linear(weight_bound=1.0), baseline=LogisticRegression(), scoring="roc_auc", **given)
    by_hand = [roc_auc_score(TEST[1], m.decision_function(TEST[0]), sample_weight=of_test) for m in models_of(display)]
    np.testing.assert_array_equal(np.ravel(display.scores), by_hand)
    fitted = LogisticRegression().fit(*TRAIN, sample_weight=weights)
    assert display.baseline_score == roc_auc_score(TEST[1], fitted.decision_function(TEST[0]), sample_weight=of_test)
    assert display.baseline_line_.get_ydata()[0] == display.baseline_score
    assert "baseline is not private" in display.note_.get_text()


@pytest.mark.parametrize("make", [linear, lambda **k: allocate_budget(make_pipeline(DPPCA(3), linear(**k)), 1.0)])
def test_a_study_for_households_is_charged_to_a_ledger_of_them(make):
    names = [*"abcd", "home"]
    frame = pd.DataFrame(np.column_stack([TRAIN[0], np.arange(400) // 2]), columns=names)
    test = pd.DataFrame(np.column_stack([TEST[0], np.arange(200)]), columns=names)
    ledger = PrivacyAccountant(unit="household")
    given = {"groups": "home", "scoring": "roc_auc"}
    display = study(make(accountant=ledger, delta="auto"), (frame, TRAIN[1]), (test, TEST[1]), **given)
    for model in models_of(display):
        assert model.privacy_unit_ == "group"
        assert model.feature_names_in_.tolist() == list("abcd")
    assert {charge.unit for charge in ledger.history} == {"household"}
    assert {charge.parameters["groups"] for charge in ledger.history} == {"home"}
    with pytest.raises(ValueError, match="cannot be charged to an accountant of unit='household'"):
        study(make(accountant=ledger))


# --- leaks ---


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"test_is_public": False}, "the scores on X_test and y_test are exact"),
        ({"baseline": LogisticRegression()}, "baseline=LogisticRegression reads all rows and labels without noise"),
        ({"random_state": 3}, "random_state=3 makes the noise of all fits reproducible"),
    ],
)
def test_a_leak_is_told_once_or_raised_before_any_charge(options, message):
    ledger = PrivacyAccountant()
    with pytest.warns(PrivacyLeakWarning, match=message) as caught:
        study(linear(accountant=ledger), **options)
    assert [each.category for each in caught].count(PrivacyLeakWarning) == 1
    assert caught[0].filename == __file__
    assert len(ledger.history) == 1
    with config_context(on_leak="raise"), pytest.raises(PrivacyLeakWarning, match=message):
        study(linear(accountant=ledger), UNREAD, **options)
    assert len(ledger.entries) == 1


def test_classes_that_are_read_are_told():
    with pytest.warns(PrivacyLeakWarning, match="classes were read from `y`"):
        study(linear(classes=None))


# --- rejections ---


def with_cell(rows, value):
    changed = rows[0].astype(object if isinstance(value, str) else float)
    changed[3, 2] = value
    return changed, rows[1]


class Fails(BaseEstimator):
    def fit(self, X, y):
        raise RuntimeError("cell 0.1234567")


def broken_score(model, X, y):
    raise RuntimeError(f"first label {y[0]} of cell {X[0, 0]}")


CELL = "0.1234567"
REJECTED = {
    "NaN": {"rows": with_cell(TRAIN, np.nan)},
    "string": {"rows": with_cell(TRAIN, "secretword")},
    "unknown label": {"rows": (TRAIN[0], np.where(Y[:400] == 0, 77, 1))},
    "test rows of another width": {"test": (X[400:, :3], Y[400:])},
    "one class in the test rows": {"test": (X[400:], np.ones(200, int)), "scoring": "roc_auc"},
    "a score that fails": {"scoring": broken_score},
    "epsilon 0": {"epsilons": (0.0, 1.0)},
    "no repeats": {"n_repeats": 0},
    "no axes": {"ax": "left"},
    "a private baseline": {"baseline": linear()},
    "a baseline that fails": {"baseline": Fails()},
    "a weight that is none": {"sample_weight": np.append(np.ones(399), -77.0)},
    "groups of another number": {"groups": np.arange(399)},
    "a seed that is none": {"random_state": "seed"},
}


@over_rows("case", REJECTED)
def test_what_is_rejected_costs_nothing_and_shows_no_cell(case, plt):
    options, ledger = dict(REJECTED[case]), PrivacyAccountant()
    with pytest.raises((ValueError, TypeError, AttributeError)) as caught:
        study(linear(accountant=ledger), **options)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    for cell in (CELL, "secretword", "77", f"{X[400, 0]}"):
        assert cell not in message
    assert caught.value.__cause__ is None or CELL not in str(caught.value.__cause__)
    assert ledger.history == ()
    assert plt.get_fignums() == []


@over_rows(
    ("make", "message"),
    [
        (lambda: study(make_pipeline(DPPCA(2), linear())), "`estimator` must be a pipeline with a privacy budget"),
        (
            lambda: study(DPGridSearchCV(linear(), {"alpha": [0.0]})),
            "`estimator` must be a private estimator such as DPLogisticRegression, or a",
        ),
        (lambda: PrivacyUtilityDisplay.from_scores([1, 2], [0.5]), "`scores` must have one row per epsilon"),
        (
            lambda: BudgetDisplay.from_accountant(charged(*EVENTS)),
            "`delta` must be set for an accountant without a budget, e",
        ),
        (
            lambda: BudgetDisplay.from_accountant(charged(epsilon=1.0, delta=DELTA), delta=1e-6),
            "`delta` must be that of the budget, 1e-05",
        ),
        (lambda: CoefficientDisplay.from_estimator(Model(3)), "`class_label` must be one of the 3 values of classes_"),
        (
            lambda: CoefficientDisplay.from_estimator(Model(2), class_label=0),
            "`class_label` must be None or 1 for binary models",
        ),
        (
            lambda: CoefficientDisplay.from_estimator(linear()),
            "`estimator` must be a fitted DPLogisticRegression or a pipeline that ends",
        ),
        (
            lambda: CoefficientDisplay.from_estimator(Model(2), feature_names=["a"]),
            "`coef`, `coef_noise` and `feature_names` must have one entry per column",
        ),
        (lambda: CoefficientDisplay.from_estimator(Model(2), max_features=0), "`max_features` must be .*, got 0"),
    ],
)
def test_display_invalid_argument_raises_without_figure(make, message, plt):
    with pytest.raises((TypeError, ValueError), match=message):
        make()
    assert plt.get_fignums() == []


class CountsAlike(DPLogisticRegression):
    def fit(self, X, y):
        return super().fit(X, y)


def test_weights_that_no_step_takes_are_rejected_before_a_row_is_read():
    ledger = PrivacyAccountant()
    with pytest.raises(ValueError, match="`sample_weight` is not supported by CountsAlike"):
        study(CountsAlike(classes=[0, 1], accountant=ledger), UNREAD, sample_weight=np.ones(400))
    assert ledger.entries == ()


def test_without_matplotlib_nothing_is_paid(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    ledger = PrivacyAccountant()
    with pytest.raises(ImportError, match=r'PrivacyUtilityDisplay requires matplotlib. Run `pip install "\.\[plot\]"`'):
        study(linear(accountant=ledger))
    assert ledger.entries == ()
    for draw in (
        lambda: BudgetDisplay(labels=["a"], totals=[1.0], delta=DELTA).plot(),
        lambda: CoefficientDisplay(coef=[1.0], coef_noise=[1.0], feature_names=["a"]).plot(),
    ):
        with pytest.raises(ImportError, match="requires matplotlib"):
            draw()


# --- budgets ---

EVENTS = (GaussianDpEvent(4.0), SelfComposedDpEvent(GaussianDpEvent(9.0), 3), GaussianDpEvent(6.0))


def charged(*events, **terms):
    ledger = PrivacyAccountant(**terms)
    for number, event in enumerate(events):
        ledger.spend(event, f"fit {number}")
    return ledger


def costs(events):
    return [get_epsilon(compose(events[:number]), DELTA) for number in range(1, len(events) + 1)]


def test_bars_are_what_each_charge_added():
    ledger = charged(*EVENTS, epsilon=4.0, delta=DELTA, unit="person")
    display = BudgetDisplay.from_accountant(ledger)
    totals = costs(EVENTS)
    starts = [0.0, *totals[:-1]]
    np.testing.assert_allclose([bar.get_x() for bar in display.bars_], starts, rtol=1e-9)
    np.testing.assert_allclose([bar.get_x() + bar.get_width() for bar in display.bars_], totals, rtol=1e-9)
    assert display.privacy_costs == pytest.approx([get_epsilon(event, DELTA) for event in EVENTS])
    assert (display.budget, display.delta) == (4.0, DELTA)
    assert display.remaining == ledger.remaining()
    assert display.budget_line_.get_xdata()[0] == 4.0
    left = display.remaining_bar_
    assert left.get_x() == pytest.approx(totals[-1])
    assert left.get_x() + left.get_width() == pytest.approx(4.0)
    ticks = [tick.get_text() for tick in display.ax_.get_yticklabels()]
    assert ticks[:-1] == ["1. fit 0", "2. fit 1", "3. fit 2"]
    told = float(ticks[-1].removeprefix("remaining: "))
    assert 0.99 * ledger.remaining() < told <= ledger.remaining()
    assert "Privacy unit: one person." in " ".join(display.note_.get_text().split())
    written = "\n".join(text.get_text() for text in display.ax_.texts)
    told = re.findall(r"^\+([\d.]+) \(alone ([\d.]+)\), total ([\d.]+)$", written, re.M)
    for shown, before, total, cost in zip(told, totals[:-1], totals[1:], display.privacy_costs[1:], strict=True):
        for figure, true in zip(shown, (total - before, cost, total), strict=True):
            assert true <= float(figure) * (1 + 1e-12)  # never less than was spent
            assert float(figure) < 1.01 * true
    assert len(ledger.entries) == 3


def test_a_ledger_in_a_file_an_empty_one_a_full_one_and_a_raised_one(path):
    PrivacyAccountant(2.0, DELTA, path=path)
    empty = BudgetDisplay.from_accountant(path)
    assert empty.totals == []
    assert empty.remaining_bar_.get_width() == 2.0
    ledger = PrivacyAccountant.open(path)
    ledger.spend(GaussianDpEvent(3.0), "fit")
    ledger.record_rejection("fit")
    ledger.increase_budget(5.0)
    display = BudgetDisplay.from_accountant(path)
    assert display.budget_line_.get_xdata()[0] == 5.0
    note = display.note_.get_text().replace("\n", " ")
    told = float(re.search(r"was increased \(1 times\), so the guarantee is the adaptive total, ([\d.]+)\.", note)[1])
    assert 0 <= told - ledger.spent < 0.01
    assert "Rejected fits without a charge: 1." in note
    full = BudgetDisplay(labels=["a"], totals=[1.0], delta=DELTA, budget=1.0, remaining=0.0).plot()
    assert full.remaining_bar_ is None


# --- coefficients ---


def test_bars_and_bands_of_coefficients():
    coef, noise = [0.1, -3.0, 0.5, 0.0], [0.1, 1.0, 0.1, 0.2]
    names = ["a", "b", "c", "d"]
    display = CoefficientDisplay(coef=coef, coef_noise=noise, feature_names=names, level=0.9).plot()
    assert display.features_.tolist() == [2, 1, 0, 3]
    assert [bar.get_width() for bar in display.bars_] == [0.5, -3.0, 0.1, 0.0]
    reach = NormalDist().inv_cdf(0.95)
    np.testing.assert_allclose([band.get_width() for band in display.bands_], 2 * reach * np.array([0.1, 1, 0.1, 0.2]))
    np.testing.assert_allclose([band.get_x() for band in display.bands_], -reach * np.array([0.1, 1, 0.1, 0.2]))
    assert [tick.get_text() for tick in display.ax_.get_yticklabels()] == ["c", "b", "a", "d"]
    assert display.note_ is None
    two = CoefficientDisplay(coef=coef, coef_noise=noise, feature_names=names, max_features=2).plot(color="k")
    assert two.features_.tolist() == [2, 1]
    assert two.note_.get_text().startswith("2 of 4 columns")


class Model:
    """A fitted linear model with known noise."""

    n_features_in_ = 3

    def __init__(self, n_classes, names=None):
        self.classes_ = np.arange(n_classes)
        shape = (1 if n_classes == 2 else n_classes, 3)
        self.coef_ = np.arange(np.prod(shape), dtype=float).reshape(shape)
        self.coef_noise_ = 0.1 + self.coef_
        if names:
            self.feature_names_in_ = np.array(names)


def test_coefficients_of_a_fit_and_of_a_pipeline():
    model = linear().fit(pd.DataFrame(TRAIN[0], columns=list("abcd")), TRAIN[1])
    display = CoefficientDisplay.from_estimator(model)
    np.testing.assert_array_equal(display.coef, model.coef_[0])
    np.testing.assert_array_equal(display.coef_noise, model.coef_noise_[0])
    assert display.feature_names == list("abcd")
    pipe = allocate_budget(make_pipeline(DPPCA(2), linear()), 2.0).fit(*TRAIN)
    assert CoefficientDisplay.from_estimator(pipe).feature_names == ["dppca0", "dppca1"]


def test_importances_of_trees():
    """Columns of the table, and not thousands of leaves; the noise is subtracted already, so there is no band."""
    frame = pd.DataFrame(TRAIN[0], columns=list("abcd"))
    trees = DPRandomTreesClassifier(10, bounds=(-1, 1), classes=[0, 1], delta=1e-5)
    alone = trees.fit(frame, TRAIN[1])
    display = CoefficientDisplay.from_estimator(alone)
    np.testing.assert_array_equal(display.coef, alone.feature_importances_)
    assert display.feature_names == list("abcd")
    assert (display.bands_, display.note_, display.ax_.get_legend()) == (None, None, None)
    two = CoefficientDisplay.from_estimator(alone, max_features=2, feature_names=list("wxyz"))
    assert two.features_.tolist() == np.argsort(-alone.feature_importances_, kind="stable")[:2].tolist()


# --- names that somebody else wrote -----------------------------------------------------------------------------------

NAMES = ["income in $\\frac{$ ", "_hidden", "first\nsecond", "\u202e", "income " * 60]
SHOWN = [*NAMES[:2], r"first\nsecond", r"\u202e", NAMES[4][:23] + "…" + NAMES[4][-24:]]


@pytest.mark.parametrize(("name", "text"), list(zip(NAMES, SHOWN, strict=True)), ids=range(5))
def test_display_hostile_names_are_drawn_as_text(name, text):
    """Formulas are not read, invisible characters are escaped, and long names lose their middle."""
    scores = PrivacyUtilityDisplay.from_scores([0.1, 1.0], [0.5, 0.6], model_name=name, score_name=name, note=name)
    curves = TradeOffDisplay(type_1=[0, 1], type_2={name: [1, 0]}).plot()
    methods = AccountantComparisonDisplay(steps=[1, 2], epsilons={name: [1, 2]}, delta=0.1, xlabel=name).plot()
    for display, label in ((scores, "yaxis"), (curves, None), (methods, "xaxis")):
        texts = display.ax_.get_legend().get_texts()
        assert texts[-1].get_text() == text
        drawn = [*texts, getattr(display.ax_, label).label] if label else texts
        assert not any(each.get_parse_math() or each.get_usetex() for each in drawn)
        with warnings.catch_warnings(action="error"):
            display.figure_.canvas.draw()
