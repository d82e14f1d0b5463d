"""A charge stands before training sees a row, and what a fit publishes is on a list."""

import inspect
import re

import numpy as np
import pytest
from combinations import combined
from guarantee_cases import ESTIMATORS, POISSON, PROPERTIES, PUBLISHED, UNDOCUMENTED, assert_same_value, seeded
from relations import with_n_public

from skdp import BudgetExceededError, PrivacyAccountant
from skdp.accounting import compose, flatten, get_epsilon

# --- charges ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_an_aborted_instalment_leaves_the_model_before_it(draw, monkeypatch, kind):
    X, y = draw(60)
    accountant = PrivacyAccountant()
    model = seeded(kind=kind, accountant=accountant).fit(X, y)
    before = {name: getattr(model, name) for name in PUBLISHED[type(model)] if hasattr(model, name)}
    monkeypatch.setattr(ESTIMATORS[kind][1], "clipped_gradient_sum", lambda *arguments: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model.partial_fit(X, y)
    assert len(accountant.history) == 2
    for name, value in before.items():
        assert_same_value(name, getattr(model, name), value)


@pytest.mark.parametrize(("seed", "first_sampled"), [(0, False), (1, True)])
def test_no_sequence_of_fits_ends_above_the_ceiling(draw, seed, first_sampled):
    """Property 18, in one process: fits of sizes chosen by a user who looks at what was admitted."""
    X, y = draw(60)
    rng = np.random.default_rng(seed)
    accountant = PrivacyAccountant(epsilon=2.0, delta=1e-5)
    admitted = rejected = 0
    while rejected < 12:
        size = accountant.remaining() * rng.uniform(0.05, 1.5) + 0.01
        sampling = POISSON if (admitted == 0) == first_sampled else {}
        model = seeded(accountant=accountant, epsilon=size, random_state=None, **sampling)
        try:
            model.fit(X, y)
            admitted += 1
        except BudgetExceededError:
            rejected += 1
        assert len(accountant.history) == admitted
        assert accountant.get_epsilon() <= 2.0
    assert admitted >= 1


ESTIMATED = {"linear": 1, "network": 1, "trees": 2, "trees regression": 2}  # before the first step of a first run


@combined(kind=ESTIMATORS, adjacency=["zero_out", "add_remove", "replace_one"], method=["pld", "rdp"])
def test_epsilon_is_the_price_of_the_published_event(draw, released, method, adjacency, kind):
    """Every release that ran, over all instalments, is in `privacy_event_`, and `epsilon_` is its cost."""
    X, y = draw(60)
    ledger = PrivacyAccountant(method=method)
    model = seeded(kind=kind, accountant=ledger, adjacency=with_n_public(adjacency, 60), max_iter=200)
    model.fit(X, y)
    model.set_params(epsilon=0.5, max_iter=10).partial_fit(X, y)
    model.set_params(warm_start=True, epsilon=0.3).fit(X, y)
    n_releases = 220 + ESTIMATED.get(kind, 0) + 3  # an offset each
    assert sum(flatten(model.privacy_event_).values()) == len(released) == n_releases
    assert model.n_steps_ == 220
    assert flatten(model.privacy_event_) == flatten(compose(mechanism.event for _, mechanism in released))
    cost = get_epsilon(model.privacy_event_, model.delta_, method=method, adjacency=adjacency)
    assert model.epsilon_ == cost


# --- what is published ------------------------------------------------------------------------------------------------


@combined(kind=ESTIMATORS, life=["fit", "partial_fit twice", "warm_start", "verbose"])
def test_fit_publishes_what_is_on_the_list(draw, life, kind, capsys):
    X, y = draw(60)
    options = {"warm_start": life == "warm_start", "verbose": int(life == "verbose")}
    model = seeded(kind=kind, accountant=PrivacyAccountant(), **options)
    parameters = set(model.get_params())
    model = model.partial_fit(X, y).partial_fit(X, y) if life == "partial_fit twice" else model.fit(X, y)
    expected = PUBLISHED[type(model)].keys() | UNDOCUMENTED[type(model)].keys()
    of_others = {"feature_names_in_", "_lineage"}  # of other tables, or of a model in a composition
    of_others |= {f"_fitted_{name}" for name in ("group_name", "row_norm", "row_form", "form_of_coef", "inference")}
    assert set(vars(model)) - parameters == expected - of_others - PROPERTIES


@pytest.mark.parametrize("estimator", PUBLISHED, ids=lambda estimator: estimator.__name__)
def test_the_list_is_the_documented_one(estimator):
    section = inspect.getdoc(estimator).split("Attributes\n----------\n")[1].split("\nSee Also\n")[0]
    entries = re.findall(r"(?m)^(\w.*) : ", section)
    assert {name for entry in entries for name in entry.split(", ")} == PUBLISHED[estimator].keys()
