"""What happens at a leak is a setting of the code inside a `with` block, of nothing else."""

import re
import threading
import warnings

import joblib
import numpy as np
import pytest
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline

from skdp import (
    DPPCA,
    DPGridSearchCV,
    DPLogisticRegression,
    PrivacyAccountant,
    PrivacyLeakWarning,
    allocate_budget,
    config_context,
)
from skdp._checks.leaks import report_leak, silence
from skdp.mechanisms import GaussianMechanism


def leaks():
    """How a leak is met here: "warn" or "raise"."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        try:
            report_leak("something was read")
        except PrivacyLeakWarning as raised:
            shown, action = [raised, *caught], "raise"
        else:
            shown, action = [warning.message for warning in caught], "warn"
    assert [(type(message), str(message)) for message in shown] == [(PrivacyLeakWarning, "something was read")]
    return action


def test_settings_nest_and_end_with_their_block():
    assert leaks() == "warn"
    assert issubclass(PrivacyLeakWarning, UserWarning)
    with pytest.raises(KeyError), config_context(on_leak="raise"):
        raise KeyError
    assert leaks() == "warn"
    with config_context(on_leak="raise"):
        assert leaks() == "raise"
        with config_context(on_leak="warn"):
            assert leaks() == "warn"
        assert leaks() == "raise"
    assert leaks() == "warn"


@pytest.mark.parametrize("bad", ["error", True])
def test_unknown_settings_are_rejected(bad):
    with (
        pytest.raises(ValueError, match=r"`on_leak` must be 'warn' or 'raise', got") as caught,
        config_context(on_leak=bad),
    ):
        pass
    assert "\n" not in str(caught.value)
    assert leaks() == "warn"


def test_threads_that_a_block_starts_are_inside_it():
    """Else a search with n_jobs=2 would let pass what the user asked to be stopped."""
    found = []
    with config_context(on_leak="raise"):
        thread = threading.Thread(target=lambda: found.append(leaks()))
        thread.start()
        thread.join()
    assert found == ["raise"]


@pytest.mark.parametrize("backend", ["sequential", "threading", "loky"])
def test_fits_in_a_search_are_inside_the_block(backend):
    """The clone of a search raises before a worker starts, so fits of workers are started without one too."""
    X, y = np.linspace(-1, 1, 80).reshape(40, 2), np.arange(40) % 2
    with config_context(on_leak="raise"), joblib.parallel_config(backend, n_jobs=2):
        with pytest.raises(PrivacyLeakWarning, match="inside a search or cross-validation"):
            cross_val_score(DPLogisticRegression(), X, y, cv=KFold(2), error_score="raise")
        with pytest.raises(PrivacyLeakWarning, match="`classes` was not set"):
            joblib.Parallel()(joblib.delayed(DPLogisticRegression().fit)(X, y) for _ in range(2))


def test_a_block_is_not_left_by_another_thread():
    """Two threads with blocks of their own that overlap in time: neither block changes what the other asked for."""
    entered, may_leave, found = threading.Event(), threading.Event(), []

    def other():
        with config_context(on_leak="raise"):
            entered.set()
            may_leave.wait(600)
            found.append(leaks())

    thread = threading.Thread(target=other)
    thread.start()
    entered.wait(600)
    with config_context(on_leak="raise"):
        may_leave.set()
        thread.join()
        assert leaks() == "raise"
    assert found == ["raise"]
    assert leaks() == "warn"


# --- silence ---


def says(message):
    with warnings.catch_warnings(record=True) as caught:
        warnings.warn(message, UserWarning, stacklevel=1)
    return [str(each.message) for each in caught]


def test_no_warning_gets_out_of_silence_and_filters_are_as_they_were():
    with warnings.catch_warnings(action="always"):
        before = list(warnings.filters)
        with silence():
            assert says("one") == []
            with silence():
                assert says("two") == []
            assert says("three") == []
        assert list(warnings.filters) == before
        assert says("four") == ["four"]


@pytest.mark.parametrize("first_ends", ["first", "last"])
def test_silences_that_overlap_in_threads_leave_nothing_behind(first_ends):
    before = list(warnings.filters)
    entered, leave = [threading.Event(), threading.Event()], [threading.Event(), threading.Event()]

    def hold(which):
        with silence():
            entered[which].set()
            leave[which].wait(600)

    threads = [threading.Thread(target=hold, args=(which,)) for which in (0, 1)]
    for which in (0, 1):
        threads[which].start()
        assert entered[which].wait(600)
    assert warnings.filters[0][0] == "ignore"
    for which in (0, 1) if first_ends == "first" else (1, 0):
        assert warnings.filters[0] == ("ignore", None, Warning, None, 0)
        leave[which].set()
        threads[which].join(600)
    assert list(warnings.filters) == before


def test_silence_that_ends_inside_a_block_of_others_leaves_nothing_behind():
    before = list(warnings.filters)
    with pytest.raises(KeyboardInterrupt), silence():
        raise KeyboardInterrupt
    assert list(warnings.filters) == before
    mine, theirs = silence(), warnings.catch_warnings()
    mine.__enter__()
    theirs.__enter__()
    mine.__exit__(None, None, None)
    assert list(warnings.filters) == before
    theirs.__exit__(None, None, None)
    assert list(warnings.filters) == before


# --- where warnings point ---------------------------------------------------------------------------------------------


def _warned_at(work, match):
    with warnings.catch_warnings(record=True, action="always") as caught:
        work()
    return [each.filename for each in caught if re.search(match, str(each.message))]


@pytest.mark.parametrize(
    ("work", "match"),
    [
        (lambda X, y: DPLogisticRegression(classes=[0, 1], delta=0.1).fit(X, y), "at least 1/n"),
        (lambda X, y: DPLogisticRegression().fit(X, y), "`classes` was not set"),
        (lambda X, y: DPLogisticRegression(classes=[0, 1]).fit(X, y[:, None]), "column-vector"),
        (lambda X, y: DPPCA(1, delta=0.1).fit_transform(X), "at least 1/n"),
        (lambda X, y: DPPCA(1, delta=0.1).set_output(transform="pandas").fit_transform(X), "at least 1/n"),
        (lambda X, y: make_pipeline(DPPCA(1, delta=0.1)).fit_transform(X), "at least 1/n"),
        (
            lambda X, y: allocate_budget(
                make_pipeline(DPPCA(1), DPLogisticRegression(classes=[0, 1])), epsilon=1.0, delta=0.1
            ).fit(X, y),
            "at least 1/n",
        ),
        (
            lambda X, y: DPGridSearchCV(
                DPLogisticRegression(classes=[0, 1]), {"max_iter": [1, 2]}, epsilon=1.0, delta=0.1
            ).fit(X, y),
            "at least 1/n",
        ),
        (lambda X, y: GaussianMechanism(1.0, 1.0).release(1.0, random_state=0), "random_state"),
        (lambda X, y: PrivacyAccountant(path="new.budget"), "without a budget"),
    ],
)
def test_a_warning_points_at_the_line_of_the_user(work, match, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
    places = _warned_at(lambda: work(X, (X[:, 0] > 0).astype(int)), match)
    assert places
    assert set(places) == {__file__}
