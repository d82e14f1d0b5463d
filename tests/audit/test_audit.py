"""What audits say, reject and leave alone."""

import contextlib
import json
import math
import threading
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy import stats
from scipy.stats import kstest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import skdp
from skdp import (
    DPPCA,
    AddRemove,
    DPCalibratedClassifier,
    DPGaussianNB,
    DPGridSearchCV,
    DPKMeans,
    DPLogisticRegression,
    DPRandomizedSearchCV,
    DPRidge,
    DPStandardScaler,
    PrivacyAccountant,
    allocate_budget,
)
from skdp.accounting import (
    DiscreteGaussianDpEvent,
    DiscreteLaplaceDpEvent,
    GaussianDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
    calibrate_noise_multiplier,
    compose,
    get_epsilon,
)
from skdp.audit import audit_estimator, check_release_noise, check_sampling, one_run_epsilon, replay
from skdp.audit.checks import _dispersion, _pairs
from skdp.audit.one_run import Likelihoods
from skdp.audit.replay import event_of, least_delta, least_epsilon, shifts_of, views_of
from skdp.audit.subjects import AuditError, Subject, parts_of
from skdp.audit.worst_case import worst_case
from skdp.base.fit import begin
from skdp.exceptions import PrivacyLeakWarning
from skdp.mechanisms import DiscreteGaussianMechanism, DiscreteLaplaceMechanism, GaussianMechanism
from skdp.mechanisms.discrete_noise import discrete_gaussian, discrete_laplace
from skdp.mechanisms.release_log import RecordedLot, RecordedRelease, Transcript, running
from skdp.mechanisms.sampling import PoissonSampling
from skdp.mechanisms.streams import SecretStream
from skdp.model_selection.whole_fit import PartRows
from skdp.plotting import TradeOffDisplay
from skdp.statistics.describer import TableDescriber

SECONDS = 600.0  # never the limit
RIDGE = {"y_bounds": (-1, 1)}
X = np.random.default_rng(0).uniform(-1, 1, (120, 3))


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("skdp.audit.replay._ENOUGH", 20_000)
    monkeypatch.setattr("skdp.audit.replay._PATIENCE", SECONDS)  # however busy the machine is


def logistic(**parameters):
    return DPLogisticRegression(classes=[0, 1], **parameters)


OF_20 = FrozenEstimator(LogisticRegression().fit(np.vstack([np.eye(20), -np.eye(20)]), [0] * 20 + [1] * 20))
EXCHANGE = {"adjacency": "replace_one"}
ESTIMATORS = {
    "naive Bayes": lambda: DPGaussianNB(classes=[0, 1], bounds=(-1, 1)),
    "naive Bayes, epsilon 8": lambda: DPGaussianNB(classes=[0, 1], bounds=(-1, 1), epsilon=8.0),
    "ridge": lambda: DPRidge(**RIDGE),
    "components": lambda: DPPCA(2),
    "components, add_remove": lambda: DPPCA(2, adjacency=AddRemove(4000)),
    "components, replace_one": lambda: DPPCA(2, **EXCHANGE),
    "estimated bounds": lambda: DPStandardScaler(),
    "scaler, replace_one": lambda: DPStandardScaler(bounds=(-1, 1), **EXCHANGE),
    "merged rows, lots": lambda: logistic(merge_equal_rows=True, sampling_rate=0.1, max_iter=5),
    "lots, replace_one": lambda: logistic(sampling_rate=0.05, max_iter=5, **EXCHANGE),
    "calibrated, replace_one": lambda: DPCalibratedClassifier(OF_20, **EXCHANGE),
    "search, replace_one": lambda: DPGridSearchCV(
        logistic(max_iter=50, sampling_rate=1.0, **EXCHANGE), {"alpha": [0.0, 0.1]}, strategy="compose"
    ),
}


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_a_claim_is_nearly_reached_and_never_exceeded(kind):
    """.90 with 20,000 normals, whose scale is known to 2.4 percent at the level 1e-6."""
    audit = audit_estimator(ESTIMATORS[kind](), max_seconds=SECONDS)
    assert not audit.findings
    adjacency = next((each for each in ("add_remove", "replace_one") if each in kind), "add_remove")
    assert audit.adjacency == adjacency
    assert 0.9 < audit.epsilon_lower_bound / audit.epsilon_claimed <= 1.0


ELSEWHERE = FrozenEstimator(LogisticRegression().fit(np.vstack([np.eye(4), -np.eye(4)]), [0] * 4 + [1] * 4))


def test_counts_with_noise_in_whole_numbers(monkeypatch):
    """One record adds 1 to one count: its cost is that of the release."""
    rows = np.random.default_rng(0).uniform(-1, 1, (400, 4))
    model = DPCalibratedClassifier(ELSEWHERE, epsilon=1.0)
    with pytest.warns(PrivacyLeakWarning, match="public"):
        audit = audit_estimator(model, rows, (rows[:, 0] > 0).astype(int), max_seconds=SECONDS)
    assert not audit.findings
    assert 0.95 < audit.epsilon_lower_bound <= 1.0
    monkeypatch.setattr("skdp.audit.replay._ENOUGH", 2_000)  # half of the noise shows in few numbers
    monkeypatch.setattr(
        "skdp.mechanisms.discrete_noise.discrete_laplace",
        lambda stream, size, scale: discrete_laplace(stream, size, scale / 2),
    )
    with pytest.warns(PrivacyLeakWarning, match="public"):
        audit = audit_estimator(model, rows, (rows[:, 0] > 0).astype(int), max_seconds=SECONDS)
    assert {each.kind for each in audit.findings} >= {"noise"}


def test_numbers_that_are_added_again_elsewhere_are_heard():
    drawn = np.random.default_rng(0).normal(size=60)
    assert check_release_noise([drawn[:20], drawn[20:45], drawn[45:]]) == []
    for again in (drawn[:12], drawn[13:20]):  # of another length, and at another distance
        (found,) = check_release_noise([drawn[:20], drawn[20:45], again])
        assert "same noise values occur" in str(found)


@pytest.mark.parametrize(("n_rows", "n_lots", "rate"), [(300, 40, 1e-3), (1, 30, 0.5), (30, 5, 0.999)])
def test_few_rows_in_lots_are_no_finding(n_rows, n_lots, rate):
    """That no row is in two lots, nor beside another one, tells nothing where it hardly ever is."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        lots = [np.flatnonzero(rng.random(n_rows) < rate) for _ in range(n_lots)]
        assert check_sampling(lots, n_rows, rate) == []


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_honest_lots_are_found_no_more_often_than_the_level_says(rate):
    """All tables of 3 lines of 4, each with its probability, at a level that some of them reach."""
    level = 0.2
    tables = (np.arange(2**12)[:, None] >> np.arange(12) & 1).reshape(-1, 3, 4)
    chances = np.prod(np.where(tables == 1, rate, 1.0 - rate), axis=(1, 2))
    pairs, sums = (tables[:, :, 1:] & tables[:, :, :-1]).sum(axis=(1, 2)), np.sort(tables.sum(axis=2), axis=1)
    of_pairs = {k: bool(_pairs(k, 4, 3, rate, level, "")) for k in np.unique(pairs)}
    of_sums = {tuple(each): bool(_dispersion(each, 4, rate, level, "", "")) for each in np.unique(sums, axis=0)}
    for found in ([of_pairs[k] for k in pairs], [of_sums[tuple(each)] for each in sums]):
        assert 0.0 < chances[found].sum() <= level


def test_counts_that_repeat_are_independent():
    """Of noise that is 0 nearly always the same counts are released again and again."""
    transcript = Transcript(0)
    with running(transcript):
        stream = SecretStream.from_random_state(None, "test")
    for _ in range(100):
        DiscreteLaplaceMechanism.for_epsilon(8.0).release(np.zeros(40, np.int64), stream)
    (track,) = transcript.tracks
    assert len({release.noisy.tobytes() for release in track.releases}) < 50
    assert check_release_noise([release.noise for release in track.releases]) == []


def test_the_worst_table_of_clusters_moves_every_release_by_its_sensitivity():
    model = DPKMeans(3, bounds=(-1, 1))
    tables = worst_case(model)
    subject = Subject(model, tables)
    without = subject.fit(None, 0)
    ((moves,),) = views_of([shifts_of(without, subject.fit(tables.canaries[0], 0, without.transcript))], without)
    assert np.max(moves) <= 1.0 + 1e-6
    assert np.mean(moves**2) > 0.97


def test_equal_rows_are_merged_in_all_fits_or_in_none(monkeypatch):
    """A lot of 4,096 rows of 4,500 is merged, and one row less leaves it below that."""
    monkeypatch.setattr("skdp.audit.replay._LOTS", 20)
    monkeypatch.setattr("skdp.audit.replay._ENOUGH", 2_000)
    rows = np.where(np.arange(4500)[:, None] % 2 == 0, 1.0, -1.0) * np.ones((1, 4))
    model = DPLogisticRegression(classes=[0, 1], lot_size=4096, max_iter=5)
    audit = audit_estimator(model, rows, np.arange(4500) % 2, canary=(rows[1:2], [0]), max_seconds=SECONDS)
    assert not audit.findings
    assert 0.8 < audit.epsilon_lower_bound / audit.epsilon_claimed <= 1.0


def test_each_step_of_a_pipeline_is_set_beside_its_own_claim():
    model = allocate_budget(make_pipeline(DPPCA(2), DPLogisticRegression(classes=[0, 1], max_iter=20)), epsilon=2.0)
    audit = audit_estimator(model, max_seconds=SECONDS)
    assert not audit.findings
    assert list(audit.steps) == ["dppca", "dplogisticregression"]
    assert all(0.9 < bound / claim <= 1.0 for bound, claim in audit.steps.values())


def test_tries_scores_and_refit_of_a_search():
    model = DPLogisticRegression(classes=[0, 1], max_iter=5)
    search = DPGridSearchCV(model, {"max_grad_norm": [0.05, 0.1]}, epsilon=2.0, strategy="compose")
    audit = audit_estimator(search, max_seconds=SECONDS)
    assert not audit.findings
    assert list(audit.steps) == ["all trials", "scores", "refit"]
    assert all(0.9 < bound / claim <= 1.0 for bound, claim in audit.steps.values())


def test_what_a_search_of_pipelines_rehearses_is_no_try():
    """Steps are fitted to made-up rows before the charge: what that releases is of no try."""
    model = DPLogisticRegression(classes=[0, 1], max_iter=2)
    steps = allocate_budget(make_pipeline(DPStandardScaler(bounds=(-1, 1)), DPPCA(2), model), epsilon=2.0)
    search = DPGridSearchCV(steps, {"dppca__n_components": [2, 3]}, epsilon=2.0, strategy="compose")
    fitted = Subject(search, worst_case(search)).fit(None, 0)
    parts = {each.name: each.tracks for each in parts_of(fitted).parts}
    assert parts == {"all trials": (1, 2, 3, 4, 5, 6), "scores": (0,), "refit": (7, 8, 9)}


def test_each_score_of_a_hidden_number_of_tries_is_set_beside_the_claim_of_one(monkeypatch):
    """With this seed a trajectory has several trials, whose scores together cost more than one of them may."""
    monkeypatch.setattr("skdp.audit.replay._ENOUGH", 2_000)
    model = DPLogisticRegression(classes=[0, 1], max_iter=5)
    search = DPRandomizedSearchCV(model, {"max_grad_norm": [0.05, 0.1]}, n_iter=2, epsilon=2.0)
    audit = audit_estimator(search, max_seconds=SECONDS, random_state=29_000)
    assert not audit.findings
    bound, claim = audit.steps["scores"]
    assert 0.5 < bound / claim <= 1.0


GIVEN = {
    "a target that contradicts": ("zero_out", {"canary": "contradict"}),
    "a row and a target": ("zero_out", {"canary": (np.ones(3), 1.0)}),
    "a unit of several rows": ("zero_out", {"canary": 4, "groups": np.arange(len(X)) // 3}),
    "two rows and two targets": ("replace_one", {"canary": (np.array([np.ones(3), -np.ones(3)]), [1.0, -1.0])}),
    "the same row with another target": ("replace_one", {"canary": "contradict"}),
}


@pytest.fixture
def few_normals(monkeypatch):
    """Enough where nothing is said of how near the bound is to the claim."""
    monkeypatch.setattr("skdp.audit.replay._ENOUGH", 2_000)


@pytest.mark.usefixtures("few_normals")
@pytest.mark.parametrize("case", GIVEN)
def test_rows_of_the_user_are_a_leak(case):
    adjacency, given = GIVEN[case]
    model = DPRidge(**RIDGE, adjacency=adjacency)
    with pytest.warns(PrivacyLeakWarning, match="X and y are read without being accounted for"):
        audit = audit_estimator(model, X, X[:, 0], max_seconds=SECONDS, **given)
    assert not audit.findings
    assert 0.0 < audit.epsilon_lower_bound <= audit.epsilon_claimed
    with skdp.config_context(on_leak="raise"), pytest.raises(PrivacyLeakWarning):
        audit_estimator(model, X, X[:, 0], **given)


@pytest.mark.usefixtures("few_normals")
def test_a_sparse_row_of_a_sparse_table_is_a_canary():
    model = DPLogisticRegression(classes=[0, 1], max_iter=5, sampling_rate=1.0, epsilon=1.0)
    given = {"X": X, "y": (X[:, 0] > 0).astype(int), "max_seconds": SECONDS}
    dense = audit_estimator(model, canary=(X[:1], 1), **given)
    sparse = audit_estimator(model, canary=(sp.csr_matrix(X[:1]), 1), **given | {"X": sp.csr_matrix(X)})
    assert not sparse.findings
    assert sparse.epsilon_lower_bound == pytest.approx(dense.epsilon_lower_bound, rel=0.05)


def test_one_unit_takes_the_place_of_another():
    rows, homes = np.where(np.arange(120)[:, None] % 6 < 3, 1.0, -1.0) * np.ones((1, 3)), np.repeat(np.arange(40), 3)
    model, labels = DPGaussianNB(classes=[0, 1], bounds=(-1, 1), adjacency="replace_one"), np.zeros(120, int)
    audit = audit_estimator(model, rows, labels, groups=homes, canary=(4, 8), max_seconds=SECONDS)
    assert not audit.findings
    assert 0.9 < audit.epsilon_lower_bound <= audit.epsilon_claimed
    with pytest.raises(ValueError, match="rows of two different groups"):
        audit_estimator(model, rows, labels, groups=homes, canary=(3, 4))


@pytest.mark.usefixtures("few_normals")
def test_nobody_is_charged_and_nothing_is_changed():
    ledger = PrivacyAccountant(3.0, 1e-5)
    model = DPRidge(**RIDGE, accountant=ledger)
    audit_estimator(model, max_seconds=SECONDS)
    assert not ledger.history
    assert not hasattr(model, "coef_")


@pytest.mark.usefixtures("few_normals")
def test_figures_as_text_html_json_and_display():
    audit = audit_estimator(DPRidge(**RIDGE), max_seconds=SECONDS)
    assert "the attack (replay) shows epsilon >=" in str(audit)
    assert "no violation of the claims was found" in audit._repr_html_()
    plain = json.loads(audit.to_json())
    assert plain["epsilon_lower_bound"] == audit.epsilon_lower_bound
    assert plain["findings"] == []
    audit.raise_if_violated()
    display = TradeOffDisplay.from_audit(audit)
    claimed, seen = (np.array(display.type_2[name]) for name in ("claimed", "detected by the audit"))
    assert (seen >= claimed - 1e-9).all()
    assert len(display.ax_.lines) == 3


def one_run_of(rows, labels, canary="contradict", **parameters):
    model = DPLogisticRegression(classes=[0, 1], **parameters)
    return audit_estimator(model, rows, labels, canary=canary, method="one_run")


REJECTED = {
    "no private estimator": (lambda: audit_estimator(LogisticRegression()), "instance of a private estimator"),
    "removed method": (lambda: audit_estimator(DPRidge(), method="many_runs"), "Use 'replay', or 'one_run'"),
    "confidence": (lambda: audit_estimator(DPRidge(), confidence=1.0), "`confidence` must be"),
    "max_seconds": (lambda: audit_estimator(DPRidge(**RIDGE), max_seconds=1e-9), "shorter than one fit"),
    "y alone": (lambda: audit_estimator(DPRidge(), y=[1.0]), "require"),
    "canary of another width": (
        lambda: audit_estimator(DPRidge(), X, X[:, 0], canary=(X[0, :2], 1.0)), "`canary` must be a row"
    ),
    "canary without a target": (lambda: audit_estimator(DPRidge(), X, X[:, 0], canary=X[0]), "without a target"),
    "two canaries with one target": (lambda: audit_estimator(DPRidge(), X, X[:, 0], canary=(X[:2], 1.0)), "or two"),
    "canary that is no row": (lambda: audit_estimator(DPRidge(), X, X[:, 0], canary=500), "row number .*, got 500"),
    "one target": (lambda: audit_estimator(DPRidge(), X, np.ones(120)), "only one target value"),
    "one run of another kind": (lambda: audit_estimator(DPRidge(), method="one_run"), "got DPRidge"),
    "one canary in the place of none": (
        lambda: audit_estimator(DPRidge(**RIDGE, adjacency="replace_one"), X, X[:, 0], canary=3), "X has only one"
    ),
    "one run of a list": (lambda: one_run_of([[1.0], [np.nan]], [0, 1]), "contains NaN"),
    "one run without targets": (lambda: one_run_of(X, None), "requires y to be passed"),
    "one run of few targets": (lambda: one_run_of(X, [0, 1]), "inconsistent numbers of samples"),
    "one run with a canary": (lambda: one_run_of(X, X[:, 0] > 0, canary=3), "generates its own"),
    "one run of a private number of rows": (
        lambda: one_run_of(X, X[:, 0] > 0, adjacency="add_remove"), "AddRemove"
    ),
    "few scores": (lambda: one_run_epsilon([True], [1.0], 1e-5), "one entry per canary"),
}  # fmt: skip


@pytest.mark.parametrize("case", REJECTED)
def test_bad_input_is_rejected_in_one_line(case):
    call, said = REJECTED[case]
    with pytest.raises((TypeError, ValueError), match=said) as rejection:
        call()
    assert "\n" not in str(rejection.value)


class Silent(DPRidge):
    """An estimator that charges and never releases."""

    def fit(self, X, y):
        fit = begin(self, X)
        fit.plan()
        fit.charge()
        fit.spawn("unused")
        return fit.publish(**self.told(X))

    def told(self, X):
        return {}


class Counting(Silent):
    """One that publishes the number of rows."""

    def told(self, X):
        return {"n_rows_": len(X)}


def test_an_estimator_that_never_releases_has_no_bound():
    with pytest.raises(ValueError, match="releases nothing through a mechanism"):
        audit_estimator(Silent(**RIDGE))
    with pytest.raises(ValueError, match="releases nothing through a mechanism"):  # the number of rows is public
        audit_estimator(Counting(**RIDGE, adjacency="replace_one"))


class Dearer(DPRidge):
    """One that takes its epsilon for half of it."""

    def fit(self, X, y):
        self.set_params(epsilon=2.0 * self.epsilon)
        super().fit(X, y)
        return self.set_params(epsilon=self.epsilon / 2.0)


def test_more_than_epsilon_is_found():
    audit = audit_estimator(Dearer(**RIDGE))
    assert [str(each) for each in audit.findings] == ["charge: 2 is charged, but epsilon=1 was set."]


class Elsewhere(Silent):
    """One whose noise no audit records."""

    def told(self, X):
        return {"total_": np.random.default_rng().normal() + len(X)}


def test_what_depends_on_a_record_without_a_release_is_found():
    audit = audit_estimator(Counting(**RIDGE))
    assert [each.kind for each in audit.findings] == ["post-processing"]
    assert audit.epsilon_lower_bound == 0.0
    with pytest.raises(AuditError):
        audit.raise_if_violated()
    with pytest.raises(ValueError, match="releases nothing through a mechanism"):
        audit_estimator(Elsewhere(**RIDGE))


# --- the transcript ---


def test_no_stream_is_heard_but_those_of_an_audit():
    before, transcript = SecretStream.from_random_state(0, "test"), Transcript(0)
    with running(transcript):
        recorded = SecretStream.from_random_state(None, "test")
        child = []
        thread = threading.Thread(
            target=lambda: child.append((recorded.spawn("x"), SecretStream.from_random_state(None, "test")))
        )
        thread.start()
        thread.join()
        GaussianMechanism(1.0, 1.0).release(np.zeros(3), before)
    after = SecretStream.from_random_state(None, "test")
    assert [stream.track for stream in (before, after, child[0][1])] == [None] * 3
    assert recorded.track is child[0][0].track is transcript.tracks[0]
    assert not transcript.tracks[0].releases


def test_lots_that_are_drawn_ahead_go_with_their_releases():
    transcript = Transcript(0)
    with running(transcript):
        stream = SecretStream.from_random_state(None, "test")
        for rate in (0.3, 0.2):
            PoissonSampling(rate).rows(100, stream.spawn(str(rate)))
        for _ in range(3):
            GaussianMechanism(1.0, 1.0).release(np.zeros(3), stream)
    assert [each.lot and each.lot.rate for each in transcript.tracks[0].releases] == [0.3, 0.2, None]


def test_keys_are_secret_but_those_of_an_audit():
    def words():
        return SecretStream.from_random_state(None, "test").words(4).tolist()

    def on(transcript):
        with running(transcript):
            return [words(), words()]

    assert on(Transcript(0)) == on(Transcript(0)) != on(Transcript(1))
    assert len({tuple(each) for seed in (0, None, None) for each in on(Transcript(seed))}) == 6
    assert words() not in on(Transcript(0))
    with contextlib.suppress(KeyError), running(Transcript(0)):
        raise KeyError
    assert SecretStream.from_random_state(None, "test").track is None


def test_a_tape_changes_no_number_of_a_seeded_fit():
    rows, y = X, (X[:, 0] > 0).astype(int)
    fit = {"classes": [0, 1], "sampling_rate": 0.3, "max_iter": 3, "random_state": 0}
    with pytest.warns(PrivacyLeakWarning):
        plain = DPLogisticRegression(**fit).fit(rows, y)
    with running(Transcript(5)), pytest.warns(PrivacyLeakWarning):
        recorded = DPLogisticRegression(**fit).fit(rows, y)
    np.testing.assert_array_equal(plain.coef_, recorded.coef_)


@pytest.mark.parametrize(
    "mechanism", [GaussianMechanism(1.0, 1.0), DiscreteLaplaceMechanism(Fraction(5)), DiscreteGaussianMechanism(5.0)]
)
def test_a_forced_release_is_that_of_the_earlier_fit(mechanism):
    transcripts, found = [Transcript(0)], []
    transcripts.append(Transcript(0, transcripts[0]))
    for transcript, value in zip(transcripts, ([3, 4], [3, 5]), strict=True):
        with running(transcript):
            found.append(mechanism.release(np.array(value), SecretStream.from_random_state(None, "test")))
    np.testing.assert_array_equal(*found)
    np.testing.assert_array_equal(transcripts[1].tracks[0].releases[0].exact, [3, 5])


# --- the cost of counts ---


def bound_of_counts(move, delta, lot=None):
    """What the replay makes of counts with discrete Laplace noise of scale 1 and sensitivity 2 that move so far."""
    releases = [RecordedRelease(np.zeros(2), np.zeros(2), 0.5, 2.0, lot, norm_order=1, is_whole=True)]
    fitted = SimpleNamespace(tracks=[SimpleNamespace(releases=releases)], model=SimpleNamespace(adjacency_="zero_out"))
    (moves,) = views_of([[[np.array(move) / 2.0]]], fitted)
    return least_epsilon(event_of(fitted, (0,), moves, 1.0), delta, "zero_out")


@pytest.mark.parametrize("delta", [1e-9, 0.1, 0.3])
def test_a_bound_of_counts_is_the_truth_of_one_and_below_that_of_two(delta):
    """Of a count that moves by 1 the loss is 1 with probability p = 1 / (1 + 1/e), and -1 otherwise; of two, 2 with
    probability p^2. Delta is that probability times 1 - exp(epsilon - loss)."""
    p = 1.0 / (1.0 + math.exp(-1.0))
    assert bound_of_counts([1.0, 0.0], delta) == pytest.approx(1.0 + math.log1p(-delta / p), abs=1e-6)
    assert 0.0 < bound_of_counts([1.0, 1.0], delta) <= 2.0 + math.log1p(-delta / p**2)
    both = least_epsilon(DiscreteLaplaceDpEvent(1.0, 1), delta, "replace_one")
    assert both == pytest.approx(2.0 + math.log1p(-delta / p**2), abs=1e-12)


@pytest.mark.parametrize(("s", "k"), [(1.3, 5), (20.0, 10), (0.3, 3)])
def test_a_bound_of_discrete_gaussian_counts_is_their_price_or_less(s, k):
    event = SelfComposedDpEvent(DiscreteGaussianDpEvent(s), k)
    bound, cost = least_epsilon(event, 1e-5, "zero_out"), get_epsilon(event, 1e-5)
    assert bound <= cost
    assert bound > 0.99 * cost or s == 0.3  # of such little noise it is read no further than it can be computed


LOTS = SelfComposedDpEvent(PoissonSampledDpEvent(0.05, GaussianDpEvent(3.9)), 400)


@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one"])
@pytest.mark.parametrize(
    ("event", "share"),
    [(GaussianDpEvent(4.0), 0.9999), (LOTS, 0.98), (compose([LOTS, GaussianDpEvent(8.0), LOTS]), 0.75)],
)
def test_a_threshold_on_a_sum_tells_no_more_than_is_priced_and_nearly_all(event, share, adjacency):
    found = [least_delta(event, epsilon, adjacency) for epsilon in (0.5, 1.0)]
    assert found[1] < found[0]
    for epsilon, delta in zip((0.5, 1.0), found, strict=True):
        assert share * get_epsilon(event, delta, adjacency=adjacency) < epsilon * (1.0 + 1e-9)
        assert epsilon <= get_epsilon(event, delta, adjacency=adjacency) * (1.0 + 1e-9)


def test_a_count_beside_a_sum_is_told_by_both():
    event = compose([GaussianDpEvent(4.0), DiscreteLaplaceDpEvent(1.0, 1)])
    delta = least_delta(event, 1.5, "zero_out")
    assert 1.5 <= get_epsilon(event, delta) < 1.5 * 1.001


class Underpriced(DPGaussianNB):
    """States nine tenths of its cost."""

    def fit(self, X, y):
        super().fit(X, y)
        self.epsilon_ *= 0.9
        return self


def test_a_price_that_an_accountant_gets_wrong_is_heard(monkeypatch):
    """The accountant is wrong in the audit as well, so that nothing but the test of a sum can tell."""
    right = replay.accounting.get_epsilon_bounds
    monkeypatch.setattr(
        replay.accounting, "get_epsilon_bounds", lambda *given, **named: (0.8 * right(*given, **named)[0],)
    )
    kinds = [
        [each.kind for each in audit_estimator(kind(classes=[0, 1], bounds=(-1, 1)), max_seconds=SECONDS).findings]
        for kind in (DPGaussianNB, Underpriced)
    ]
    assert kinds == [[], ["charge"]]


def test_a_part_of_the_rows_is_in_one_part_only(monkeypatch):
    """Rows that are counted are none of those that were fitted to: both cost as much as the dearer of them."""
    monkeypatch.setattr(replay, "_ENOUGH", 500)
    rows = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    model, labels = DPCalibratedClassifier(DPGaussianNB(classes=[0, 1], bounds=(-1, 1))), (rows[:, 0] > 0).astype(int)
    assert not audit_of_rows(model, rows, labels).findings
    monkeypatch.setattr(PartRows, "of_units", lambda self, marked: self)
    assert "charge" in [each.kind for each in audit_of_rows(model, rows, labels).findings]


def audit_of_rows(model, rows, labels):
    """An audit of the first row."""
    return audit_estimator(model, rows, labels, canary=(8.0 * rows[:1], 1 - labels[0]), max_seconds=SECONDS)


def test_counts_of_a_lot_have_no_bound():
    assert bound_of_counts([1.0, 0.0], 1e-9, RecordedLot(0.01, 100, np.arange(1))) == 0.0


@pytest.mark.parametrize("s", [0.4, 3.0, 200.0])
def test_discrete_gaussian_noise_is_heard_as_normal(s):
    """Normals of the same chances; noise of a deviation a tenth less is not (false alarm 1e-6)."""
    recorded = {}
    for factor in (1.0, 0.9):
        transcript = Transcript(3)
        with running(transcript):
            DiscreteGaussianMechanism(s * factor).release(
                np.zeros(20_000, int), SecretStream.from_random_state(None, "test")
            )
        recorded[factor] = transcript.tracks[0].releases[0]._replace(noise_multiplier=s)
    assert kstest(recorded[1.0].noise, "norm").pvalue > 1e-6
    assert not [*check_release_noise([recorded[1.0].noise], level=1e-6)]
    assert {each.kind for each in check_release_noise([recorded[0.9].noise], level=1e-6)} == {"noise"}


@pytest.mark.parametrize("epsilon", [1.0, pytest.param(8.0, marks=pytest.mark.slow)])
def test_counts_with_discrete_gaussian_noise_reach_their_claim(epsilon, monkeypatch):
    """A row moves a count of each column: its cost is that of the release; of another deviation it is not."""
    kind = {"kind": "category", "categories": [str(k) for k in range(100)]}
    model = TableDescriber({"a": kind, "b": kind}, correlation=False, noise="discrete", epsilon=epsilon)
    rows = pd.DataFrame(np.arange(800).reshape(400, 2) % 70, columns=["a", "b"]).astype(str)

    def audit():
        with pytest.warns(PrivacyLeakWarning, match="public"):
            return audit_estimator(model, rows, canary=0, max_seconds=SECONDS)

    found = audit()
    assert not found.findings
    assert 0.95 < found.epsilon_lower_bound / found.epsilon_claimed <= 1.0
    monkeypatch.setattr("skdp.audit.replay._ENOUGH", 2_000)
    monkeypatch.setattr(
        "skdp.mechanisms.discrete_noise.discrete_gaussian",
        lambda stream, size, s: discrete_gaussian(stream, size, s / 2),
    )
    assert {each.kind for each in audit().findings} >= {"noise"}


# --- statistics ---


def test_one_run_gives_the_figures_of_the_paper():
    """Steinke, Nasr & Jagielski 2023: appendix D, and section 7."""
    from skdp.audit.one_run import _p_value

    for m, r, v, delta, epsilon in ((1000, 100, 75, 1e-4, 0.673), (100_000, 1510, 1439, 1e-5, 2.675)):
        assert _p_value(m, r, v, epsilon - 1e-3, delta) < 0.05 < _p_value(m, r, v, epsilon + 1e-3, delta)


@pytest.mark.parametrize("law", ["any", "gaussian"])
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_one_run_bounds_an_ideal_mechanism(law, epsilon):
    """Level 1e-6: no bound above the truth in 20 audits; with 100,000 canaries a third, a half as Gaussian."""
    sigma, rng = calibrate_noise_multiplier(GaussianDpEvent, epsilon=epsilon, delta=1e-5), np.random.default_rng(0)
    for _ in range(20):
        coins = rng.random(2000) < 0.5
        scores = coins + sigma * rng.normal(size=2000)
        assert one_run_epsilon(coins, scores, 1e-5, confidence=1 - 1e-6, trade_off=law) <= epsilon
    coins = rng.random(100_000) < 0.5
    found = one_run_epsilon(coins, coins + sigma * rng.normal(size=100_000), 1e-5, trade_off=law)
    assert found > {"any": 1 / 3, "gaussian": 1 / 2}[law] * epsilon


def in_lots(noise):
    return SelfComposedDpEvent(PoissonSampledDpEvent(0.25, GaussianDpEvent(noise)), 20)


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_one_run_bounds_an_ideal_mechanism_of_lots(epsilon):
    """Level 1e-6: no bound above the truth in three audits, and with 30,000 canaries two fifths of it."""
    noise, rng = calibrate_noise_multiplier(in_lots, epsilon=epsilon, delta=1e-5), np.random.default_rng(0)

    def recorded(n):
        coins = rng.random(n) < 0.5
        return coins, sum(lots_of(coins, noise, rng) for _ in range(20))

    for _ in range(3):
        assert one_run_epsilon(*recorded(2000), 1e-5, confidence=1 - 1e-6, trade_off=in_lots) <= epsilon
    assert one_run_epsilon(*recorded(30_000), 1e-5, trade_off=in_lots) > 0.4 * epsilon


def lots_of(coins, noise, rng):
    """How much likelier each number of a release is where its canary moves it by 1 in a quarter of all lots."""
    moved = (coins & (rng.random(len(coins)) < 0.25)) + noise * rng.normal(size=len(coins))
    return np.log(0.75 + 0.25 * np.exp((moved - 0.5) / noise**2))


def twice(noise):
    return SelfComposedDpEvent(GaussianDpEvent(noise), 2)


def test_a_gaussian_trade_off_is_that_of_the_event():
    """The polygon of two releases, and the curve of one with as much noise."""
    rng = np.random.default_rng(0)
    coins = rng.random(20_000) < 0.5
    scores = coins + rng.normal(size=20_000)
    one, two = (one_run_epsilon(coins, scores, 1e-5, trade_off=law) for law in ("gaussian", twice))
    assert two == pytest.approx(one, rel=1e-3)


@pytest.mark.parametrize(("n_right", "is_found"), [(140, False), (142, True)])
def test_the_level_of_one_run_is_that_of_both_numbers_of_guesses(n_right, is_found):
    """Of 4,096 canaries 256 and 1,024 are guessed: 140 right ones of 256 have a chance of 7 percent, 142 of 4.5."""
    is_right = np.zeros(4096, bool)
    is_right[:n_right] = is_right[256 : 768 - n_right] = True  # of all 1,024 one half
    ranks = np.concatenate([np.arange(2048), -np.arange(2048)]).reshape(2, -1).T.ravel()  # the farthest guesses last
    order = np.argsort(-np.abs(ranks), kind="stable")
    included = np.empty(4096, bool)
    included[order] = is_right == (ranks[order] > 0)
    chance = stats.binom.sf(n_right - 1, 256, 0.5)
    assert (chance < 0.05) == is_found
    assert chance < 0.1
    assert (one_run_epsilon(included, ranks, 1e-12, confidence=0.9) > 0.0) == is_found


@pytest.mark.parametrize("parameters", [{"max_iter": 20, "sampling_rate": 1.0}, {}], ids=["full batch", "lots"])
def test_one_run_of_a_logistic_regression_nears_its_claim(parameters):
    """The noise is seeded here. Bars: 2.4 of 4, and from the coefficients no less than two thirds of that."""
    model = DPLogisticRegression(classes=[0, 1], epsilon=4.0, random_state=0, **parameters)
    bounds = audit_estimator(model, method="one_run").bounds
    law = "noise is normal, and lots have the stated rate"
    assert 2.4 < bounds[f"{law} (releases)"] < 4.0
    assert bounds[f"{law} (coef_)"] > 2 / 3 * bounds[f"{law} (releases)"]


@pytest.mark.parametrize(("rate", "noise"), [(0.125, 1.5), (1.0, 1.5)])
def test_scores_of_one_run_are_the_likelihoods_of_a_canary(rate, noise, monkeypatch):
    """Of numbers of two releases, against densities; a sum would be as good where all rows are in the lot alone."""
    monkeypatch.setattr("skdp.audit.one_run._CANARIES", 2)
    x = np.array([[-3.0, 0.2, 1.0], [-1.0, -4.0, 0.5]])
    track = Likelihoods()
    for row in x:
        if rate < 1.0:
            track.rows(rate, 5, np.arange(2))
        track.release(GaussianMechanism(noise, 2.0), 2.0 * row, 2.0 * row)
    ratios = stats.norm.pdf(x, -1.0, noise) / stats.norm.pdf(x, 0.0, noise)
    np.testing.assert_allclose(track.total, np.log(1.0 - rate + rate * ratios).sum(axis=0), rtol=1e-12)


def test_one_fit_of_many_canaries(monkeypatch):
    monkeypatch.setattr("skdp.audit.one_run._CANARIES", 2000)
    ledger = PrivacyAccountant(20.0, 1e-4)
    model = DPLogisticRegression(classes=[0, 1], epsilon=8.0, accountant=ledger)
    audit = audit_estimator(model, X, (X[:, 0] > 0).astype(int), method="one_run")
    assert len(ledger.history) == 1
    assert not audit.findings
    assert 0.0 < audit.epsilon_lower_bound <= audit.epsilon_claimed
    assert len(audit.bounds) == 4
