"""Class counts before the first step and means after the last one: their sums, what follows, and the fits."""

import itertools
import math
import warnings

import numpy as np
import pytest
from combinations import over_rows
from replay import recording
from scipy.special import expit, softmax
from sklearn.base import is_classifier
from sklearn.metrics import log_loss

import skdp._dpsgd.solver as solver_module
from skdp import AddRemove, DPLogisticRegression, DPMLPClassifier, DPMLPRegressor, PrivacyAccountant
from skdp._dpsgd.mean_correction import ENOUGH, ClassMeans, CountMean, OutcomeCounts, ScoredSum, TargetMean
from skdp._dpsgd.solver import DescentSolver
from skdp.accounting import flatten, get_epsilon
from skdp.ensemble import DPRandomTreesClassifier, DPRandomTreesRegressor, PublicTreesEmbedding
from skdp.exceptions import FitInterruptedWarning, QualityWarning
from skdp.mechanisms.bounded_sum import column_sensitivity
from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.mechanisms.sampling import sampling_at

OF_CLASSES = [ClassMeans(1), ClassMeans(3), ClassMeans(5), ClassMeans(3, are_labels=True)]
COUNTS = [OutcomeCounts(1), OutcomeCounts(3), OutcomeCounts(3, are_labels=True)]
CUT = TargetMean(-3.0, 2.0, 2.25).at_noise(0.3)
ALL = [*OF_CLASSES, *COUNTS, TargetMean(), TargetMean(-3.0, 2.0, 2.25), CUT, CountMean(4.0)]


def scores_and_targets(means, n=40, seed=0, size=1.0):
    """Scores of rows, and targets that are drawn beside them."""
    rng = np.random.default_rng(seed)
    if isinstance(means, ClassMeans | OutcomeCounts):
        scores = size * rng.normal(size=(n, means.n_outputs))
        if means.are_labels:
            return scores, rng.integers(0, 2, scores.shape).astype(np.float32)
        return scores, rng.integers(0, max(2, means.n_outputs), n)
    low = 0.0 if isinstance(means, CountMean) else -1.0
    return size * rng.normal(size=(n, 1)), rng.uniform(low, 1.0, n)


def sums_of(means, scores, values, weights=1.0):
    total = ScoredSum(means, "zero_out", lambda rows: rows)
    total.add(scores, values, weights)
    return total.vector


# --- the sums ---------------------------------------------------------------------------------------------------------


@over_rows("adjacency", ["zero_out", "replace_one"])
@over_rows("means", ALL)
def test_a_row_moves_the_sums_by_their_sensitivity_at_most(means, adjacency):
    """From the surest scores to none at all, and with any target."""
    moved, replaced = 0.0, adjacency == "replace_one"
    sensitivity = means.sensitivity(adjacency) * (2.0 if replaced else 1.0)
    rng = np.random.default_rng(1)
    edges = [
        np.where(np.arange(getattr(means, "n_outputs", 1)) == k, sign * size, 0.0)
        for k, sign, size in itertools.product(range(getattr(means, "n_outputs", 1)), (-1, 1), (50.0, 1.0, np.inf))
    ]
    edges += [*rng.normal(0, 3, (20, len(edges[0]))), np.full(len(edges[0]), np.nan), np.full(len(edges[0]), 1e300)]
    for number, (edge, weight) in enumerate(itertools.product(edges, (1.0, 0.2))):
        scores, values = scores_and_targets(means, seed=number)
        weights = rng.uniform(0, 1, len(scores))
        scores[3], weights[3] = edge, weight
        again, others, kept = scores.copy(), scores_and_targets(means, seed=number + 1)[1], weights.copy()
        others = np.where((np.arange(len(values)) == 3).reshape(-1, *[1] * (values.ndim - 1)), others, values)
        again[3], kept[3] = -edge, weight if replaced else 0.0  # whatever a null record holds
        move = np.linalg.norm(sums_of(means, scores, values, weights) - sums_of(means, again, others, kept))
        moved = max(moved, move)
        assert move <= sensitivity * (1 + 1e-9)
    assert moved > (0.5 if replaced else 0.7) * sensitivity


@over_rows("means", OF_CLASSES)
def test_a_row_of_the_surest_error_has_the_norm_of_the_sensitivity(means):
    scores = np.where(np.arange(means.n_outputs) == 0, 800.0, 0.0)[None]
    values = np.zeros(1, int) if means.n_outputs == 1 else np.ones(1, int)
    if means.are_labels:
        scores, values = np.full((1, 3), 800.0), np.zeros((1, 3))
    assert np.linalg.norm(means.vectors(scores, values)) == pytest.approx(means.row_limit)


@over_rows("means", ALL)
def test_sums_are_of_weighted_rows_however_they_come_in_blocks(means):
    scores, values = scores_and_targets(means, n=9000)
    weights = np.random.default_rng(2).uniform(0, 1, 9000)
    whole = sums_of(means, scores, values, weights)
    np.testing.assert_allclose(whole, weights @ means.vectors(scores, values), rtol=1e-9, atol=1e-9)
    one, other = (ScoredSum(means, "zero_out", lambda rows: rows) for _ in range(2))
    one.add(scores[:77], values[:77], weights[:77])
    other.add(scores[77:], values[77:], weights[77:])
    one.merge(other)
    assert one.n_rows == 9000
    np.testing.assert_allclose(one.vector, whole, rtol=1e-9, atol=1e-9)


@over_rows("counts", COUNTS)
def test_replaced_row_moves_counts_by_twice_declared_sensitivity(counts):
    """Of each label: the row of the largest change reaches it."""
    k, n_labels = counts.shape[1], counts.shape[0]
    first, other = (np.full((1, n_labels), value) for value in (0, k - 1))
    move = sums_of(counts, np.zeros((1, 1)), first) - sums_of(counts, np.zeros((1, 1)), other)
    assert np.linalg.norm(move) == pytest.approx(2.0 * column_sensitivity(n_labels, "replace_one"))


# --- the start --------------------------------------------------------------------------------------------------------


def test_start_is_log_odds_of_smoothed_counts():
    """Each class has eight standard deviations of the noise more, and one row at least; noise may hide all rows."""
    assert OutcomeCounts(1).offset(np.array([900.0, 100.0]), 10.0) == pytest.approx(np.log(180.0 / 980.0))
    assert OutcomeCounts(1).offset(np.array([900.0, -25.0]), 10.0) == pytest.approx(np.log(90.0 / 980.0))
    assert OutcomeCounts(1).offset(np.array([900.0, 0.0]), 1e-9) == pytest.approx(np.log(1.0 / 901.0))
    several = OutcomeCounts(3).offset(np.array([500.0, 300.0, 100.0]), 10.0)
    np.testing.assert_allclose(softmax(several), np.array([580.0, 380.0, 180.0]) / 1140.0)
    labels = OutcomeCounts(2, are_labels=True).offset(np.array([900.0, 100.0, 200.0, 800.0]), 10.0)
    np.testing.assert_allclose(labels, np.log([180.0 / 980.0, 880.0 / 280.0]))
    np.testing.assert_array_equal(OutcomeCounts(3).offset(np.array([5.0, 7.0, 9.0]), 1.01 * 21.0 / ENOUGH), 0.0)


# --- the step ---------------------------------------------------------------------------------------------------------


def test_a_mean_is_left_where_noise_may_have_made_the_difference():
    scores, values = np.zeros((10_000, 3)), np.repeat([0, 1, 2], [4000, 3500, 2500])
    sums = sums_of(ClassMeans(3), scores, values)
    missing = np.abs(sums[:3])
    assert np.abs(ClassMeans(3).offset(sums, 0.01)).max() > 0.2
    np.testing.assert_array_equal(ClassMeans(3).offset(sums, 2.0 * missing.max()), 0.0)


def test_the_mean_error_is_added_unless_noise_may_have_made_it():
    mean, deviation = TargetMean(largest=2.25, doubted=2.0), 10.0
    assert mean.offset(np.array([1e9, 1e8]), deviation) == pytest.approx(0.1 * 2.25)
    assert mean.offset(np.array([1e9, -1e8]), deviation) == pytest.approx(-0.1 * 2.25)
    assert mean.offset(np.array([1e9, 19.0]), deviation) == 0.0
    assert mean.offset(np.array([1e9, 0.0]), deviation) == 0.0
    assert 0.0 < mean.offset(np.array([1e9, 21.0]), deviation)[0] < 0.2 * 2.25 * 21e-9
    assert mean.offset(np.array([79.0, 70.0]), deviation) == 0.0  # too few rows
    assert mean.offset(np.array([-1e9, 1e8]), deviation) == 0.0
    assert mean.offset(np.array([81.0, 1e9]), deviation) == pytest.approx(2.25)
    of_units = TargetMean(largest=2.25, doubted=1.0)
    assert of_units.offset(np.array([1e9, 20.0]), deviation) == pytest.approx(2.25e-9 * 15.0)


# --- fits -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [DPRandomTreesRegressor, DPMLPRegressor])
def test_fit_cuts_errors_by_noise_and_public_rows(make, monkeypatch):
    rng, found, offset = np.random.default_rng(0), [], TargetMean.offset
    X = rng.uniform(-1.0, 1.0, (900, 2))
    own = {"bounds": (-1, 1)} if make is DPRandomTreesRegressor else {}

    def noted(means, sums, deviation):
        found.append((means, deviation))
        return offset(means, sums, deviation)

    monkeypatch.setattr(TargetMean, "offset", noted)
    make(**own, y_bounds=(-1, 1), adjacency=AddRemove(1000), max_iter=3, delta=1e-5).fit(X, X[:, 0])
    ((means, deviation),) = found
    assert means.largest == TargetMean().at_noise(deviation / 1000).largest < 2.0


def classes_of(n=6000, n_classes=3, seed=0):
    """Rows of which one class in a few is rare."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 3))
    scores = X @ rng.normal(0, 2.0, (3, n_classes)) - np.arange(n_classes) * 1.2
    return X, (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)


def linear(**own):
    return DPLogisticRegression(**{"classes": range(3), "delta": 1e-5, "max_iter": 20, **own})


def network(**own):
    return DPMLPClassifier(
        **{"hidden_layer_sizes": (5,), "classes": range(3), "delta": 1e-5, "max_iter": 3, "sampling_rate": 0.2, **own}
    )


def trees(**own):
    shape = {"n_estimators": 10, "bounds": (-1, 1)}
    return DPRandomTreesClassifier(**{**shape, "classes": range(3), "delta": 1e-5, "max_iter": 20, **own})


def network_of_two(**own):
    return network(**{"classes": [0, 1], **own})


KINDS = [linear, network, trees]
STARTS = {linear: 3, network_of_two: 2, trees: 3}  # networks of several classes that are named start at equal scores

INTERRUPTED = {
    "rows": ({}, lambda X, y: {}),
    "groups": ({}, lambda X, y: {"groups": np.arange(len(y)) // 2}),
    "weights": ({"weight_bound": 2.0}, lambda X, y: {"sample_weight": np.linspace(0, 2, len(y))}),
}


@over_rows("make", KINDS)
def test_sums_are_of_the_published_model_and_priced(make):
    """Without what they estimated, the intercepts are those of the last step, whose means the sums are of."""
    X, y = classes_of(900)
    model = make(random_state=0, epsilon=8.0)
    with recording([]) as seen, pytest.MonkeyPatch.context() as patch:
        patch.setattr(DescentSolver, "moved", lambda *given: {})
        patch.setattr(type(model._solver(model._target(), 3)), "moved", lambda *given: {})
        model.fit(X, y)
    sampling, means = sampling_at(model.sampling_rate_), ClassMeans(3)
    cost = model._solver(model._target(), 3).beside_steps(sampling, model.n_steps_)["offset"]
    mechanism = GaussianMechanism(cost * model.noise_multiplier_, means.row_limit)
    assert flatten(model.privacy_event_)[mechanism.event] == 1 + (make in STARTS)  # class counts have as much
    assert seen[-1].sensitivity == means.row_limit
    expected = means.vectors(np.log(model.predict_proba(X).astype(float)), y).sum(axis=0)
    np.testing.assert_allclose(seen[-1].exact, expected, rtol=1e-4, atol=1e-3)
    corrected = make(random_state=0, epsilon=8.0).fit(X, y)
    names = "intercepts_" if make is network else "intercept_"
    found, plain = (
        np.asarray(getattr(each, names)[-1] if make is network else each.intercept_) for each in (corrected, model)
    )
    np.testing.assert_allclose(
        found - plain, means.offset(seen[-1].noisy, mechanism.standard_deviation), rtol=1e-4, atol=1e-6
    )
    assert corrected.epsilon_ == get_epsilon(corrected.privacy_event_, 1e-5) <= 8.0


def start_of(model):
    """The scores at which a run of no step starts."""
    return model.intercepts_[-1] if hasattr(model, "intercepts_") else model.intercept_


def without_steps(patch):
    """Let runs make no step, and have no correction."""
    patch.setattr(solver_module, "run_dpsgd", lambda model, plan, optimizer, theta, *given, **named: (theta, 0))
    patch.setattr(DescentSolver, "corrected", lambda *given: {})


@pytest.mark.parametrize(("make", "rows"), [(linear, "groups"), (network_of_two, "weights"), (trees, "rows")])
def test_run_starts_at_released_class_counts(make, rows, monkeypatch):
    """Counts of weighted rows, of which those of a group add 1 at most; the scores are those of the published model."""
    X, y = classes_of(900, k := STARTS[make])
    own, given = INTERRUPTED[rows]
    without_steps(monkeypatch)
    with recording([]) as seen:
        model = make(random_state=0, epsilon=8.0, **own).fit(X, y, **given(X, y))
    released = next(each for each in seen if len(each.exact) == k)
    expected = np.bincount(y, given(X, y).get("sample_weight", np.full(900, 2.0)) / 2.0)
    if rows == "groups":
        sums = np.array([np.bincount(pair, minlength=k) for pair in y.reshape(-1, 2)])
        expected = (sums / np.linalg.norm(sums, axis=1, keepdims=True)).sum(axis=0)
    np.testing.assert_allclose(released.exact, expected, rtol=1e-6)
    estimated = model._solver(model._target(), 3).beside_steps(
        sampling_at(model.sampling_rate_), 15 if make is network_of_two else 20
    )
    mechanism = GaussianMechanism(estimated["class counts"] * model.noise_multiplier_, 1.0)
    assert released.sensitivity == mechanism.sensitivity
    np.testing.assert_allclose(
        start_of(model),
        OutcomeCounts(1 if k == 2 else k).offset(released.noisy, mechanism.standard_deviation),
        rtol=1e-5,
        atol=1e-6,
    )


@over_rows("adjacency", ["zero_out", "replace_one"])
def test_counts_of_labels_have_sensitivity_of_adjacency(adjacency):
    rng = np.random.default_rng(0)
    X, Y = rng.uniform(-1.0, 1.0, (500, 3)), rng.integers(0, 2, (500, 3))
    model = DPMLPClassifier((5,), delta=1e-5, max_iter=1, random_state=0, adjacency=adjacency)
    with recording([]) as seen:
        model.fit(X, Y)
    assert seen[0].sensitivity == pytest.approx(math.sqrt(3.0 / (2.0 if adjacency == "replace_one" else 1.0)))
    np.testing.assert_array_equal(seen[0].exact, np.stack([500 - Y.sum(axis=0), Y.sum(axis=0)], axis=1).ravel())


def test_rows_of_another_form_are_not_counted():
    X, y = classes_of(400, n_classes=2)
    rows = PublicTreesEmbedding(5, bounds=(-1, 1)).fit_transform(X)
    rows[7] = 0.5 * rows[7]
    with recording([]) as seen:
        DPLogisticRegression(classes=[0, 1], delta=1e-5, max_iter=2, random_state=0).fit(rows, y)
    np.testing.assert_array_equal(seen[0].exact, np.bincount(np.delete(y, 7)))


def test_rare_class_is_named_after_fit():
    """The noise is 37 rows at epsilon 1. 120 rows of a class times epsilon .3 are too few, 12,000 are enough."""
    X, y = classes_of(20_000, n_classes=2)
    y = np.where(np.arange(20_000) < 120, y, 0)
    with pytest.warns(QualityWarning, match=r"^Classes 'b' are not distinguishable from the noise: at least 167 rows"):
        linear(classes=["a", "b"], epsilon=0.3, random_state=0).fit(X, np.array(["a", "b"])[y])
    with warnings.catch_warnings(action="error", category=QualityWarning):
        linear(classes=["a", "b"], epsilon=1.0).fit(X, np.where(X[:, 0] > 0, "a", "b"))


def test_rare_class_keeps_its_prevalence():
    """Without the start a class of 1% has a log loss above that of a constant, and a tenth of its prevalence."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (30_000, 3))
    y = (rng.random(30_000) < expit(1.5 * X[:, 0] - 5.0)).astype(int)
    found = linear(classes=[0, 1], epsilon=4.0, random_state=0).fit(X, y).predict_proba(X)[:, 1]
    constant = log_loss(y, np.full(30_000, y.mean()))
    assert log_loss(y, found) < 0.99 * constant
    assert 0.85 < found.mean() / y.mean() < 1.15


@over_rows("make", KINDS)
def test_mean_probabilities_match_weighted_prevalence(make):
    """`class_weight` and `sample_weight` alike: the target of the weighted loss."""
    X, y = classes_of(10_000)
    factors, weights = np.array([0.3, 1.0, 0.8]), np.where(X[:, 0] > 0, 4.0, 1.0)
    own = {"epsilon": 100.0, "random_state": 0, "max_grad_norm": 0.1, "weight_bound": 4.0}  # noise hides nothing
    own |= {"class_weight": dict(enumerate(factors))}
    each = weights * factors[y]
    expected = np.bincount(y, each) / each.sum()

    def errors():
        found = make(**own).fit(X, y, sample_weight=weights).predict_proba(X)
        return np.abs(each @ found / each.sum() / expected - 1.0).max()

    assert errors() < 0.05
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DescentSolver, "corrected", lambda *given: {})
        assert errors() > 0.05


@over_rows("loss", ["squared_error", "poisson"])
def test_the_mean_of_a_network_is_that_of_its_targets(loss):
    """Skewed targets, of which the clip cuts the tail."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (20_000, 3))
    y = rng.poisson(np.exp(0.5 + X[:, 0] + 0.8 * X[:, 1] ** 2)).astype(float)
    own = {"loss": loss, "y_bounds": (0, 40), "epsilon": 100.0, "delta": 1e-5, "max_iter": 3, "random_state": 0}
    found = DPMLPRegressor((5,), max_grad_norm=0.02, **own).fit(X, y).predict(X)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DescentSolver, "corrected", lambda *given: {})
        plain = DPMLPRegressor((5,), max_grad_norm=0.02, **own).fit(X, y).predict(X)
    assert 0.5 * abs(plain.mean() - y.mean()) > abs(found.mean() - y.mean())
    assert abs(plain.mean() - y.mean()) > 0.05 * y.std()


@over_rows(
    ("model", "estimated"),
    [
        (linear(), True),
        (linear(fit_intercept=False), False),
        (trees(fit_intercept=False), False),
        (network(), True),
        (network_of_two(), True),
        (network(classes=None), True),
        (DPMLPRegressor(loss="huber", y_bounds=(0, 1)), False),
        (DPMLPRegressor(loss="poisson", y_bounds=(0, 3)), True),
        (DPMLPRegressor(y_bounds=(0, 1)), True),
    ],
)
def test_means_are_estimated_where_an_intercept_and_the_loss_fit_them(model, estimated):
    found = model._solver(model._target(), 3).beside_steps(sampling_at(0.5), 10)
    starts = (
        estimated and is_classifier(model) and not (isinstance(model, DPMLPClassifier) and model.classes == range(3))
    )
    of_trees = ["people"] if isinstance(model, DPRandomTreesClassifier) else []
    assert list(found) == ["class counts"] * starts + ["offset"] * estimated + of_trees
    for each in list(found.values())[: 2 * starts or estimated]:
        sigma = each * 2.0
        assert sigma**-2 / (sigma**-2 + 10 * (0.5 / 2.0) ** 2) == pytest.approx(0.01 if starts else 0.02)
    later = model._solver(model._target(), 3, anew=False).beside_steps(sampling_at(0.5), 10)
    assert list(later) == ["offset"] * estimated
    if estimated:
        assert later["offset"] == pytest.approx(math.sqrt(0.98 / 0.02 / 10) / 0.5)


def interrupt_once(patch, owner, name, call=1):
    """Let Ctrl-C come at one call of a function, which does its work in all others."""
    whole, calls = getattr(owner, name), []

    def interrupted(*given, **named):
        calls.append(given)
        if len(calls) == call:
            raise KeyboardInterrupt
        return whole(*given, **named)

    patch.setattr(owner, name, interrupted)


@pytest.mark.parametrize(("make", "rows"), [(linear, "weights"), (network, "groups")])
def test_interrupt_in_correction_keeps_uncorrected_model(make, rows, tmp_path, monkeypatch):
    """Until the run resumes, with the same noise."""
    X, y = classes_of(900)
    own, given = INTERRUPTED[rows]
    accountant = PrivacyAccountant(unit="person" if rows == "groups" else "row")
    model = make(random_state=0, accountant=accountant, checkpoint=tmp_path / "run", **own)
    plain, whole = make(random_state=0, **own), make(random_state=0, **own).fit(X, y, **given(X, y))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DescentSolver, "corrected", lambda *given: {})
        plain.fit(X, y, **given(X, y))
    interrupt_once(monkeypatch, ScoredSum, "add", call=1 + (make in STARTS))
    with pytest.warns(
        FitInterruptedWarning, match="before the correction of the mean. The model up to this point is kept"
    ):
        model.fit(X, y, **given(X, y))
    np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))
    assert (model.n_steps_, model.epsilon_) == (plain.n_steps_, plain.epsilon_)
    assert accountant.get_epsilon(1e-5) == pytest.approx(model.epsilon_)
    model.fit(X, y, **given(X, y))
    np.testing.assert_allclose(model.predict_proba(X), whole.predict_proba(X), rtol=1e-6)
    assert len(accountant.history) == 1


@pytest.mark.parametrize(
    ("make", "when"), [(linear, "in counts"), (network_of_two, "after counts"), (trees, "before steps")]
)
def test_run_stopped_at_start_resumes_with_one_release_of_counts(make, when, tmp_path, monkeypatch):
    """The file was begun before the charge, with the parameters of a start at equal scores."""
    X, y = classes_of(900, k := STARTS[make])
    accountant, whole = PrivacyAccountant(), make(random_state=0).fit(X, y)
    model = make(random_state=0, checkpoint=tmp_path / "run", accountant=accountant, warm_start=True)
    owner, name = {
        "in counts": (ScoredSum, "add"),
        "after counts": (OutcomeCounts, "offset"),
        "before steps": (DescentSolver, "bind"),
    }[when]
    with recording([]) as seen:
        with pytest.MonkeyPatch.context() as patch:
            interrupt_once(patch, owner, name)
            if when == "before steps":
                with pytest.warns(FitInterruptedWarning, match="after 0 of"):
                    model.fit(X, y)
            else:
                with pytest.raises(KeyboardInterrupt):
                    model.fit(X, y)
        model.fit(X, y)
    assert len(accountant.history) == 1
    assert sum(len(each.exact) == k for each in seen) == 1
    assert sum(flatten(model.privacy_event_).values()) == len(seen)
    np.testing.assert_allclose(model.predict_proba(X), whole.predict_proba(X), rtol=1e-6)
