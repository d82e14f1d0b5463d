"""What a step says of itself: every trait is what a pipeline goes by, for a third party's step as for the library's."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from combinations import over_rows
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from test_extending import Widths

from skdp import DPPCA, DPLogisticRegression, allocate_budget
from skdp._fit.private_step import PrivateStep
from skdp.accounting import GaussianDpEvent
from skdp.base import PrivateEstimator, StepPlan, StepTraits, traits_of
from skdp.ensemble import DPRandomTreesClassifier
from skdp.preprocessing import DPTableVectorizer

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (200, 3))
Y = (X[:, 0] > 0).astype(int)


class Told(Widths):
    """A private transformer that says what it is told to say, and notes what reaches it."""

    def __init__(self, traits=None, heard=None, extra=False, epsilon=1.0, delta=1e-5, noise_multiplier=None,
                 adjacency="zero_out", accounting="pld", accountant=None, n_samples_public=None, random_state=None,
                 shape=None):  # fmt: skip
        super().__init__(
            extra, epsilon, delta, noise_multiplier, adjacency, accounting, accountant, n_samples_public, random_state,
            shape,
        )  # fmt: skip
        self.traits, self.heard = traits, heard

    def __step_traits__(self):
        return replace(super().__step_traits__(), **(self.traits or {}))

    def _learn(self, plan, rows, targets):
        if self.heard is not None:
            self.heard.append(np.array(rows))
        return super()._learn(plan, np.nan_to_num(rows), targets)


class Heard(list):
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

    def _check_rows(self, X):
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


def test_sparse_rows_are_refused_before_a_step_that_takes_none():
    assert fitted(Told({}), Told({})).epsilon_ <= 5.0
    with pytest.raises(ValueError, match="takes no sparse rows"):
        fitted(Told({"gives_sparse_rows": True}), Told({}))


def test_a_fault_is_the_line_by_which_the_pipeline_is_refused():
    def fault(before):
        return "" if traits_of(before).width_is_public else "it wants to know its columns."

    wary = {"fault_behind": fault}
    assert fitted(Told({}), Told(wary)).epsilon_ <= 5.0
    with pytest.raises(ValueError, match="step 'told-2': it wants to know its columns"):
        fitted(Told({"width_is_public": False}), Told(wary))


def test_a_step_that_sets_its_width_ends_what_is_unknown_of_it():
    def fault(before):
        return "" if traits_of(before).width_is_public else "unknown."

    chooser, wary = {"width_is_public": False}, {"fault_behind": fault}
    with pytest.raises(ValueError, match="unknown"):
        fitted(Told(chooser), Told({}), Told(wary))
    assert fitted(Told(chooser), Told({"sets_width": True}), Told(wary)).epsilon_ <= 5.0


def test_gaps_are_zeros_for_all_steps_but_those_that_take_codes():
    for takes_codes in (False, True):
        heard = Heard()
        pipe = make_pipeline(WithGaps({}), Lenient({"takes_codes": takes_codes}, heard))
        allocate_budget(pipe, epsilon=5.0, delta=1e-5).fit(X, Y)
        assert np.isnan(heard[-1][0, 0]) == takes_codes


def test_a_rule_in_the_whole_is_told_of_it_before_the_fit():
    told = Heard()
    pipe = fitted(Told({"note_whole": lambda n, epsilon: told.append((n, epsilon))}), model())
    assert told == [(200, pytest.approx(pipe.epsilon_, rel=1e-6))]


class Formed(TransformerMixin, BaseEstimator):
    """Public rows whose form is asked for at the plan."""

    def __init__(self, asked=None):
        self.asked = asked

    def __step_traits__(self):
        return StepTraits(row_form=lambda n_features: self.asked.append(n_features))


class Planned(PrivateEstimator):
    """The plan of a model behind it."""

    def __init__(self, delta=1e-5):
        self.delta = delta

    def _plan_step(self, n_samples, n_features):
        return StepPlan(GaussianDpEvent, {})


def test_the_form_of_rows_to_come_is_asked_of_the_step_that_makes_them():
    asked = []
    step = PrivateStep(Planned())
    step.maker = Formed(asked)
    step.plan(100, 7, 1e-5)
    assert asked == [7]


@over_rows(
    ("step", "expected"),
    [
        (DPPCA(2), {"width_is_public": True, "sets_width": True}),
        (DPPCA(), {"width_is_public": True, "sets_width": False}),
        (DPPCA("auto"), {"width_is_public": False, "sets_width": False}),
        (DPTableVectorizer(numbers="codes"), {"gives_codes": True, "width_is_public": False}),
        (DPTableVectorizer(numbers="codes").set_output(transform="pandas"), {"gives_codes": False}),
        (DPRandomTreesClassifier(), {"takes_codes": True}),
        (DPRandomTreesClassifier(bounds=(0, 1)), {"takes_codes": False}),
    ],
)
def test_what_steps_of_the_library_say(step, expected):
    traits = traits_of(step)
    assert {name: getattr(traits, name) for name in expected} == expected


def test_traits_follow_from_parameters_alone():
    """They are the same before a fit and after it, whatever the rows were."""
    frame = pd.DataFrame({"a": ["x", "y"] * 100, "b": np.arange(200.0)})
    step = DPTableVectorizer(numbers="codes")
    before = traits_of(step)
    after = traits_of(step.fit(frame))
    assert replace(after, fault_behind=None) == replace(before, fault_behind=None)
