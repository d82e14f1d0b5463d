"""Mistakes that are planted and recorded by audits, each of whose tests raises a false alarm once in a million."""

import dask
import dask.array
import numpy as np
import pytest

from skdp import DPKMeans, DPLogisticRegression, DPRandomizedSearchCV
from skdp.accounting import ComposedDpEvent, SelfComposedDpEvent
from skdp.audit import audit_estimator
from skdp.base.budget import cost_of
from skdp.base.fit import Fit
from skdp.cluster import noisy_tree
from skdp.exceptions import PrivacyLeakWarning
from skdp.mechanisms import GaussianMechanism, sampling
from skdp.mechanisms.streams import SecretStream
from skdp.model_selection.candidates import worst_of

SECONDS = 600.0  # never the limit
FULL = {"classes": [0, 1], "max_iter": 100}
LOTS = {**FULL, "sampling_rate": 0.05, "max_iter": 20}
BOTH = pytest.mark.parametrize("parameters", [FULL, LOTS], ids=["full batch", "lots"])


def audit(parameters, estimator=DPLogisticRegression):
    return audit_estimator(estimator(**parameters), max_seconds=SECONDS)


def kinds(found):
    return {finding.kind for finding in found.findings}


@pytest.fixture
def quick(monkeypatch):
    """Fewer normals: mistakes are recorded by much less than what a narrow bound takes."""
    monkeypatch.setattr("skdp.audit.replay._ENOUGH", 20_000)
    monkeypatch.setattr("skdp.audit.replay._PATIENCE", SECONDS)  # however busy the machine is


@BOTH
def test_noise_that_is_too_small_is_heard(quick, monkeypatch, parameters):
    prepared = GaussianMechanism.__post_init__

    def prepared_with_less_noise(self):
        prepared(self)
        grid, scale = self._grid_and_scale
        vars(self)["_grid_and_scale"] = grid, 0.95 * scale

    monkeypatch.setattr(GaussianMechanism, "__post_init__", prepared_with_less_noise)
    found = audit(parameters)
    assert {"noise", "bound"} <= kinds(found)
    assert found.epsilon_lower_bound > found.epsilon_claimed
    with pytest.raises(AssertionError, match="noise: The standard deviation is"):
        found.raise_if_violated()


@BOTH
def test_one_noise_for_all_steps_is_heard(quick, monkeypatch, parameters):
    noisy = SecretStream.noisy
    monkeypatch.setattr(SecretStream, "noisy", lambda self, *given: noisy(self.spawn("again"), *given))
    assert any("not independent" in finding.message for finding in audit(parameters).findings)


def scaled_sums(monkeypatch, change):
    from skdp._dpsgd.models.linear import LinearModel

    sums = LinearModel.clipped_gradient_sum
    monkeypatch.setattr(LinearModel, "clipped_gradient_sum", lambda *given: change(sums, *given))


def test_a_clip_that_is_too_large_is_heard(quick, monkeypatch):
    scaled_sums(monkeypatch, lambda sums, model, theta, lot, clip: 1.2 * sums(model, theta, lot, clip))
    found = audit(LOTS)
    assert {"shift", "bound"} <= kinds(found)
    assert any("1.2 times its sensitivity" in finding.message for finding in found.findings)


@BOTH
def test_a_row_that_is_counted_twice_is_heard(quick, monkeypatch, parameters):
    def twice(sums, model, theta, lot, clip):
        if lot is None:
            return sums(model, theta, lot, clip) + model.sum_of_rows(theta, clip, model.n_rows - 1, model.n_rows)
        return sums(model, theta, np.append(lot, lot[-1:]), clip)

    scaled_sums(monkeypatch, twice)
    found = audit(parameters)
    assert {"shift", "bound"} <= kinds(found)


def test_one_key_for_lots_and_noise_is_heard(quick, monkeypatch):
    """Each has its own law, and no test of one of them hears that both are made of the same words."""
    spawn = SecretStream.spawn
    monkeypatch.setattr(
        SecretStream, "spawn", lambda self, *purpose: spawn(self, *("noise" if p == "sampling" else p for p in purpose))
    )
    found = audit(LOTS)
    assert [str(each) for each in found.findings] == [
        "noise: A secret random word is drawn twice, so the noise computed from it is not independent."
    ]


def test_scores_of_a_search_that_nobody_pays_for_are_heard(quick, monkeypatch):
    """Trials of lots and a score grow otherwise with their noise, so that the score costs more here, by .1 percent."""

    def event(tried, scale, scored, trials):
        return trials.event(worst_of([each.event(scale) for each in tried]))

    monkeypatch.setattr("skdp.model_selection.candidates._tries_event", event)
    search = DPRandomizedSearchCV(DPLogisticRegression(**{**LOTS, "max_iter": 5}), {"alpha": [0.0, 0.1]}, n_iter=2)
    found = audit_estimator(search, max_seconds=SECONDS)
    assert any(str(each).startswith("charge: scores: the releases cost") for each in found.findings)


def test_counts_of_clusters_that_exchanged_rows_move_too_far_are_heard(monkeypatch):
    """A row of one cluster takes the place of one of another, and moves two counts."""
    monkeypatch.setattr("skdp.audit.replay._ENOUGH", 200)
    parts = noisy_tree.StepParts(0.6, 0.3, 0.1)
    monkeypatch.setattr(noisy_tree, "step_parts", lambda adjacency: parts)
    assert "shift" in kinds(audit({"n_clusters": 3, "bounds": (-1, 1), "adjacency": "replace_one"}, DPKMeans))


def drawing(monkeypatch, draw):
    poisson = SecretStream.poisson_rows

    def rows(self, n, rate):
        if not hasattr(self, "drawn"):
            self.drawn = 0
        self.drawn += 1
        return np.sort(draw(self, n, rate, poisson)).astype(np.int64)

    monkeypatch.setattr(SecretStream, "poisson_rows", rows)


def shuffled(stream, n):
    return np.argsort(stream.words(n), kind="stable")


LAWS = {
    "fixed size": lambda self, n, q, poisson: shuffled(self, n)[: round(n * q)],
    "shuffled epochs": lambda self, n, q, poisson: np.array_split(
        shuffled(self.spawn("epoch", (self.drawn - 1) // round(1 / q)), n), round(1 / q)
    )[(self.drawn - 1) % round(1 / q)],
    "blocks": lambda self, n, q, poisson: np.concatenate(
        [np.arange(20) + 20 * block for block in poisson(self, n // 20, q)] or [np.zeros(0, np.int64)]
    ),
    "rate": lambda self, n, q, poisson: poisson(self, n, 1.1 * q),
    "kept lots": lambda self, n, q, poisson: poisson(self.spawn("lot", (self.drawn - 1) // 2), n, q),
    "a row twice": lambda self, n, q, poisson: np.append(poisson(self, n, q), [0, 0]),
}


@pytest.mark.parametrize("law", LAWS)
def test_lots_of_another_law_are_heard(quick, monkeypatch, law):
    drawing(monkeypatch, LAWS[law])
    assert "sampling" in kinds(audit(LOTS))


def test_counts_of_equal_rows_at_another_rate_are_heard(quick, monkeypatch):
    """All copies of a row together are one number, of which the audit makes rows again."""
    tables = sampling.binomial_tables
    monkeypatch.setattr(sampling, "binomial_tables", lambda sizes, rate: tables(sizes, 1.1 * rate))
    assert "sampling" in kinds(audit({**LOTS, "merge_equal_rows": True}))


def in_partitions(**changed):
    """An audit of rows in three partitions of Dask, of which the canary is a fourth one, on one machine."""
    X = np.where(np.arange(300)[:, None] % 2 == 0, -1.0, 1.0) * np.ones((1, 4))
    rows, labels = dask.array.from_array(X, chunks=(100, 4)), dask.array.from_array(np.arange(300) % 2, chunks=100)
    model = DPLogisticRegression(**{**LOTS, "max_iter": 5, "sampling_rate": 0.1, **changed})
    with dask.config.set(scheduler="synchronous"), pytest.warns(PrivacyLeakWarning, match="public"):
        return audit_estimator(model, rows, labels, canary=(X[1:2], 0), max_seconds=SECONDS)


def fewer_lots(monkeypatch):
    monkeypatch.setattr("skdp.audit.replay._ENOUGH", 300)  # normals, of which there are few a release
    monkeypatch.setattr("skdp.audit.replay._LOTS", 200)


def test_lots_of_partitions_are_heard_and_forced(monkeypatch):
    """The canary is in all lots of the second fit, and its cost is that of a row in lots."""
    fewer_lots(monkeypatch)
    found = in_partitions()
    assert not found.findings
    assert 0.5 < found.epsilon_lower_bound / found.epsilon_claimed <= 1.0  # of few normals the scale is little known
    event = str(found.event)
    assert "PoissonSampledDpEvent(sampling_probability=0.1" in event


def test_lots_of_partitions_of_another_law_are_heard(monkeypatch):
    fewer_lots(monkeypatch)
    drawing(monkeypatch, lambda self, n, q, poisson: poisson(self, n, 1.5 * q))
    assert "sampling" in kinds(in_partitions())


@pytest.mark.parametrize("of_rows", [False, True])
def test_rows_drawn_where_units_are_priced_are_heard(monkeypatch, of_rows):
    from skdp._dpsgd.models.linear import Model

    def units_of_drawn_rows(model, sampling, stream, step):
        rows = sampling.rows(model.n_rows, stream)
        return np.unique(np.searchsorted(model.units.starts, rows, side="right") - 1)

    fewer_lots(monkeypatch)
    if of_rows:
        monkeypatch.setattr(Model, "draw_lot", units_of_drawn_rows)
    X, groups = np.where(np.arange(400)[:, None] % 2 == 0, -1.0, 1.0) * np.ones((1, 4)), np.arange(400) // 4
    model = DPLogisticRegression(**{**LOTS, "sampling_rate": 0.2})
    with pytest.warns(PrivacyLeakWarning, match="public"):
        found = audit_estimator(model, X, np.arange(400) % 2, groups=groups, canary=0, max_seconds=SECONDS)
    told = ["sampling: A lot samples each of 4 rows of the record, but the record is accounted for as a single row."]
    assert [str(each) for each in found.findings] == (told if of_rows else [])


def test_a_sum_that_is_no_number_is_heard(quick, monkeypatch):
    """No noise hides it: it is a finding, and no audit that fails."""
    scaled_sums(monkeypatch, lambda sums, model, *given: np.full(model.n_features + 1, np.inf))
    found = audit(FULL)
    assert "shift" in kinds(found)
    assert found.epsilon_lower_bound == 0.0


def half_price(fit, event):
    return cost_of(fit.budget, half_of(event))


def half_of(event):
    if isinstance(event, ComposedDpEvent):
        return ComposedDpEvent(tuple(map(half_of, event.events)))
    return SelfComposedDpEvent(event.event, event.count // 2) if isinstance(event, SelfComposedDpEvent) else event


def test_steps_that_are_not_charged_are_heard(quick, monkeypatch):
    """A fit that makes twice the steps that it charges."""
    plan_at = Fit.plan_at
    monkeypatch.setattr(Fit, "plan_at", lambda fit, cost, event: plan_at(fit, half_price(fit, event), half_of(event)))
    found = audit(LOTS)
    assert {"bound", "charge"} <= kinds(found)


@BOTH
def test_an_honest_estimator_raises_no_alarm(quick, parameters):
    found = audit(parameters)
    assert found.findings == ()
    assert 0.9 < found.epsilon_lower_bound / found.epsilon_claimed <= 1.0
    found.raise_if_violated()
