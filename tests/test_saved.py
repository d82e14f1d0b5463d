"""What earlier versions wrote still opens: ledgers, checkpoints and pickles, made before files of skdp were moved.

They were made with 400 rows of `X` and `Y` below and the parameters named here; nothing in them is private.
"""

from __future__ import annotations

import pathlib
import pickle
import shutil

import numpy as np
import pytest

from skdp import DPLogisticRegression, DPMLPClassifier, DPMLPRegressor, PrivacyAccountant
from skdp.accounting import (
    ComposedDpEvent,
    EpsilonDeltaDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    RepeatAndSelectDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
    WorstOfDpEvent,
    ZCDpEvent,
)

SAVED = pathlib.Path(__file__).parent / "saved"
X = np.random.default_rng(0).uniform(-1, 1, size=(400, 5))
Y = (X[:, 0] > 0).astype(int)
EPSILON = {
    "logistic": 0.9999999999935663,
    "network": 0.9998266213154571,
    "pca": 0.9999999999964753,
    "pipeline": 0.9997005533666672,
    "search": 1.9997975487562456,
}
CORRECT = {"logistic": 391, "network": 328, "pipeline": 291, "search": 392}

pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyLeakWarning")  # a replay needs a seed


def load(name):
    return pickle.loads((SAVED / f"{name}.pickle").read_bytes())


@pytest.mark.parametrize("name", EPSILON)
def test_a_pickled_estimator_tells_its_price_and_works(name):
    model = load(name)
    assert model.epsilon_ == pytest.approx(EPSILON[name], rel=1e-12)
    if name == "pca":
        assert model.transform(X).shape == (400, 2)
    else:
        assert np.sum(model.predict(X) == Y) == CORRECT[name]
    again = pickle.loads(pickle.dumps(model))
    assert again.epsilon_ == model.epsilon_


def test_a_pickled_estimator_goes_on_from_its_state():
    model = load("logistic").set_params(accountant=PrivacyAccountant())
    model.fit(X, Y)
    assert EPSILON["logistic"] < model.epsilon_ <= 2.0


def test_a_pickled_accountant_is_a_copy_with_all_charges():
    accountant = load("accountant")
    assert (accountant.epsilon, accountant.delta) == (50.0, 1e-4)
    assert len(accountant.history) == 3
    assert "detached copy" in repr(accountant)


def test_an_accountant_in_a_pickled_estimator_still_names_its_file():
    assert load("network").accountant.path == "/somewhere/else/ledger.budget"


def test_pickled_events_are_those_of_today():
    gaussian, laplace = GaussianDpEvent(2.0), LaplaceDpEvent(1.0)
    assert load("events") == [
        gaussian,
        LaplaceDpEvent(3.0),
        EpsilonDeltaDpEvent(0.1, 1e-6),
        NoOpDpEvent(),
        NonPrivateDpEvent(),
        ZCDpEvent(0.1, 0.2),
        PoissonSampledDpEvent(0.1, gaussian),
        SampledWithoutReplacementDpEvent(100, 10, gaussian),
        SelfComposedDpEvent(gaussian, 3),
        ComposedDpEvent((gaussian, laplace)),
        RepeatAndSelectDpEvent(gaussian, 3.0, 1.0),
        WorstOfDpEvent((gaussian, laplace)),
    ]


@pytest.mark.parametrize("make", [PrivacyAccountant.open, lambda path: PrivacyAccountant(path=path)])
def test_a_ledger_of_a_file_opens_and_can_be_charged(make, tmp_path):
    shutil.copy(SAVED / "ledger.budget", tmp_path)
    accountant = make(tmp_path / "ledger.budget")
    assert (accountant.epsilon, accountant.delta, accountant.unit) == (50.0, 1e-4, "person")
    assert accountant.verify() == 2
    assert accountant.to_json() == (SAVED / "ledger.json").read_text()
    accountant.spend(accountant.history[0].event, adjacency="zero_out")
    assert accountant.verify() == 3


def test_a_ledger_of_json_opens():
    accountant = PrivacyAccountant.from_json((SAVED / "ledger.json").read_text())
    assert [charge.label for charge in accountant.history] == ["DPMLPClassifier", "DPPCA"]


RUNS = {
    "logistic": (DPLogisticRegression, {"sampling_rate": 0.1, "max_iter": 4}),
    "network": (DPMLPClassifier, {"hidden_layer_sizes": (4,), "sampling_rate": 0.2, "max_iter": 8,
                                  "solver": "adam", "average": "tail"}),
}  # fmt: skip
OWN = {"classes": [0, 1], "random_state": 7, "delta": 1e-4, "epsilon": None, "noise_multiplier": 2.0}


def test_a_checkpoint_of_a_run_with_another_clip_is_refused(tmp_path):
    """By its label's own gradient, as rows were clipped at first: the rest of the run would be of another model."""
    shutil.copy(SAVED / "logistic_own_label.npz", tmp_path / "run.npz")
    accountant = PrivacyAccountant(epsilon=50.0, delta=1e-3)
    cls, own = RUNS["logistic"]
    with pytest.raises(ValueError, match="its clip differs"):
        cls(**own, **OWN, checkpoint=tmp_path / "run.npz", accountant=accountant).fit(X, Y)
    assert not accountant.history


def test_files_say_how_rows_are_clipped_where_that_changed(tmp_path):
    """Runs of more classes and of numbers are described as before, so that their files still open."""
    for cls, own in (
        (DPLogisticRegression, {"classes": [0, 1]}), (DPLogisticRegression, {"classes": [0, 1, 2]}),
        (DPMLPClassifier, {"classes": [0, 1]}), (DPMLPRegressor, {"y_bounds": (0, 1)}),
    ):  # fmt: skip
        model = cls(**own, random_state=0, max_iter=2, sampling_rate=0.5)
        run, outputs = planned(model)
        described = model._describe_clip(run, outputs)
        assert (described != {}) == (own.get("classes") == [0, 1]), cls


def planned(model):
    """The run of a model of `X`, and its outputs."""
    outputs = model._named_outputs()
    terms = model._check_terms()
    return model._plan_run(terms.budget._replace(delta=1e-5), 400, 5, outputs), outputs


@pytest.mark.parametrize("name", RUNS)
def test_a_checkpoint_is_resumed_to_the_model_of_the_whole_run(name, tmp_path):
    """The files were made by a run that an interrupt ended after half of its steps."""
    shutil.copy(SAVED / f"{name}.npz", tmp_path)
    cls, own = RUNS[name]
    own = own | OWN
    resumed = cls(**own, checkpoint=tmp_path / f"{name}.npz").fit(X, Y)
    whole = cls(**own).fit(X, Y)
    assert resumed.epsilon_ == whole.epsilon_
    # the steps in the file were made with other libraries, whose sums may be rounded otherwise
    np.testing.assert_allclose(resumed.predict_proba(X), whole.predict_proba(X), rtol=1e-9)
    assert not (tmp_path / f"{name}.npz").exists()
