"""Several synthetic tables: what they are made of, and how far they are from one another."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from combinations import over_rows
from replay import recording
from scipy import stats

from skdp.mechanisms.bounded_sum import centered
from skdp.synthesis import DPMarginalSynthesizer
from skdp.synthesis.marginals.noisy_tables import all_tables

FALSE_ALARM = 1e-6
N, SIGMA = 400, 20.0
SCHEMA = {"flag": [0, 1], "job": ["clerk", "nurse", "none"]}


def people(n=N):
    rng = np.random.default_rng(0)
    flag = (rng.random(n) < 0.4).astype(int)
    return pd.DataFrame({"flag": flag, "job": np.where(flag == 1, "nurse", rng.choice(["clerk", "none"], n))})


def synthesizer(**parameters):
    given = {"schema": SCHEMA, "classes": ["a", "b"], "random_state": 0, "n_components": 8, "max_iter": 40}
    return DPMarginalSynthesizer(**{**given, "epsilon": None, "noise_multiplier": SIGMA, **parameters})


def labels(frame):
    return np.where(frame["job"] == "nurse", "a", "b")


@pytest.fixture(scope="module")
def fitted():
    return synthesizer(triples=False).fit(people(), labels(people()))


def test_tables_have_the_form_of_samples_and_the_first_one_has_more_rows(fitted):
    sets = list(fitted.sample_sets(3, random_state=1))
    assert [len(X) for X, _ in sets] == [3 * N, N, N, N]
    for X, y in sets:
        assert (X.dtypes == people().dtypes).all()
        assert set(y) == {"a", "b"}
    again = list(fitted.sample_sets(3, random_state=1))
    for (X, y), (same, y_too) in zip(sets, again, strict=True):
        pd.testing.assert_frame_equal(X, same)
        np.testing.assert_array_equal(y, y_too)
    assert not sets[1][0].equals(sets[2][0])
    plain = synthesizer().fit(people())
    assert [each.shape for each in plain.sample_sets(2, 5)] == [(10, 2), (5, 2), (5, 2)]


def test_tables_are_spread_by_sampling_and_noise_of_the_size_of_the_fit(fitted):
    """The share of a flag in the redrawn tables, whose noise is known: nothing shrinks columns."""
    how, rng = fitted._fitted_redrawing, np.random.default_rng(0)
    assert how.measurement.noise_multiplier == SIGMA
    shares = fitted.marginals_[-1] / fitted.marginals_[-1].sum()
    tables = [how.measure_again(fitted.components_, shares, rng) for _ in range(200)]
    found = np.array([each.ones[0][1] for each in tables])
    made = fitted.sample(200_000, random_state=0)[0]["flag"].mean()
    sums = all_tables(how.terms.levels, how.terms.has_label, how.terms.with_triples)
    noise = (
        SIGMA / (sums.weights[sums.sets.index((0,))] * N) / np.sqrt(2.0)
    )  # centering takes half of two entries' variance
    variance = made * (1.0 - made) / N + noise**2
    low, high = stats.chi2.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], 199) * variance / 199
    assert low < found.var(ddof=1) < high
    assert noise**2 > 0.2 * variance  # else the noise would not be seen
    assert abs(found.mean() - made) < 5.5 * np.sqrt(variance / 200 + made / 200_000)


def test_models_are_of_the_noisy_tables_as_they_are():
    """Of columns that are independent ``sample`` has no interaction, and these have that of the noise, which varies."""
    frame = people().assign(job=np.random.default_rng(1).choice(["clerk", "nurse", "none"], N))
    model = synthesizer(noise_multiplier=10.0, n_components=50, max_iter=200, random_state=1).fit(frame)
    how = model._fitted_redrawing
    noisy, wanted = how.model_of(how.noisy, np.random.default_rng(0)), how.noisy[(0, 1)].values
    shrunk = noisy._replace(probabilities=model.components_)
    of_noisy, of_shrunk = (centered(each.column(0).T @ each.column(1) / 50) for each in (noisy, shrunk))
    assert np.linalg.norm(of_noisy - wanted) < 0.1 * np.linalg.norm(wanted)
    assert np.linalg.norm(of_shrunk - wanted) > 0.3 * np.linalg.norm(wanted)


def test_nothing_is_charged_and_the_generator_stays_as_it_was(fitted):
    before = pickle.dumps(copy.copy(fitted))
    sets = fitted.sample_sets(2, 10, random_state=0)
    with recording([]) as releases:
        next(sets)
    assert releases == []
    first = [X for X, _ in fitted.sample_sets(2, 10, random_state=0)]
    assert len(first) == 3
    assert pickle.dumps(copy.copy(fitted)) == before
    loaded = pickle.loads(pickle.dumps(fitted))
    asked = loaded.sample_sets(2, 10, random_state=0)
    loaded.fit(people()[::-1])  # they are of the fit before
    for X, (same, _) in zip(first, asked, strict=True):
        pd.testing.assert_frame_equal(X, same)
    loaded = pickle.loads(pickle.dumps(fitted))
    for X, (same, _) in zip(first, loaded.sample_sets(2, 10, random_state=0), strict=True):
        pd.testing.assert_frame_equal(X, same)


def test_labels_are_drawn_by_the_shares_that_were_chosen():
    model = synthesizer(class_prevalences=[0.9, 0.1], triples=False).fit(people(), labels(people()))
    for _, y in model.sample_sets(2, 2_000, random_state=0):
        assert abs((y == "a").mean() - 0.9) < 0.05


@over_rows("what", ["weights", "groups"])
def test_tables_of_weighted_rows_or_of_units_are_rejected(what):
    given = {"weights": {"sample_weight": np.ones(N)}, "groups": {"groups": np.arange(N) // 2}}[what]
    model = synthesizer(weight_bound=1.0).fit(people(), **given)
    with pytest.raises(ValueError, match="fits with weights or groups"):
        model.sample_sets(2)


@over_rows("bad", [{"n_sets": 1}, {"n_sets": "x"}, {"n_samples": 0}, {"random_state": "x"}])
def test_what_is_no_number_of_tables_or_rows_is_rejected(fitted, bad):
    with pytest.raises(ValueError, match=f"`{next(iter(bad))}` must be "):
        fitted.sample_sets(**bad)
