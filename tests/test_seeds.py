"""One seed for several fits: different classes, functions and parts of a whole have independent noise."""

import types

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import Pipeline

import skdp
from skdp import statistics
from skdp.base import root_stream
from skdp.mechanisms import DiscreteGaussianMechanism, GaussianMechanism
from skdp.mechanisms.release_log import Transcript, running
from skdp.metrics import compare
from skdp.preprocessing import dp_bounds
from skdp.synthesis import evaluate_synthesis

SEED = 7
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (300, 3))
Y = (X[:, 0] > 0).astype(int)
GIVEN = {"epsilon": 1.0, "random_state": SEED}
BOUNDED = {"bounds": (-1, 1), **GIVEN}
TRAINED = {"classes": [0, 1], "sampling_rate": 1.0, "max_iter": 2, **GIVEN}
KINDS = {"a": (-1, 1), "b": (-1, 1)}
WORDS = RNG.choice(["u", "v"], 300)


FITS = {
    "DPRidge": lambda: skdp.DPRidge(y_bounds=(0, 1), **GIVEN).fit(X, Y),
    "DPLinearRegression": lambda: skdp.DPLinearRegression(y_bounds=(0, 1), **GIVEN).fit(X, Y),
    "DPPCA": lambda: skdp.DPPCA(2, **GIVEN).fit(X),
    "DPGaussianNB": lambda: skdp.DPGaussianNB(classes=[0, 1], **BOUNDED).fit(X, Y),
    "DPIsolationForest": lambda: skdp.DPIsolationForest(3, **BOUNDED).fit(X),
    "DPStandardScaler": lambda: skdp.DPStandardScaler(**BOUNDED).fit(X),
    "DPQuantileBinner": lambda: skdp.DPQuantileBinner(**BOUNDED).fit(X),
    "DPSimpleImputer": lambda: skdp.DPSimpleImputer(**BOUNDED).fit(X),
    "DPKMeans": lambda: skdp.DPKMeans(2, **BOUNDED).fit(X),
    "DPLogisticRegression": lambda: skdp.DPLogisticRegression(**TRAINED).fit(X, Y),
    "DPLogisticRegression by Newton steps": lambda: skdp.DPLogisticRegression(
        classes=[0, 1], inference=True, **GIVEN
    ).fit(X, Y),
    "DPMLPClassifier": lambda: skdp.DPMLPClassifier((4,), **TRAINED).fit(X, Y),
    "DPRandomTreesClassifier": lambda: skdp.DPRandomTreesClassifier(3, bounds=(-1, 1), **TRAINED).fit(X, Y),
    "evaluate": lambda: skdp.evaluate(None, X[:, 0], Y, **GIVEN),
    "evaluate of regression": lambda: skdp.evaluate(None, X[:, 0], X[:, 1], y_bounds=(-1, 1), **GIVEN),
    "compare": lambda: compare(None, None, X[:, :2], Y, **GIVEN),
    "cross_validate": lambda: skdp.model_selection.cross_validate(
        skdp.DPLogisticRegression(classes=[0, 1]), X, Y, cv=3, **GIVEN
    ),
    "evaluate_synthesis": lambda: evaluate_synthesis(X, X, schema={f"x{j}": (-1, 1) for j in range(3)}, **GIVEN),
    "dp_bounds": lambda: dp_bounds(X, **GIVEN),
    "describe": lambda: skdp.describe(pd.DataFrame(X[:, :2], columns=["a", "b"]), schema=KINDS, **GIVEN),
    "private_count": lambda: statistics.private_count(Y == 1, **GIVEN),
    "private_mean": lambda: statistics.private_mean(X[:, 0], **BOUNDED),
    "private_sum": lambda: statistics.private_sum(X[:, 0], **BOUNDED),
    "private_quantile": lambda: statistics.private_quantile(X[:, 0], **BOUNDED),
    "private_histogram": lambda: statistics.private_histogram(X[:, 0], **BOUNDED),
    "private_crosstab": lambda: statistics.private_crosstab(WORDS, WORDS, categories=[["u", "v"]] * 2, **GIVEN),
    "private_chi2_test": lambda: statistics.private_chi2_test(WORDS, WORDS, categories=[["u", "v"]] * 2, **GIVEN),
    "GaussianMechanism": lambda: GaussianMechanism(1.0, 1.0).release(X[:, 0], SEED),
    "DiscreteGaussianMechanism": lambda: DiscreteGaussianMechanism(1.0).release(Y, SEED),
    "calibrated": lambda: skdp.DPCalibratedClassifier(skdp.DPLogisticRegression(classes=[0, 1]), **GIVEN).fit(X, Y),
    "search": lambda: skdp.DPGridSearchCV(
        skdp.DPLogisticRegression(classes=[0, 1]), {"max_iter": [2, 3, 4]}, **GIVEN
    ).fit(X, Y),
}


def draws(*fits):
    """The transcript of fits, which reports words that are drawn twice."""
    transcript = Transcript()
    with running(transcript):
        for fit in fits:
            fit()
    return transcript.words


def test_classes_and_functions_share_no_noise():
    for fit in FITS.values():
        assert not draws(fit).are_repeated
    assert not draws(*FITS.values()).are_repeated


def test_fits_of_one_class_share_noise():
    assert draws(FITS["DPRidge"], FITS["DPRidge"]).are_repeated


@pytest.mark.parametrize("make", [lambda: SEED, lambda: np.random.RandomState(SEED)])
@pytest.mark.parametrize(
    ("step", "parameters"),
    [(skdp.DPStandardScaler, {"bounds": (-1, 1)}), (skdp.DPOneHotEncoder, {"sparse_output": False})],
)
def test_pipeline_steps_of_one_class_share_no_noise(step, parameters, make):
    steps = [(name, step(random_state=make(), **parameters)) for name in ("one", "two")]
    model = skdp.DPLogisticRegression(classes=[0, 1], max_iter=2, random_state=make())
    whole = skdp.allocate_budget(Pipeline([*steps, ("model", model)]), epsilon=1.0)
    assert not draws(lambda: whole.fit(X > 0, Y)).are_repeated


def test_search_over_pipeline_shares_no_noise():
    steps = [("scale", skdp.DPStandardScaler(bounds=(-1, 1))), ("again", skdp.DPStandardScaler(bounds=(-1, 1)))]
    model = skdp.DPLogisticRegression(classes=[0, 1], max_iter=2, random_state=SEED)
    search = skdp.DPGridSearchCV(
        skdp.allocate_budget(Pipeline([*steps, ("model", model)]), epsilon=1.0), {"model__max_iter": [2, 3]}, **GIVEN
    )
    assert not draws(lambda: search.fit(X, Y)).are_repeated


def test_root_key_ignores_the_module():
    def words(module, name):
        made = types.new_class(name, (), exec_body=lambda body: body.update(random_state=SEED, __module__=module))()
        return root_stream(made).words(4).tolist()

    assert words("one", "Model") == words("two", "Model") != words("one", "Other")


# --- the record of a seed ---


@pytest.mark.parametrize("seed", [SEED, None])
def test_charge_records_whether_seed_was_set(seed, tmp_path):
    skdp.PrivacyAccountant(path=tmp_path / "b.budget")
    accountant = skdp.PrivacyAccountant.open(tmp_path / "b.budget")
    own = {"epsilon": 1.0, "accountant": accountant, "random_state": seed}
    model = skdp.DPLogisticRegression(classes=[0, 1], max_iter=2, random_state=seed, accountant=accountant)
    model.fit(X, Y)
    skdp.allocate_budget(Pipeline([("model", model)]), epsilon=1.0).fit(X, Y)
    statistics.private_count(Y == 1, **own)
    GaussianMechanism(1.0, 1.0).release(Y, seed, accountant=accountant)
    skdp.model_selection.cross_validate(model.set_params(random_state=None), X, Y, cv=3, epsilon=1.0, random_state=seed)
    skdp.DPGridSearchCV(model, {"max_iter": [2, 3]}, random_state=seed).fit(X, Y)
    skdp.DPCalibratedClassifier(skdp.DPLogisticRegression(classes=[0, 1]), **own).fit(X, Y)
    copies = skdp.PrivacyAccountant.from_json(accountant.to_json()), skdp.PrivacyAccountant.open(tmp_path / "b.budget")
    for each in (accountant, *copies):
        assert [charge.seeded for charge in each.history] == [seed is not None] * 7
    assert ("seeded" if seed is not None else "secret") in str(accountant)


def test_charge_without_record_has_unknown_seed():
    accountant = skdp.PrivacyAccountant()
    accountant.spend(GaussianMechanism(1.0, 1.0).event)
    again = skdp.PrivacyAccountant.from_json(accountant.to_json())
    assert [charge.seeded for charge in again.history] == [None]


def test_seed_warning_names_reuse():
    with pytest.warns(skdp.PrivacyLeakWarning, match="two fits use the same seed, the exact difference"):
        skdp.DPPCA(2, **GIVEN).fit(X)
