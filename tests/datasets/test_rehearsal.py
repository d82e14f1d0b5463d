"""Rehearsals on made-up rows: what is drawn, what they say, and that nothing is charged."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import roc_auc_score

import skdp
from skdp.accounting import PrivacyAccountant
from skdp.exceptions import PrivacyLeakWarning
from skdp.model_selection.rehearsal import Rehearsal, draw_classes, draw_rows
from skdp.preprocessing import TableSchema

SCHEMA = TableSchema(
    {
        "age": (18, 90),
        "since": ("2000-01-01", "2025-12-31"),
        "job": {"categories": ["clerk", "nurse", "pilot"], "missing_values": ["?"]},
        "grade": {"kind": "ordinal", "categories": [1, 2, 3, 4]},
        "member": "flag",
        "id": "drop",
        "income": {"bounds": (0, 1e6), "scale": "log", "missing_values": [None]},
    }
)


def model(**parameters):
    return skdp.DPLogisticRegression(**{"classes": [0, 1], "data_norm": 2.0, "max_iter": 10, **parameters})


@pytest.fixture(scope="module")
def found():
    return skdp.rehearse(model(), 4, n=2000, epsilons=[10.0, 0.03], n_repeats=3)


def test_rows_keep_to_the_schema():
    X, scores = draw_rows(SCHEMA, 3000, 2, np.random.default_rng(0))
    assert list(X.columns) == list(SCHEMA)
    assert X["age"].between(18, 90).all()
    assert set(X["job"]) == {"clerk", "nurse", "pilot", "?"}
    assert X["since"].between("2000-01-01", "2025-12-31").all()
    assert X["income"].isna().any()
    assert scores.mean(axis=1) == pytest.approx([0.0, 0.0], abs=1e-12)
    assert scores.std(axis=1) == pytest.approx([1.0, 1.0])
    vectorized = skdp.DPTableVectorizer(SCHEMA).fit_transform(X)  # reads every cell, or rejects it
    assert vectorized.shape[0] == 3000


@pytest.mark.parametrize(("shares", "auc"), [([0.8, 0.2], 0.6), ([0.5, 0.3, 0.2], 0.9)])
def test_the_best_model_has_the_area_that_is_stated(shares, auc):
    rng = np.random.default_rng(1)
    _, scores = draw_rows(5, 40_000, len(shares) - 1, rng)
    y = draw_classes(scores, np.array(shares), auc, rng)
    assert np.bincount(y) / len(y) == pytest.approx(shares, abs=0.03)
    if len(shares) == 2:  # whose best score is any rising function of the one there is
        assert roc_auc_score(y, scores[0]) == pytest.approx(auc, abs=0.015)


def test_noise_costs_more_at_a_smaller_epsilon(found):
    assert found.epsilons == (0.03, 10.0)
    assert found.losses[0] > found.losses[1]
    assert found.coefficient_noise[0] > 0.0
    assert abs(found.losses[1]) < 0.02
    assert found.seconds > 0.0
    assert found.megabytes > 0.0


def test_the_least_epsilon_from_which_on_all_suffice():
    made = Rehearsal("E", 10, 2, "AUROC", 0.8, 0.8, 0.01, (0.1, 0.5, 1.0, 2.0), (), (), (), 0.0, 0.0)
    for scores, least in (((0.5, 0.795, 0.7, 0.8), 2.0), ((0.5, 0.795, 0.8, 0.8), 0.5), ((0.5, 0.5, 0.5, 0.5), None)):
        assert replace(made, scores=scores).epsilon == least


def test_rehearsal_prints_rows_and_applicability(found):
    text = str(found)
    assert "2000 rows, 4 columns" in text
    assert "within 0.02 on four census and credit tables" in text
    assert "four census" not in str(replace(found, signal=None))  # of public rows nothing was compared
    assert found._repr_html_().count("<tr>") == 3
    assert found.to_frame()["loss"].tolist() == list(found.losses)


def test_the_same_seed_gives_the_same_rehearsal(found):
    again = skdp.rehearse(model(random_state=5), 4, n=2000, epsilons=[0.03, 10.0])
    assert again.scores == pytest.approx(found.scores, abs=1e-6)
    other = skdp.rehearse(model(), 4, n=2000, epsilons=[0.03], n_repeats=1, random_state=1)
    assert other.scores[0] != pytest.approx(found.scores[0], abs=1e-6)
    assert np.isnan(other.coefficient_noise).all()


def test_nothing_is_charged_and_the_estimator_stays_as_it_was():
    ledger = PrivacyAccountant(0.5, 1e-6)
    mine = model(epsilon=None, noise_multiplier=3.0, accountant=ledger)
    skdp.rehearse(mine, 3, n=500, epsilons=[1.0], n_repeats=1)
    assert not ledger.history
    assert mine.noise_multiplier == 3.0
    assert not hasattr(mine, "coef_")


def test_a_pipeline_of_a_schema_is_rehearsed_and_a_leak_is_none():
    whole = skdp.tabular_pipeline(model(data_norm=None), schema=SCHEMA, accountant=PrivacyAccountant(0.01, 1e-6))
    with skdp.config_context(on_leak="raise"):
        made = skdp.rehearse(
            whole, SCHEMA, n=800, epsilons=[5.0], n_repeats=1, class_prevalences=[0.7, 0.3], signal=0.9, target=0.2
        )
    assert (made.n_columns, made.target) == (7, 0.2)
    assert 0.75 < made.without_noise < 0.95


def test_a_regressor_is_scored_by_r2():
    made = skdp.rehearse(
        skdp.DPLinearRegression((0, 10), data_norm=2.0), 3, n=3000, epsilons=[20.0], n_repeats=1, signal=0.8
    )
    assert made.metric == "R2"
    assert made.scores[0] == pytest.approx(0.8, abs=0.1)


def test_three_classes_are_scored_one_against_the_others():
    three = model(classes=["a", "b", "c"])
    made = skdp.rehearse(three, 3, n=2000, epsilons=[20.0], n_repeats=1, signal=0.85, class_prevalences=[0.5, 0.3, 0.2])
    assert 0.7 < made.scores[0] < 0.9


def test_public_rows_stand_in_for_made_up_ones():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (1000, 3))
    y = (X[:, 0] > 0).astype(int)
    for rows in (X, pd.DataFrame(X, columns=list("abc"))):
        with pytest.warns(PrivacyLeakWarning, match="must be public"):
            made = skdp.rehearse(model(), (rows, y), n=3000, epsilons=[5.0], n_repeats=1)
        assert (made.n, made.signal) == (3000, None)
        assert made.scores[0] > 0.9
    assert "public rows" in str(made)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"estimator": KMeans()}, "must be a private estimator"),
        ({"estimator": skdp.DPPCA(2)}, "must be a classifier or a regressor"),
        ({"epsilons": []}, "must contain at least one number"),
        ({"n": 1}, "`n` must be"),
        ({"schema_or_shape": 0}, "got 0"),
        ({"schema_or_shape": (np.ones((20, 1)), np.arange(19) % 2)}, "one target per row of `X` \\(20\\), got 19"),
        ({"signal": 0.4}, "got 0.4"),
        ({"target": 0.0}, "got 0.0"),
        ({"class_prevalences": [0.5, 0.6]}, "with sum 1, one per class"),
        ({"n_repeats": 0}, "`n_repeats` must be"),
    ],
)
def test_what_is_not_valid_is_rejected(given, said):
    terms = {"estimator": model(), "schema_or_shape": 3, "n": 100, "epsilons": [1.0], **given}
    with pytest.raises((ValueError, TypeError), match=said):
        skdp.rehearse(terms.pop("estimator"), terms.pop("schema_or_shape"), **terms)
