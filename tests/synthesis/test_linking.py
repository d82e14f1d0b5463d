"""Linked tables: what a household with its persons moves, keys that match, counts that agree, and what is kept."""

import itertools

import numpy as np
import pandas as pd
import pytest
from combinations import over_rows
from relations import with_n_public
from replay import recording, run

from skdp import PrivacyAccountant
from skdp.preprocessing import TableSchema
from skdp.synthesis import synthesize_linked
from skdp.synthesis.linking import HouseholdSynthesizer

SCHEMA = {"rooms": [1, 2, 3], "rent": (0, 900), "role": ["head", "child"], "age": {"edges": [0, 20, 50, 90]}}


def tables(n=60, seed=0):
    """Households of one to three persons, the head first; more rooms, more persons."""
    rng = np.random.default_rng(seed)
    rooms = rng.integers(1, 4, n)
    homes = pd.DataFrame({"home": [f"h{i}" for i in range(n)], "rooms": rooms, "rent": rng.uniform(0, 900, n)})
    which = np.repeat(np.arange(n), rng.integers(1, 1 + rooms))
    first = ~pd.Series(which).duplicated().to_numpy()
    age = np.where(first, rng.integers(20, 90, len(which)), rng.integers(0, 20, len(which)))
    role = np.where(first, "head", "child")
    return homes, pd.DataFrame({"home": homes["home"].to_numpy()[which], "role": role, "age": age})


def with_persons(n_persons, role="child", rooms=3):
    """The tables with so many persons in the last household."""
    homes, persons = tables()
    homes.loc[59, "rooms"] = rooms
    persons = persons[persons["home"] != "h59"]
    many = pd.DataFrame({"home": ["h59"] * n_persons, "role": [role] * n_persons, "age": [30] * n_persons})
    return homes, pd.concat([persons, many.astype(persons.dtypes.to_dict())], ignore_index=True)


@pytest.fixture
def fitted(monkeypatch):
    """A function that fits to tables and returns the model, which does not get out of the library otherwise."""
    models = []
    monkeypatch.setattr(
        HouseholdSynthesizer, "draw_linked", lambda model, n, *rest: (models.append(model), _one_household(model))[1]
    )

    def fit(given, **parameters):
        parameters = {"key": "home", "schema": SCHEMA, "n_bins": 3, "random_state": 0, **parameters}
        synthesize_linked(*given, n_households=1, **parameters)
        return models.pop()

    return fit


def _one_household(model):
    return np.zeros(1, int), model.sample(1, random_state=0)


@over_rows(
    "n_persons, adjacency, schema",
    [
        *itertools.product([1, 40], ["zero_out", "add_remove", "replace_one"], [SCHEMA]),
        (3, "zero_out", None),
        (40, "replace_one", {"rooms": [1, 2, 3], "role": ["head", "child"], "age": (0, 90), "rent": "number"}),
    ],
)
def test_a_household_moves_each_release_by_no_more_than_a_row_may(fitted, n_persons, adjacency, schema):
    """However many persons it has, and with so little noise that another synthesizer would let a unit reach further."""
    one, other = with_persons(n_persons), with_persons(0)
    if adjacency == "add_remove":
        other = (other[0].iloc[:-1], other[1])
    if adjacency == "replace_one":
        other = with_persons(2, "head", rooms=1)

    def fit(given):
        return fitted(given, adjacency=with_n_public(adjacency, 60), schema=schema, epsilon=200.0)

    first = run(fit, one)
    second = run(fit, other, first.releases)
    assert len(first.releases) == len(second.releases) >= 2
    moves = []
    for a, b in zip(first.releases, second.releases, strict=True):
        assert (a.sensitivity, a.order) == (b.sensitivity, b.order)
        moves.append(float(np.linalg.norm(a.exact - b.exact, a.order)) / a.sensitivity)
    assert 0.9 < max(moves) <= (2.0 if adjacency == "replace_one" else 1.0) * (1 + 1e-9)
    assert first.messages == second.messages
    skipped = {name for name in first.state if "_fitted_releases" in name}
    for name in first.state.keys() - skipped:
        assert str(first.state[name]) == str(second.state[name]), name


def test_the_noise_is_that_of_rows_and_the_price_is_one(fitted):
    ledger = PrivacyAccountant(300.0, 1e-5, unit="home")
    with recording([]) as released:
        model = fitted(tables(), epsilon=200.0, accountant=ledger)
    *_, tables_of, cells, wholes = (each.sensitivity for each in released)  # after those of the bins
    assert [tables_of, cells, wholes] == pytest.approx([1.0, 1.0, 1.0])
    assert model.privacy_unit_ == "group"
    assert 199.0 < ledger.spent <= 200.0
    assert model.n_samples_ == 60


@pytest.fixture(scope="module")
def made():
    """Tables with next to no noise: the private ones, and synthetic ones."""
    private = tables(1500)
    return private, synthesize_linked(*private, key="home", schema=SCHEMA, n_bins=3, epsilon=2000.0, max_persons=3)


def test_keys_match_and_types_are_those_of_the_tables(made):
    (homes, persons), (some, their) = made
    assert some["home"].tolist() == list(range(1500))
    assert set(their["home"]) == set(some["home"])
    assert their["home"].is_monotonic_increasing
    assert list(some) == list(homes)
    assert list(their) == list(persons)
    for real, synthetic in ((homes, some), (persons, their)):
        assert (real.dtypes == synthetic.dtypes)[1:].all()


def test_numbers_of_persons_and_places_are_kept(made):
    """By the rooms of the household, which persons have in their own table no more."""
    (homes, persons), (some, their) = made
    tables_of = []
    for one, other in ((homes, persons), (some, their)):
        sizes = other.groupby("home").size().reindex(one["home"]).to_numpy()
        tables_of.append(pd.crosstab(one["rooms"], sizes, normalize=True))
        heads = (other["role"] == "head").groupby(other["home"]).sum()
        assert (heads == 1).mean() > 0.97
        first = ~other["home"].duplicated()
        assert (other["role"][first] == "head").mean() > 0.97
    assert np.abs(tables_of[0] - tables_of[1]).to_numpy().sum() / 2 < 0.05
    shares = [other["role"].value_counts(normalize=True)["head"] for other in (persons, their)]
    assert abs(shares[0] - shares[1]) < 0.04


def test_larger_households_count_as_the_largest_and_those_without_persons_are_not_made():
    homes, persons = with_persons(40)
    homes.loc[60] = ["nobody", 1, 100.0]
    given = {"key": "home", "schema": SCHEMA, "max_persons": 2, "n_bins": 3, "epsilon": 50.0}
    some, their = synthesize_linked(homes, persons, **given)
    assert len(some) == 61
    assert set(their.groupby("home").size()) == {1, 2}
    none, nobody = synthesize_linked(homes, persons, **given, n_households=0)
    assert (len(none), len(nobody)) == (0, 0)


def test_incomplete_schema_is_estimated():
    homes, persons = tables(3000)
    some, their = synthesize_linked(homes, persons, key="home", epsilon=100.0, n_households=50)
    assert set(their["role"]) <= {"head", "child", "other"}
    assert len(some) == 50


HOMES, PERSONS = tables()
REJECTED = [
    ({"households": HOMES.to_numpy()}, TypeError, "`households` must be"),
    ({"key": "house"}, ValueError, "`key` must be"),
    (
        {"persons": PERSONS.rename(columns={"age": "rooms"})},
        ValueError,
        "`persons` must not have columns of `households`",
    ),
    ({"households": pd.concat([HOMES, HOMES])}, ValueError, "`households` must have unique keys in column 'home'"),
    (
        {"persons": PERSONS.assign(home="h-1")},
        ValueError,
        "`persons` must have rows, and each key in column 'home' must occur in",
    ),
    (
        {"persons": PERSONS.iloc[:0]},
        ValueError,
        "`persons` must have rows, and each key in column 'home' must occur in",
    ),
    (
        {"persons": PERSONS.iloc[:0], "epsilon": -1.0},
        ValueError,
        "`persons` must have rows, and each key in column 'home' must occur in",
    ),
    ({"schema": TableSchema(SCHEMA, impossible=[{"rooms": [1], "role": ["child"]}])}, ValueError, "impossible"),
    ({"max_persons": 0}, ValueError, "`max_persons` must be"),
    ({"adjacency": "add_remove"}, ValueError, "AddRemove"),
    ({"schema": {"rooms": [1, 2, 3]}}, ValueError, "`schema` does not declare"),
]


@over_rows("changed, error, words", REJECTED)
def test_bad_input_is_rejected_in_one_line_before_any_charge(changed, error, words):
    ledger = PrivacyAccountant(10.0, 1e-5, unit="home")
    given = {"households": HOMES, "persons": PERSONS, "key": "home", "schema": SCHEMA, "accountant": ledger, **changed}
    with pytest.raises(error) as caught:
        synthesize_linked(**given)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "h-1" not in str(caught.value)
    assert ledger.spent == 0.0
    reads_rows = {
        "`households` must have unique keys in column 'home'",
        "`persons` must have rows, and each key in column 'home' must occur in",
        "`schema` does not declare",
    }
    assert len(ledger.entries) == (words in reads_rows)  # what rejects rows answers something
