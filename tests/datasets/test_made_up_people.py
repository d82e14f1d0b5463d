"""Made-up people and the tables they are drawn from."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from census_files import PREDICTORS, one_line, people
from scipy import stats
from work import calls_at_most

from skdp.datasets import _tables as tables
from skdp.datasets import make_census

TABLE = tables.probabilities()


def test_make_census_shape_and_public_facts():
    bunch = make_census(500, random_state=0)
    assert bunch.feature_names == PREDICTORS
    assert bunch.data.shape == (500, 11)
    assert bunch.data.dtype == np.float32
    assert bunch.data.flags.c_contiguous
    assert bunch.target.dtype == np.int8
    assert bunch.bounds["age"] == (18, 93)
    assert bunch.classes == (0, 1)
    assert (bunch.sample_weight.shape, bunch.sample_weight.dtype) == ((500,), np.float64)
    assert bunch.sample_weight_bounds == (1.0, 200.0)
    assert "describe no real person" in bunch.DESCR
    assert make_census(random_state=0).data.shape == (20_000, 11)


def test_same_seed_same_people():
    one, two, other = (make_census(2000, random_state=seed) for seed in (7, np.random.RandomState(7), 8))
    np.testing.assert_array_equal(one.data, two.data)
    np.testing.assert_array_equal(one.target, two.target)
    np.testing.assert_array_equal(one.sample_weight, two.sample_weight)
    assert not np.array_equal(one.data, other.data)
    all_of_them = make_census(2000, random_state=7, features="all")
    age = all_of_them.feature_names.index("age")
    np.testing.assert_array_equal(all_of_them.data[:, age], one.data[:, PREDICTORS.index("age")])


@pytest.mark.parametrize("n", [0, 2.5, True])
def test_make_census_wants_a_positive_integer(n):
    with pytest.raises(ValueError, match="n_samples") as error:
        make_census(n)
    one_line(error)


def test_make_census_has_no_divorced():
    with pytest.raises(ValueError, match="got divorced"):
        make_census(10, features=["divorced"])
    assert make_census(10, random_state=0, target="married").target_name == "married"


def test_made_up_people_stay_in_bounds_and_derived_columns_follow():
    frame = people()
    for column in frame.columns:
        low, high = tables.bounds([column], tables.CENSUS_2000_AGE)[column]
        assert (frame[column].min(), frame[column].max()) == (low, high)
    np.testing.assert_array_equal(frame["collegedegree"], frame["educ"] >= 13)
    np.testing.assert_array_equal(frame["blackfemale"], frame["black"] * frame["sex"])


def cells():
    """Every written probability as (name, successes, trials, probability)."""
    f = people()
    band = np.digitize(f["age"], [each["first"] for each in TABLE["age_bands"]]) - 1

    def cell(name, who, what, probability):
        return name, int(np.sum(who & what)), int(np.sum(who)), probability

    everybody = np.ones(len(f), dtype=bool)
    yield cell("female", everybody, f["sex"] == 1, TABLE["female"])
    for i, (first, last, p) in enumerate(each.values() for each in TABLE["age_bands"]):
        yield cell(f"age {first}", everybody, band == i, p)
        years = last - first + 1
        for age in range(first, min(last, 93) + 1):
            share = (years - (93 - first)) / years if age == 93 else 1 / years
            yield cell(f"age {age}", band == i, f["age"] == age, share)
    for flags, p, citizen, english, english_foreign in (each.values() for each in TABLE["origins"]):
        who = (f[["latino", "black", "asian"]].to_numpy() == flags).all(axis=1)
        yield cell(f"origin {flags}", everybody, who, p)
        yield cell(f"citizen {flags}", who, f["uscitizen"] == 1, citizen)
        yield cell(f"english {flags}", who & (f["uscitizen"] == 1), f["englishability"] == 1, english)
        yield cell(f"english, foreign {flags}", who & (f["uscitizen"] == 0), f["englishability"] == 1, english_foreign)
    row = np.where(f["englishability"] == 1, np.array(TABLE["education"]["row_of_age_band"])[band], 0)
    for i, k in itertools.product(range(4), range(16)):
        yield cell(f"educ {k + 1} in row {i}", row == i, f["educ"] == k + 1, TABLE["education"]["probabilities"][i][k])
    for sex, i in itertools.product((0, 1), range(8)):
        who = (f["sex"] == sex) & (band == i)
        yield cell(f"military {sex} {i}", who, f["militaryservice"] == 1, TABLE["military"][sex][i])
        for black, factor in ((0, 1.0), (1, TABLE["married"]["factor_if_black"])):
            p = TABLE["married"]["probabilities"][sex][i] * factor
            yield cell(f"married {sex} {i} {black}", who & (f["black"] == black), f["married"] == 1, p)
    for college, i in itertools.product((0, 1), range(8)):
        p = TABLE["disability"]["probabilities"][i] * (
            TABLE["disability"]["factor_with_college_degree"] if college else 1.0
        )
        who = (f["collegedegree"] == college) & (band == i)
        yield cell(f"disability {college} {i}", who, f["disability"] == 1, p)


def test_made_up_people_follow_the_written_tables():
    """Exact binomial tests, Bonferroni: a false alarm in at most 1e-6 of seeds."""
    found = list(cells())
    assert len(found) > 200
    for name, successes, trials, probability in found:
        assert trials > 0, name
        p_value = stats.binomtest(successes, trials, probability).pvalue
        assert p_value > 1e-6 / len(found), (name, successes, trials, probability)


def log_odds(person):
    """The score read off the table, one person at a time."""
    table = TABLE["employed"]
    peak, unit, height = table["age"].values()
    score = table["constant"] + height * ((person["age"] - peak) / unit) ** 2
    return score + sum(t["log_odds"] for t in table["products"] if all(person[column] for column in t["columns"]))


def test_employment_follows_the_written_score():
    """In 20 groups by score the number employed is a sum of known Bernoullis; false alarm at most about 1e-6."""
    frame = people().head(40_000)
    p = np.array([1 / (1 + math.exp(-log_odds(person))) for person in frame.to_dict("records")])
    employed = frame["employed"].to_numpy()
    limit = stats.norm.isf(0.5e-6 / 40)
    for group in [
        *np.array_split(np.argsort(p), 20),
        *(np.flatnonzero(frame[c] == 1) for c in tables.BINARY if c in frame and c != "employed"),
    ]:
        spread = math.sqrt(np.sum(p[group] * (1 - p[group])))
        # The half keeps the normal limit honest where few are employed.
        assert abs(employed[group].sum() - p[group].sum()) < limit * spread + 0.5


def test_weights_are_whole_numbers_that_make_another_population():
    bunch = make_census(50_000, random_state=0, as_frame=True)
    low, high = bunch.sample_weight_bounds
    weight = bunch.sample_weight
    assert weight.name == "sample_weight"
    assert weight.between(low, high).all()
    assert (weight == weight.round()).all()
    assert np.mean(weight == high) < 0.03
    assert 0.70 < np.average(bunch.target, weights=weight) < 0.72
    assert bunch.target.mean() < 0.645


# --- households ---


def test_households_are_of_the_same_people():
    """The seed gives people and weights first, so neither knows of households."""
    without = make_census(3000, random_state=7, features="all", as_frame=True)
    bunch = make_census(3000, random_state=7, features="all", as_frame=True, households=True)
    assert without.groups is None
    assert set(bunch.feature_names) - set(without.feature_names) == {"children"}
    pd.testing.assert_frame_equal(bunch.data[without.feature_names], without.data)
    pd.testing.assert_series_equal(bunch.target, without.target)
    pd.testing.assert_series_equal(bunch.sample_weight, without.sample_weight)
    again = make_census(3000, random_state=7, households=True)
    np.testing.assert_array_equal(again.groups, bunch.groups)
    assert (again.groups.dtype, bunch.groups.name) == (np.int64, "household")
    assert "groups contains the household" in again.DESCR
    with pytest.raises(ValueError, match="got children"):
        make_census(10, features=["children"])


def test_sizes_are_those_of_households():
    bunch = make_census(20_000, random_state=0, households=True)
    sizes = np.bincount(bunch.groups)
    assert (sizes.min(), sizes.max()) == (1, TABLE["households"]["most_adults"])
    assert 1.75 < sizes.mean() < 1.9


def test_households_are_alike():
    bunch = make_census(20_000, random_state=0, households=True, features="all", as_frame=True)
    people = bunch.data.assign(home=bunch.groups, employed=bunch.target)
    shared = ["latino", "black", "asian", "children"]
    assert (people.groupby("home")[shared].nunique() == 1).all(axis=None)
    married = people[people["married"] == 1].sort_values(["home", "sex"])
    couples = married[married.groupby("home")["sex"].transform("size") == 2]
    assert 0.45 < len(couples) / len(people) < 0.55
    husbands, wives = couples[::2], couples[1::2]
    assert (husbands["home"].to_numpy() == wives["home"].to_numpy()).all()
    for column, least in [("age", 0.9), ("collegedegree", 0.3), ("employed", 0.2)]:
        assert np.corrcoef(husbands[column], wives[column])[0, 1] > least


def test_make_census_is_vectorized():
    one = make_census(1, random_state=0, households=True)
    assert one.groups.tolist() == [0]
    with calls_at_most(10_000):  # none for a household
        make_census(1_000_000, random_state=0, households=True)
