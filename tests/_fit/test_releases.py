"""A fitted state appears all at once, beside its own price: failures, Ctrl-C at any line, threads, parts, clones."""

from __future__ import annotations

import itertools
import linecache
import math
import os
import pathlib
import pickle
import sys
import threading

import numpy as np
import pytest
from combinations import over_rows
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

import skdp
import skdp._training.recipe
from skdp import (
    DPPCA,
    DPGridSearchCV,
    DPLogisticRegression,
    DPMLPClassifier,
    PrivacyAccountant,
    allocate_budget,
)
from skdp._fit.releases import releases_of
from skdp.accounting import compose, get_epsilon
from skdp.ensemble import DPRandomTreesClassifier
from skdp.mechanisms.second_moments import MomentSum

pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.FitInterruptedWarning")

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
def test_a_refit_that_is_refused_leaves_the_old_state_and_its_price(kind):
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
    monkeypatch.setattr(DPLogisticRegression, "_learn", lambda *arguments: 1 / 0)
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
    model = search().fit(X, Y)
    first = model.privacy_event_
    last = model.best_estimator_.partial_fit(X, Y)
    assert model.privacy_event_ == last.privacy_event_ != first
    assert model.epsilon_ == last.epsilon_
    inside = DPGridSearchCV(pipeline(), {"model__alpha": [0.0, 0.1]}, epsilon=1.0, delta=DELTA, strategy="compose").fit(
        X, Y
    )
    first, best = inside.privacy_event_, inside.best_estimator_
    assert best.privacy_event_ == first
    best[-1].partial_fit(best[:-1].transform(X), Y)
    assert inside.privacy_event_ == best.privacy_event_ != first
    assert inside.epsilon_ == best.epsilon_ > get_epsilon(first, DELTA)


def test_a_part_of_another_adjacency_has_no_joint_price():
    """Its noise may be less: at the price of the whole's own kind of neighbours it would cost too little."""
    model = pipeline().fit(X, Y)
    model[0].set_params(adjacency="replace_one", epsilon=4.0).fit(X)
    for name in ("epsilon_", "privacy_event_"):
        with pytest.raises(ValueError, match="a part was fitted under adjacency='replace_one' and the whole"):
            getattr(model, name)
    winner = search().fit(X, Y)
    winner.best_estimator_.set_params(adjacency="add_remove", n_samples_public=N).fit(X, Y)
    with pytest.raises(ValueError, match="fit the whole again"):
        _ = winner.epsilon_


@over_rows("kind", MAKERS)
def test_a_state_that_was_pickled_keeps_what_it_depends_on(kind):
    model = MAKERS[kind](None, 1.0).fit(X, Y)
    copied = pickle.loads(pickle.dumps(model))
    assert [each.id for each in releases_of(copied)] == [each.id for each in releases_of(model)]
    assert (copied.epsilon_, copied.privacy_event_) == (model.epsilon_, model.privacy_event_)


def test_a_state_without_releases_is_not_continued():
    """The next instalment would be priced as if it were the first."""
    accountant = PrivacyAccountant()
    model = classifier(warm_start=True, accountant=accountant).fit(X, Y)
    del model.__dict__["_fitted_releases"]
    with pytest.raises(ValueError, match="does not tell its releases: fit a clone"):
        model.fit(X, Y)
    assert len(accountant.history) == 1


def test_a_subclass_that_does_more_in_fit_is_refused():
    """The phases of a fit are called, and not what somebody put around them."""

    class Centred(DPPCA):
        def transform(self, rows):
            return super().transform(rows) - np.mean(rows)

    class Scaled(DPLogisticRegression):
        def fit(self, rows, y, sample_weight=None):
            return super().fit(rows / np.max(rows), y, sample_weight)

    class Renamed(DPPCA):
        """Does nothing more."""

    for step, method in ((Centred(2), "transform"), (Scaled(), "fit")):
        with pytest.raises(ValueError, match=f"overrides {method}, which a budgeted pipeline does not call"):
            allocate_budget(make_pipeline(step), 1.0, DELTA)
    with pytest.raises(ValueError, match="overrides fit"):
        DPGridSearchCV(Scaled(classes=[0, 1]), {"alpha": [0.0, 0.1]}).fit(X, Y)
    assert allocate_budget(make_pipeline(Renamed(2)), 1.0, DELTA).fit(X).epsilon_ <= 1.0


def test_a_slice_has_no_budget_of_its_own():
    model = pipeline().fit(X, Y)
    part = model[:-1]
    np.testing.assert_array_equal(part.transform(X), model[0].transform(X))
    for method in ("fit", "fit_transform"):
        with pytest.raises(TypeError, match="a slice of a budgeted pipeline has no budget"):
            getattr(part, method)(X, Y)
    assert not hasattr(part, "epsilon")
    assert model["pca"] is model[0]


# --- threads and clones while a fit runs ------------------------------------------------------------------------------


def pause_in(monkeypatch, owner, name):
    """Make a method wait for `go` and tell by `inside` that it waits."""
    inside, go, original = threading.Event(), threading.Event(), getattr(owner, name)

    def waiting(*arguments, **keywords):
        inside.set()
        assert go.wait(600)
        return original(*arguments, **keywords)

    monkeypatch.setattr(owner, name, waiting)
    return inside, go


@pytest.mark.parametrize("kind", ["linear", "pca", "pipeline", "search"])
def test_a_clone_taken_and_parameters_read_while_it_fits_are_the_users_own(kind, monkeypatch):
    accountant = PrivacyAccountant()
    model = MAKERS[kind](accountant, 1.0)
    before = {name: value for name, value in model.get_params().items() if not hasattr(value, "get_params")}
    paused = (MomentSum, "add") if kind in ("pca", "pipeline") else (DPLogisticRegression, "_learn")
    inside, go = pause_in(monkeypatch, *paused)
    running = threading.Thread(target=model.fit, args=(X, Y))
    running.start()
    assert inside.wait(600)
    taken = clone(model)
    found = {name: value for name, value in model.get_params().items() if not hasattr(value, "get_params")}
    go.set()
    running.join()
    assert found.keys() == before.keys()
    assert all(found[name] is before[name] or found[name] == before[name] for name in before if name != "steps")
    n_charges = len(accountant.history)
    taken.fit(X, Y)
    assert len(accountant.history) == n_charges + 1


def test_an_accountant_that_is_set_while_a_pipeline_fits_is_kept(monkeypatch):
    model, accountant = pipeline(), PrivacyAccountant()
    inside, go = pause_in(monkeypatch, MomentSum, "add")
    running = threading.Thread(target=model.fit, args=(X, Y))
    running.start()
    assert inside.wait(600)
    model.set_params(pca__accountant=accountant, model__accountant=accountant)
    go.set()
    running.join()
    assert [step.accountant for _, step in model.steps] == [accountant, accountant]
    assert hasattr(model["model"], "coef_")
    model.fit(X, Y)
    assert len(accountant.history) == 1


def test_steps_that_are_exchanged_while_they_are_fitted_are_not_published(monkeypatch):
    model, accountant, raised = pipeline(), PrivacyAccountant(), []
    model.set_params(pca__accountant=accountant)

    def fit():
        with pytest.raises(RuntimeError, match="the steps were exchanged while they were fitted"):
            model.fit(X, Y)
        raised.append(True)

    inside, go = pause_in(monkeypatch, MomentSum, "add")
    running = threading.Thread(target=fit)
    running.start()
    assert inside.wait(600)
    model.set_params(model=DPMLPClassifier((2,), classes=[0, 1]))
    go.set()
    running.join()
    assert raised
    assert not hasattr(model, "epsilon_")
    assert len(accountant.history) == 1


def test_two_threads_on_one_pipeline_are_two_charges(monkeypatch):
    accountant = PrivacyAccountant()
    model = pipeline(accountant)
    inside, go = pause_in(monkeypatch, MomentSum, "add")
    threads = [threading.Thread(target=model.fit, args=(X, Y)) for _ in range(2)]
    threads[0].start()
    assert inside.wait(600)
    threads[1].start()
    go.set()
    for thread in threads:
        thread.join()
    assert len(accountant.history) == 2
    assert [step.accountant for _, step in model.steps] == [accountant, accountant]
    model.fit(X, Y)
    assert len(accountant.history) == 3


# --- Ctrl-C at any line ---

PACKAGE = str(pathlib.Path(skdp.__file__).parent) + os.sep
PRICING = PACKAGE + "accounting" + os.sep  # reads nothing of a state; the ledger has tests of its own


class InterruptAt:
    """Raises KeyboardInterrupt before the k-th line that runs in the package; counts them all if k is None."""

    def __init__(self, k=None):
        self.k, self.seen = k, 0

    def __call__(self, frame, event, argument):
        name = frame.f_code.co_filename
        if not name.startswith(PACKAGE) or name.startswith(PRICING):
            return None
        if event == "line" and not linecache.getline(name, frame.f_lineno).strip().startswith("with "):
            # at such a line's second event, on the way out, a hook could leave a lock taken; a signal cannot
            self.seen += 1
            if self.seen == self.k:
                raise KeyboardInterrupt
        return self

    def __enter__(self):
        self.found = sys.gettrace()  # coverage's, or a debugger's
        sys.settrace(self)
        return self

    def __exit__(self, *raised):
        sys.settrace(self.found)
        return raised[0] is KeyboardInterrupt


def copy_with_a_ledger(pickled, unit=None):
    """A fitted model that is asked for a dearer fit, and the ledger that it is charged to."""
    ledger, model = PrivacyAccountant(unit=unit), pickle.loads(pickled).set_params(epsilon=4.0)
    for part in [model, getattr(model, "estimator", None), *(step for _, step in getattr(model, "steps", []))]:
        if hasattr(part, "accountant"):
            part.set_params(accountant=ledger)
    return model, ledger


SOME_PLACES = {"linear": 150, "pca": 100, "network": 60, "trees": 60, "pipeline": 60, "search": 30}


@pytest.mark.parametrize(
    ("kind", "n_places"),
    [*SOME_PLACES.items(), *(pytest.param(kind, 400, marks=pytest.mark.slow) for kind in SOME_PLACES)],
)
def test_an_interrupt_at_any_line_leaves_no_state_that_costs_more_than_it_says(kind, n_places):
    """What stands is the old state with its price, or a new one whose event was charged, whole and consistent."""
    cheap = MAKERS[kind](None, 0.2).fit(X, Y)
    old, old_state, old_price = pickle.dumps(cheap), state_of(cheap), cheap.epsilon_
    for _ in range(2):  # the first fit fills caches, and runs more lines
        with InterruptAt() as counter:
            copy_with_a_ledger(old)[0].fit(X, Y)
    assert counter.seen > 100
    n_new = n_uncharged = 0
    some = range(1, counter.seen - 60, max(1, counter.seen // n_places))
    last_ones = range(counter.seen - 60, 10**9, 1 if n_places > 100 else 3)
    for k in itertools.chain(some, last_ones):  # a fit's number of lines varies with what is cached
        model, ledger = copy_with_a_ledger(old)
        with InterruptAt(k) as interrupt:
            model.fit(X, Y)
        if interrupt.seen < k:  # it came to its end
            break
        n_uncharged += not ledger.history
        if state_of(model) == old_state:
            assert model.epsilon_ == old_price
            continue
        n_new += 1
        assert model.epsilon_ == pytest.approx(4.0, rel=2e-3)
        assert [charge.event for charge in ledger.history] == [model.privacy_event_]
        assert len(model.predict(X) if hasattr(model, "predict") else model.transform(X)) == N
    assert n_uncharged > 0
    assert n_new > 0  # the last lines come after publication, or the loop hands out the steps done


GROUPS = np.arange(N) // 2


@pytest.mark.parametrize(
    ("kind", "every"),
    [("pca", 61), *(pytest.param(each, 1, marks=pytest.mark.slow) for each in MAKERS)],
)
def test_an_interrupt_at_any_line_leaves_no_rows_that_pass_as_units(kind, every):
    """A model of rows that is fitted to units: what stands is that of rows and says so, or one of units that paid."""
    of_rows = MAKERS[kind](None, 0.2).fit(X, Y)
    old, old_state, old_price = pickle.dumps(of_rows), state_of(of_rows), of_rows.epsilon_
    with InterruptAt() as counter:
        copy_with_a_ledger(old, unit="household")[0].fit(X, Y, groups=GROUPS)
    n_old = n_new = 0
    spread = range(1, counter.seen - 60, max(every, counter.seen // 400))
    for k in itertools.chain(spread, range(counter.seen - 60, 10**9, 1 + every // 10)):
        model, ledger = copy_with_a_ledger(old, unit="household")
        with InterruptAt(k) as interrupt:
            model.fit(X, Y, groups=GROUPS)
        if interrupt.seen < k:
            break
        units = {release.unit for release in releases_of(model)}
        assert {charge.unit for charge in ledger.history} <= {"household"}
        if state_of(model) == old_state:
            assert (model.privacy_unit_, units, model.epsilon_) == ("row", {"row"}, old_price)
            n_old += 1
            continue
        assert (model.privacy_unit_, units) == ("group", {"group"})
        assert [charge.event for charge in ledger.history] == [model.privacy_event_]
        n_new += 1
    assert n_old > 0
    assert n_new > 0


def test_an_interrupt_at_any_line_of_an_instalment_is_paid_for():
    """`partial_fit`: the coefficients are the old ones at the old price or others at the price of both."""
    first = classifier(epsilon=0.2).fit(X, Y)
    old = pickle.dumps(first)
    with InterruptAt() as counter:
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
    monkeypatch.setattr(skdp._training.recipe, "run_dpsgd", interrupted)
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


def test_a_path_that_is_set_later_is_absolute_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = classifier().set_params(accountant="census.budget")
    budgeted = pipeline().set_params(pca__accountant=pathlib.Path("census.budget"))
    assert model.accountant == budgeted["pca"].accountant == str(tmp_path / "census.budget")
    assert clone(budgeted)["pca"].accountant == model.accountant


def test_no_lock_is_left_by_interrupts():
    """After all of the above another thread can still set parameters and publish."""
    done = []
    thread = threading.Thread(target=lambda: done.append(pipeline().set_params(epsilon=0.5).fit(X, Y).epsilon_))
    thread.start()
    thread.join(600)
    assert done
