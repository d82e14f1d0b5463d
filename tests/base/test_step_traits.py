"""What a step says of itself: every trait is what a pipeline goes by, for a third party's step as for the library's."""

import contextlib
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from combinations import over_rows
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from test_extending import Widths

from skdp import DPLogisticRegression, allocate_budget
from skdp.base import StepTraits, traits_of
from skdp.preprocessing import DPTableVectorizer

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (200, 3))
Y = (X[:, 0] > 0).astype(int)


class Told(Widths):
    """A private transformer that says what it is told to say, and notes what reaches it."""

    def __init__(self, traits=None, recorded=None, extra=False, epsilon=1.0, delta=1e-5, noise_multiplier=None,
                 adjacency=None, accountant=None, random_state=None,
                 shape=None):  # fmt: skip
        super().__init__(
            extra, epsilon, delta, noise_multiplier, adjacency, accountant, random_state,
            shape,
        )  # fmt: skip
        self.traits, self.recorded = traits, recorded

    def __step_traits__(self):
        return replace(super().__step_traits__(), **(self.traits or {}))

    def used_rows(self, rows):
        if self.recorded is not None:
            self.recorded.append(np.array(rows))
        return np.nan_to_num(rows)


class RecordedLots(list):
    """A list that clones share."""

    def __deepcopy__(self, memo):
        return self


class WithGaps(Told):
    """One that gives rows with gaps."""

    def transform(self, X):
        made = np.array(X, float)
        made[0, 0] = np.nan
        return made


class Lenient(Told):
    """One that takes rows as they come."""

    def read_rows(self, X, *, reset):
        return np.asarray(X)


def fitted(*steps):
    return allocate_budget(make_pipeline(*steps), epsilon=5.0, delta=1e-5).fit(X, Y)


def model():
    return DPLogisticRegression(classes=[0, 1], max_iter=2)


def test_a_step_that_says_nothing_has_the_defaults():
    for step in (Normalizer(), BaseEstimator(), "passthrough", None):
        assert traits_of(step) == StepTraits()
    assert not traits_of(Told()).gives_sparse_rows
    assert traits_of(Told()).width_is_public


def unknown_width(before):
    return "" if traits_of(before).width_is_public else "it wants to know its columns."


WARY, CHOOSER = {"fault_behind": unknown_width}, {"width_is_public": False}


@over_rows(
    ("steps", "message"),
    [
        ([{}, {}], ""),
        ([{"gives_sparse_rows": True}, {}], "does not accept sparse rows"),
        ([{}, WARY], ""),
        ([CHOOSER, WARY], "Step 'told-2': it wants to know its columns"),
        ([CHOOSER, {}, WARY], "it wants to know its columns"),
        ([CHOOSER, {"sets_width": True}, WARY], ""),
    ],
)
def test_step_traits_decide_what_may_follow(steps, message):
    with pytest.raises(ValueError, match=message) if message else contextlib.nullcontext():
        assert fitted(*map(Told, steps)).epsilon_ <= 5.0


def test_gaps_are_zeros_for_all_steps_but_those_that_take_codes():
    for takes_codes in (False, True):
        recorded = RecordedLots()
        pipe = make_pipeline(WithGaps({}), Lenient({"takes_codes": takes_codes}, recorded))
        allocate_budget(pipe, epsilon=5.0, delta=1e-5).fit(X, Y)
        assert np.isnan(recorded[-1][0, 0]) == takes_codes


def test_a_rule_in_the_whole_is_told_of_it_before_the_fit():
    told = RecordedLots()
    pipe = fitted(Told({"note_whole": lambda n, epsilon: told.append((n, epsilon))}), model())
    assert told == [(200, pytest.approx(pipe.epsilon_, rel=1e-6))]


def test_traits_follow_from_parameters_alone():
    """They are the same before a fit and after it, whatever the rows were."""
    frame = pd.DataFrame({"a": ["x", "y"] * 100, "b": np.arange(200.0)})
    step = DPTableVectorizer(numbers="codes")
    before = traits_of(step)
    after = traits_of(step.fit(frame))
    assert replace(after, fault_behind=None) == replace(before, fault_behind=None)
