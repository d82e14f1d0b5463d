"""What an export says of a fit is an explicit list, and holds nothing else of a ledger."""

import copy

import numpy as np
import pytest
from serving import metadata_of
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline

import skdp
from skdp import (
    DPCalibratedClassifier,
    DPGaussianNB,
    DPStandardScaler,
    DPTableVectorizer,
    PrivacyAccountant,
    PublicTreesEmbedding,
    allocate_budget,
)
from skdp.accounting.ledger.serial import event_from_dict
from skdp.export import to_onnx
from skdp.export.onnx_model import FACTS, facts_of

SECRETS = ("hospital-ward-7", "of-the-board", "parameter-of-a-ward", "ledger-of-wards", "label-of-a-fit")
X = np.random.default_rng(0).uniform(-1, 1, (120, 2))
y = (X[:, 0] > 0).astype(int)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A budget whose ledger has a name, notes, labels, a rejection and another charge."""
    path = tmp_path_factory.mktemp(SECRETS[3]) / f"{SECRETS[0]}.db"
    ledger = PrivacyAccountant(epsilon=30.0, delta=1e-4, path=path)
    ledger.spend(
        skdp.accounting.GaussianDpEvent(50.0), label=SECRETS[4], note=SECRETS[1], parameters={"of": SECRETS[2]}
    )
    own = {"bounds": (-1, 1), "accountant": ledger}
    with pytest.raises(ValueError, match="NaN"):
        DPGaussianNB(classes=[0, 1], **own).fit(X * np.nan, y)
    steps = DPStandardScaler(**own), DPGaussianNB(classes=[0, 1], **own)
    made = allocate_budget(make_pipeline(*steps), 1.0).fit(X, y)
    assert len(ledger.history) >= 2
    assert all(secret in ledger.to_json() for secret in (SECRETS[1], SECRETS[2], SECRETS[4]))
    return made


def test_nothing_else_of_a_ledger_is_written(model):
    written = to_onnx(model).SerializeToString()
    assert len(written) > 500
    for secret in (*SECRETS, "PrivacyAccountant", "refus", "budget", "/tmp"):
        assert secret.encode() not in written, secret


def test_an_export_asks_no_ledger_and_no_row(model):
    """Without a ledger, and after the rows are gone, the export is the same bytes."""
    before, n_entries = to_onnx(model).SerializeToString(), len(model[0].accountant.history)
    alone = copy.deepcopy(model).set_params(dpstandardscaler__accountant=None, dpgaussiannb__accountant=None)
    assert to_onnx(alone).SerializeToString() == before
    assert len(model[0].accountant.history) == n_entries


def test_the_list_is_what_is_written(model):
    facts = metadata_of(to_onnx(model))
    assert set(facts) == {"skdp", "privacy", "inputs"}
    assert facts["skdp"] == skdp.__version__
    (part,) = facts["privacy"]
    assert tuple(part) == FACTS == ("class", "epsilon", "delta", "unit", "adjacency", "event", "noise")
    wanted = type(model).__name__, model.epsilon_, model.delta_, "row", "zero_out"
    assert tuple(part[name] for name in FACTS[:5]) == wanted
    assert event_from_dict(part["event"]) == model.privacy_event_
    assert part["noise"] == "secret"


def test_a_seed_is_said_and_not_shown(recwarn):
    seeded = DPGaussianNB(classes=[0, 1], bounds=(-1, 1), random_state=31_415_926)
    seeded.fit(X, y, groups=np.arange(120) // 2)
    (part,) = facts_of(seeded)["privacy"]
    assert (part["noise"], part["unit"]) == ("seeded", "group")
    assert b"31415926" not in to_onnx(seeded).SerializeToString()


def test_parts_that_were_fitted_apart_are_listed_apart():
    schema = {"x0": (-1, 1), "x1": (-1, 1)}
    bayes = DPGaussianNB(classes=[0, 1], bounds=(0, 1))
    pipe = make_pipeline(DPTableVectorizer(schema, sparse_output=False), bayes).fit(X, y)
    free, paid = facts_of(pipe)["privacy"]
    assert (free["class"], free["epsilon"]) == ("DPTableVectorizer", 0.0)
    assert paid["epsilon"] == pipe[-1].epsilon_
    assert facts_of(PublicTreesEmbedding(2, bounds=(-1, 1)).fit(X))["privacy"] == []


def test_a_classifier_around_a_fitted_one_says_what_both_cost():
    """Their rows are others, so the costs stand side by side; one that is fitted here has a cost with its table."""
    inner = DPGaussianNB(classes=[0, 1], bounds=(-1, 1), epsilon=2.0).fit(X, y)
    around = DPCalibratedClassifier(FrozenEstimator(inner), epsilon=3.0).fit(X, y)
    assert [each["class"] for each in facts_of(around)["privacy"]] == ["DPCalibratedClassifier", "DPGaussianNB"]
    assert [each["epsilon"] for each in facts_of(around)["privacy"]] == [around.epsilon_, inner.epsilon_]
    whole = DPCalibratedClassifier(DPGaussianNB(classes=[0, 1], bounds=(-1, 1)), epsilon=3.0).fit(X, y)
    assert [each["class"] for each in facts_of(whole)["privacy"]] == ["DPCalibratedClassifier"]
