"""A fitted state appears all at once, beside its own cost: failures, Ctrl-C at any line, threads, parts, clones."""

import itertools
import math
import os
import pathlib
import pickle
import threading
from functools import partial

import interrupts
import numpy as np
import pytest
from combinations import over_rows
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

import skdp
import skdp._dpsgd.solver
from skdp import (
    DPPCA,
    AddRemove,
    DPGridSearchCV,
    DPLogisticRegression,
    DPMLPClassifier,
    PrivacyAccountant,
    allocate_budget,
)
from skdp._dpsgd.solver import DescentSolver
from skdp.accounting import compose, get_epsilon
from skdp.base.budget import releases_of
from skdp.base.fit import fit_publicly
from skdp.ensemble import DPRandomTreesClassifier
from skdp.mechanisms.second_moments import MomentSum

N, DELTA = 300, 1e-4
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(N, 4))
Y = (X[:, 0] > 0).astype(int)


def classifier(**parameters):
    return DPLogisticRegression(**{"classes": [0, 1], "max_iter": 3, "delta": DELTA, **parameters})


def pipeline(accountant=None, epsilon=1.0, **parameters):
    steps = [("pca", DPPCA(3, center=False, accountant=accountant)), ("model", classifier(accountant=accountant))]
    return allocate_budget(Pipeline(steps).set_params(**parameters), epsilon, DELTA, {"pca": 0.5})


def search(accountant=None, epsilon=1.0):
    estimator, grid = classifier(accountant=accountant), {"alpha": [0.0, 0.1]}
    return DPGridSearchCV(estimator, grid, epsilon=epsilon, delta=DELTA, strategy="compose")


MAKERS = {
    "linear": lambda accountant, epsilon: classifier(accountant=accountant, epsilon=epsilon),
    "network": lambda accountant, epsilon: DPMLPClassifier(
        (3,), classes=[0, 1], max_iter=2, sampling_rate=0.5, delta=DELTA, accountant=accountant, epsilon=epsilon
    ),
    "trees": lambda accountant, epsilon: DPRandomTreesClassifier(
        5, 2, bounds=(-1, 1), classes=[0, 1], max_iter=3, delta=DELTA, accountant=accountant, epsilon=epsilon
    ),
    "pca": lambda accountant, epsilon: DPPCA(2, delta=DELTA, accountant=accountant, epsilon=epsilon),
    "pipeline": pipeline,
    "search": search,
}


def state_of(model):
    """What was learned of the rows, as bytes, wherever it is kept."""
    parts = [model.best_estimator_] if hasattr(model, "best_estimator_") else getattr(model, "steps", [("", model)])
    arrays = []
    for part in parts:
        step = part[1] if isinstance(part, tuple) else part
        for name in ("coef_", "intercept_", "components_"):
            arrays.append(np.asarray(getattr(step, name, [])).tobytes())
        for name in ("coefs_", "intercepts_"):
            arrays.extend(each.tobytes() for each in getattr(step, name, []))
    return b"".join(arrays)


# --- a refit that fails ---------------------------------------------------------------------------------------------


@over_rows("kind", ["trees", "pipeline", "search"])  # others: the conformance suite
def test_a_refit_that_is_rejected_leaves_the_old_state_and_its_price(kind):
    model = MAKERS[kind](None, 0.5).fit(X, Y)
    before = state_of(model), model.epsilon_, model.privacy_event_
    spoilt, labels = X.copy(), Y.copy()
    spoilt[3, 1], labels[3] = np.nan, 2 if kind == "trees" else labels[3]  # which take NaN for a gap
    with pytest.raises(ValueError, match="labels that are not in classes" if kind == "trees" else "NaN"):
        model.set_params(epsilon=4.0).fit(spoilt, labels)
    assert (state_of(model), model.epsilon_, model.privacy_event_) == before


def test_a_pipeline_that_fails_at_its_last_step_keeps_all_of_its_old_steps(monkeypatch):
    """A new projection beside an old classifier would cost both fits."""
    accountant = PrivacyAccountant()
    model = pipeline(accountant).fit(X, Y)
    before, steps = (state_of(model), model.epsilon_), list(model.steps)
    monkeypatch.setattr(DescentSolver, "train", lambda *arguments: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model.fit(X, Y)
    assert model.steps == steps
    assert (state_of(model), model.epsilon_) == before
    assert len(accountant.history) == 2  # the charge stands


# --- parts that move on ---------------------------------------------------------------------------------------------


def test_a_part_that_learns_more_moves_the_price_of_the_whole():
    accountant = PrivacyAccountant()
    model = pipeline(accountant).fit(X, Y)
    first = model.privacy_event_
    for _ in range(3):
        model[-1].partial_fit(model[:-1].transform(X), Y)
    assert model.privacy_event_ == compose([first, *[charge.event for charge in accountant.history[1:]]])
    assert model.epsilon_ == get_epsilon(accountant.event, DELTA) > get_epsilon(first, DELTA)


def test_a_part_that_is_fitted_anew_leaves_what_the_others_depend_on():
    """The classifier still depends on the first projection, which the second one does not undo."""
    model = pipeline().fit(X, Y)
    first = model.privacy_event_
    model[0].fit(X)
    assert model.privacy_event_ == compose([first, model[0].privacy_event_])
    model.fit(X, Y)
    assert model.privacy_event_ == first  # all steps are new


def test_a_winner_that_learns_more_moves_the_price_of_the_search():
    grid = {"model__alpha": [0.0, 0.1]}
    model = DPGridSearchCV(pipeline(), grid, epsilon=1.0, delta=DELTA, strategy="compose").fit(X, Y)
    first, best = model.privacy_event_, model.best_estimator_
    assert best.privacy_event_ == first
    best[-1].partial_fit(best[:-1].transform(X), Y)
    assert model.privacy_event_ == best.privacy_event_ != first
    assert model.epsilon_ == best.epsilon_ > get_epsilon(first, DELTA)


def test_a_part_of_another_adjacency_has_no_joint_price():
    """Its noise may be less: at the cost of the whole's own kind of neighbors it would cost too little."""
    model = pipeline().fit(X, Y)
    model[0].set_params(adjacency="replace_one", epsilon=4.0).fit(X)
    for name in ("epsilon_", "privacy_event_"):
        with pytest.raises(ValueError, match="A part was fitted with adjacency='replace_one' and the whole"):
            getattr(model, name)
    winner = search().fit(X, Y)
    winner.best_estimator_.set_params(adjacency=AddRemove(N)).fit(X, Y)
    with pytest.raises(ValueError, match="Fit the whole again"):
        _ = winner.epsilon_


@over_rows("kind", MAKERS)
def test_a_state_that_was_pickled_keeps_what_it_depends_on(kind):
    model = MAKERS[kind](None, 1.0).fit(X, Y)
    copied = pickle.loads(pickle.dumps(model))
    assert [each.id for each in releases_of(copied)] == [each.id for each in releases_of(model)]
    assert (copied.epsilon_, copied.privacy_event_) == (model.epsilon_, model.privacy_event_)


def test_a_subclass_that_does_more_in_fit_is_rejected():
    """The phases of a fit are called, and not what somebody put around them."""

    class Centered(DPPCA):
        def transform(self, rows):
            return super().transform(rows) - np.mean(rows)

    class Scaled(DPLogisticRegression):
        def fit(self, rows, y, sample_weight=None):
            return super().fit(rows / np.max(rows), y, sample_weight)

    class Renamed(DPPCA):
        """Does nothing more."""

    for step, method in ((Centered(2), "transform"), (Scaled(), "fit")):
        with pytest.raises(ValueError, match=f"overrides {method} of an skdp class"):
            allocate_budget(make_pipeline(step), 1.0, DELTA)
    with pytest.raises(ValueError, match="overrides fit"):
        DPGridSearchCV(Scaled(classes=[0, 1]), {"alpha": [0.0, 0.1]}).fit(X, Y)
    assert allocate_budget(make_pipeline(Renamed(2)), 1.0, DELTA).fit(X).epsilon_ <= 1.0


def test_a_slice_has_no_budget_of_its_own():
    model = pipeline().fit(X, Y)
    part = model[:-1]
    np.testing.assert_array_equal(part.transform(X), model[0].transform(X))
    for method in ("fit", "fit_transform"):
        with pytest.raises(TypeError, match="A slice of a private pipeline cannot be fitted"):
            getattr(part, method)(X, Y)
    assert not hasattr(part, "epsilon")
    assert model["pca"] is model[0]


# --- threads and clones while a fit runs ------------------------------------------------------------------------------


def act_during_fit(monkeypatch, model, act):
    """Fit in a thread, and act before the first part learns. Return what that gave, and the errors of the fit."""
    owner = type(getattr(model, "estimator", model))
    owner, name = (DescentSolver, "train") if owner is DPLogisticRegression else (MomentSum, "add")
    inside, go, learn, errors = threading.Event(), threading.Event(), getattr(owner, name), []

    def waiting(*arguments, **keywords):
        inside.set()
        assert go.wait(600)
        return learn(*arguments, **keywords)

    def fit():
        try:
            model.fit(X, Y)
        except RuntimeError as error:
            errors.append(str(error))

    monkeypatch.setattr(owner, name, waiting)
    running = threading.Thread(target=fit)
    running.start()
    assert inside.wait(600)
    found = act()
    go.set()
    running.join()
    return found, errors


@pytest.mark.parametrize("kind", ["linear", "pipeline", "search"])
def test_a_clone_taken_and_parameters_read_while_it_fits_are_the_users_own(kind, monkeypatch):
    accountant = PrivacyAccountant()
    model = MAKERS[kind](accountant, 1.0)

    def parameters():
        return {name: value for name, value in model.get_params().items() if not hasattr(value, "get_params")}

    before = parameters()
    (found, taken), _ = act_during_fit(monkeypatch, model, lambda: (parameters(), clone(model)))
    assert found.keys() == before.keys()
    assert all(found[name] is before[name] or found[name] == before[name] for name in before if name != "steps")
    n_charges = len(accountant.history)
    taken.fit(X, Y)
    assert len(accountant.history) == n_charges + 1


def test_pipeline_parameters_set_during_fit_are_kept(monkeypatch):
    """An accountant is charged from the next fit on; other steps are not published."""
    model, accountant = pipeline(), PrivacyAccountant()
    given = {"pca__accountant": accountant, "model__accountant": accountant}
    with monkeypatch.context() as patch:
        _, errors = act_during_fit(patch, model, lambda: model.set_params(**given))
    assert [step.accountant for _, step in model.steps] == [accountant, accountant]
    assert (errors, hasattr(model["model"], "coef_")) == ([], True)
    assert not accountant.history
    other = clone(model)
    exchanged = DPMLPClassifier((2,), classes=[0, 1])
    _, errors = act_during_fit(monkeypatch, other, lambda: other.set_params(model=exchanged))
    assert "The steps were replaced during the fit" in errors[0]
    assert not hasattr(other, "epsilon_")
    assert len(accountant.history) == 1


def test_two_threads_on_one_pipeline_are_two_charges(monkeypatch):
    accountant = PrivacyAccountant()
    model = pipeline(accountant)
    second = threading.Thread(target=model.fit, args=(X, Y))
    act_during_fit(monkeypatch, model, second.start)
    second.join()
    assert len(accountant.history) == 2
    assert [step.accountant for _, step in model.steps] == [accountant, accountant]
    model.fit(X, Y)
    assert len(accountant.history) == 3


# --- Ctrl-C at any line ---

PACKAGE = str(pathlib.Path(skdp.__file__).parent) + os.sep
PRICING = PACKAGE + "accounting" + os.sep  # reads nothing of a state; the ledger has tests of its own


def in_package(frame):
    name = frame.f_code.co_filename
    return name.startswith(PACKAGE) and not name.startswith(PRICING)


InterruptAt = partial(interrupts.InterruptAt, counts=in_package)


def copy_with_a_ledger(pickled, unit):
    """A fitted model that is asked for a dearer fit, and the ledger that it is charged to."""
    ledger, model = PrivacyAccountant(unit=unit), pickle.loads(pickled).set_params(epsilon=4.0)
    for part in [model, getattr(model, "estimator", None), *(step for _, step in getattr(model, "steps", []))]:
        if hasattr(part, "accountant"):
            part.set_params(accountant=ledger)
    return model, ledger


PLACES = [("linear", 60, "row"), ("pipeline", 30, "row"), ("search", 10, "row"), ("pca", 60, "household")]
SLOW = [pytest.param(kind, 400, unit, marks=pytest.mark.slow) for kind in MAKERS for unit in ("row", "household")]


@pytest.mark.parametrize(("kind", "n_places", "unit"), [*PLACES, *SLOW])
def test_an_interrupt_at_any_line_leaves_no_state_that_costs_more_than_it_says(kind, n_places, unit):
    """What stands is the old state of rows with its cost, or a new one, whole, whose event was charged."""
    given, protected = ({}, "row") if unit == "row" else ({"groups": np.arange(N) // 2}, "group")
    cheap = MAKERS[kind](None, 0.2).fit(X, Y)
    old, old_state, old_price = pickle.dumps(cheap), state_of(cheap), cheap.epsilon_
    for _ in range(2):  # the first fit fills caches, and runs more lines
        with InterruptAt(0) as counter:
            copy_with_a_ledger(old, unit)[0].fit(X, Y, **given)
    assert counter.seen > 100
    n_new = n_uncharged = 0
    some = range(1, counter.seen - 60, max(1, counter.seen // n_places))
    last_ones = range(counter.seen - 60, 10**9, 1 if n_places > 100 else 3)
    for k in itertools.chain(some, last_ones):  # a fit's number of lines varies with what is cached
        model, ledger = copy_with_a_ledger(old, unit)
        with InterruptAt(k) as interrupt:
            model.fit(X, Y, **given)
        if interrupt.seen < k:  # it came to its end
            break
        n_uncharged += not ledger.history
        units = {release.unit for release in releases_of(model)}
        assert {charge.unit for charge in ledger.history} <= {unit}
        if state_of(model) == old_state:
            assert (model.privacy_unit_, units, model.epsilon_) == ("row", {"row"}, old_price)
            continue
        n_new += 1
        assert (model.privacy_unit_, units) == (protected, {protected})
        assert model.epsilon_ == pytest.approx(4.0, rel=2e-3)
        assert [charge.event for charge in ledger.history] == [model.privacy_event_]
        assert len(model.predict(X) if hasattr(model, "predict") else model.transform(X)) == N
    assert n_uncharged > 0
    assert n_new > 0  # the last lines come after publication, or the loop hands out the steps done


def test_an_interrupt_at_any_line_of_an_instalment_is_paid_for():
    """`partial_fit`: the coefficients are the old ones at the old cost or others at the cost of both."""
    first = classifier(epsilon=0.2).fit(X, Y)
    old = pickle.dumps(first)
    with InterruptAt(0) as counter:
        pickle.loads(old).partial_fit(X, Y)
    both = pickle.loads(old).partial_fit(X, Y).epsilon_
    for k in range(1, counter.seen + 1, 7):
        model = pickle.loads(old)
        with InterruptAt(k):
            model.partial_fit(X, Y)
        moved = not np.array_equal(model.coef_, first.coef_)
        assert model.epsilon_ == (
            both if moved or model.n_steps_ > 3 or len(releases_of(model)) > 1 else first.epsilon_
        )


def test_ctrl_c_in_the_last_step_keeps_the_pipeline_of_the_steps_done(monkeypatch):
    def interrupted(model, plan, optimizer, theta, stream, **keywords):
        return theta + 1.0, 2

    accountant = PrivacyAccountant()
    model = pipeline(accountant)
    monkeypatch.setattr(skdp._dpsgd.solver, "run_dpsgd", interrupted)
    with pytest.warns(skdp.exceptions.FitInterruptedWarning, match="after 2 of 3 steps"):
        model.fit(X, Y)
    assert model["model"].n_steps_ == 2
    assert (model.privacy_event_,) == tuple(charge.event for charge in accountant.history)


def test_public_steps_of_the_user_are_not_written_on():
    public = FunctionTransformer(np.abs)
    given = make_pipeline(public, classifier())
    model = allocate_budget(given, 1.0, DELTA)
    steps = list(model.steps)
    model.fit(X, Y)
    assert not hasattr(steps[1][1], "coef_")
    assert not hasattr(public, "n_features_in_")
    assert math.isfinite(model.score(X, Y))


def test_a_public_fit_publishes_what_it_sets_or_nothing():
    target = DPPCA()
    target.old_ = np.ones(2)

    def learn(work):
        assert "old_" not in vars(work)
        work.new_ = 1

    assert fit_publicly(target, learn) is target
    assert (target.new_, "old_" in vars(target)) == (1, False)

    def fail(work):
        work.new_ = 2
        raise ValueError("as planned")

    with pytest.raises(ValueError, match="as planned"):
        fit_publicly(target, fail)
    assert target.new_ == 1
