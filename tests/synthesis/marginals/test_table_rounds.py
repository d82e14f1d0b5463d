"""Tables of higher orders, round by round: the plain reading, what is looked at, what is chosen and what is learned."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from combinations import over_rows
from reference import slopes
from replay import recording

from skdp.mechanisms.streams import SecretStream
from skdp.synthesis import DPMarginalSynthesizer
from skdp.synthesis.marginals.contingency_tables import Interaction, centred
from skdp.synthesis.marginals.noisy_tables import LevelRows, Measurement
from skdp.synthesis.marginals.product_mixture import TRIPLES, Mixture, _Tables
from skdp.synthesis.marginals.table_rounds import corrected, doubt, parts_of, tables_worth_it

pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyLeakWarning")  # seeds make a test repeatable

LEVELS = (2, 3, 4, 2)
LETTERS = {2: "ka,kb->ab", 3: "ka,kb,kc->abc", 4: "ka,kb,kc,kd->abcd"}


def mixture_of(rng, n_components=3):
    columns = [rng.dirichlet(np.ones(size), n_components) for size in LEVELS]
    return Mixture(LEVELS, np.hstack(columns).astype(np.float32))


@over_rows("columns", [(0, 2), (0, 1, 2), (1, 2, 3), (0, 1, 2, 3)])
def test_tables_of_a_mixture_and_their_gradient_are_those_of_the_plain_reading(columns):
    """By central differences of half the sum of squared errors, times the number of components and the weight."""
    rng = np.random.default_rng(0)
    mixture = mixture_of(rng)
    plain = lambda made: np.einsum(LETTERS[len(columns)], *(made.column(j) for j in columns))  # noqa: E731
    np.testing.assert_allclose(mixture.table(columns), plain(mixture) / 3, atol=1e-12)
    shares = np.array([0.5, 0.3, 0.2])
    weighted = np.einsum("k," + LETTERS[len(columns)], shares, *(mixture.column(j) for j in columns))
    np.testing.assert_allclose(mixture._replace(shares=shares).table(columns), weighted, atol=1e-12)
    if len(columns) < 3:
        return
    wanted = rng.dirichlet(np.ones(int(np.prod([LEVELS[j] for j in columns])))).reshape([LEVELS[j] for j in columns])
    gradient = np.zeros_like(mixture.probabilities)
    _Tables(LEVELS, {columns: wanted}).add_gradient(mixture.probabilities, gradient)
    places = np.split(np.arange(sum(LEVELS)), np.cumsum(LEVELS)[:-1])

    def loss(probabilities):
        found = np.einsum(LETTERS[len(columns)], *(probabilities[:, places[j]] for j in columns)) / 3
        return 0.5 * TRIPLES * 3 * float(((found - wanted) ** 2).sum())

    np.testing.assert_allclose(gradient, slopes(loss, mixture.probabilities), rtol=0.0, atol=5e-6)


def test_a_corrected_table_has_the_measured_interactions_and_the_margins_of_the_model():
    rng = np.random.default_rng(1)
    model = mixture_of(rng).table((0, 1, 2, 3))
    truth = rng.dirichlet(np.ones(model.size)).reshape(model.shape)
    four, three = (0, 1, 2, 3), (0, 1, 2)
    of_three = truth.sum(axis=3)
    found = {four: Interaction(centred(truth), 0.0), three: Interaction(centred(of_three), 0.0)}
    made = corrected(model, four, found)
    np.testing.assert_allclose(centred(made), centred(truth), atol=1e-12)
    np.testing.assert_allclose(centred(made.sum(axis=3)), centred(of_three), atol=1e-12)
    for pair in itertools.combinations(range(4), 2):
        rest = tuple(set(range(4)) - set(pair))
        np.testing.assert_allclose(made.sum(axis=rest), model.sum(axis=rest), atol=1e-12)
    np.testing.assert_allclose(centred(corrected(model.sum(axis=3), three, found)), centred(of_three), atol=1e-12)
    far = {key: each._replace(deviation=1e3) for key, each in found.items()}
    np.testing.assert_array_equal(corrected(model, four, far), model)  # noise that hides all leaves the model


def test_tables_are_looked_at_by_public_numbers():
    """All where there is little noise, those of few levels where there is more, none where it hides all or unasked."""
    levels = (2, 2, 2, 5, 2)
    all_of_them = [*itertools.combinations(range(4), 3), *((*c, 4) for c in itertools.combinations(range(4), 3))]
    assert sorted(tables_worth_it(levels, True, 1e6, 4.0, 1)) == sorted(all_of_them)
    assert tables_worth_it(levels, True, 1e6, 4.0, 0) == ()
    assert tables_worth_it(levels, True, 100, 4.0, 1) == ()
    some = tables_worth_it(levels, True, 700, 4.0, 1)
    assert (0, 1, 2) in some
    assert (1, 2, 3, 4) not in some
    assert set(tables_worth_it(levels, True, 700, 4.0, 4)) < set(some)
    assert tables_worth_it((2,) * 16, True, 10_000, 4.0, 1) == ()  # each table has little noise, 910 scores have much
    assert len(tables_worth_it((2,) * 16, True, 40_000, 4.0, 1)) == 910
    assert tables_worth_it((2, 1, 2, 2), False, 1e6, 4.0, 1) == ((0, 2, 3),)
    assert tables_worth_it((2, 2, 2, 1), True, 1e6, 4.0, 1) == ((0, 1, 2),)
    assert parts_of([(0, 1, 2, 4), (0, 2, 3)]) == [(0, 1, 2), (0, 1, 2, 4), (0, 2, 3)]
    assert doubt(1) == doubt(2) < doubt(500) < 4.0


def planted(n=2000):
    """The third column follows from two others together, and the label from three; no pair tells of either."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (n, 4))
    X[:, 2] = np.where(rng.random(n) < 0.8, (X[:, 0] + X[:, 1]) % 3, X[:, 2])
    return X, ((X[:, 0] + X[:, 1] + X[:, 3]) % 3 == 0).astype(int)


def model_of(rounds, **parameters):
    given = {"epsilon": 4.0, "parities": False, "n_components": 64, "max_iter": 200, "random_state": 0}
    schema = {f"x{j}": [0, 1, 2] for j in range(4)}
    return DPMarginalSynthesizer(schema, classes=[0, 1], rounds=rounds, **{**given, **parameters})


def test_what_three_columns_and_the_label_tell_together_is_learned():
    """Pairs and triples tell nothing of it. Without rounds rows agree with it as often as by chance: 1/3, and 5/9."""
    X, y = planted()
    right = {}
    for rounds in (0, 1):
        model = model_of(rounds).fit(X, y)
        made, label = model.sample(3000, random_state=0)
        of_label = (made[:, 0] + made[:, 1] + made[:, 3]) % 3 == 0
        right[rounds] = [float(np.mean(made[:, 2] == (made[:, 0] + made[:, 1]) % 3)), float(np.mean(label == of_label))]
        wanted = {("x0", "x1", "x2"), ("x0", "x1", "x3", "y")} if rounds else set()
        assert wanted <= set(model.tables_)
        assert bool(rounds) == bool(model.tables_)
    assert right[0] == pytest.approx([1 / 3, 5 / 9], abs=0.06)
    assert right[1][0] > 0.8
    assert right[1][1] > 0.85


def test_the_largest_noise_of_many_scores_is_not_taken_for_a_table():
    """Independent columns, tables of little noise and scores of much: without doubt some are chosen."""
    rng = np.random.default_rng(0)
    levels, sets = (2,) * 7, list(itertools.combinations(range(7), 3))
    rows = LevelRows([rng.integers(0, 2, 4000).astype(np.int32) for _ in levels])
    how = Measurement(1.0, 0, "zero_out", 4000.0)
    given = rows, sets, levels, lambda columns: np.full((2, 2, 2), 500.0), (1e-3, 1.0), SecretStream(bytes(32))
    assert how._select(*given)
    assert how._select(*given, doubt(len(sets))) == []


def test_where_nothing_is_selected_the_first_tables_are_released_again():
    """Independent columns: the second release of the tables is averaged with the first, and has less noise together."""
    X = np.random.default_rng(0).integers(0, 3, (2000, 4))
    y = (X[:, 3] > 0).astype(int)
    with recording([]) as seen:
        model = model_of(1, max_iter=100).fit(X, y)
    assert model.tables_ == []
    first, scores, again = seen
    np.testing.assert_array_equal(first.exact, again.exact)
    assert len(scores.exact) == 8
    alone = model_of(0, n_components=4, max_iter=3).fit(X, y)._fitted_redrawing.noisy
    for columns, each in model._fitted_redrawing.noisy.items():
        assert each.deviation == pytest.approx(alone[columns].deviation / np.sqrt(0.98), rel=1e-6)
    one, two = Interaction(np.array([1.0, -1.0]), 0.1), Interaction(np.array([4.0, -4.0]), 0.2)
    np.testing.assert_allclose(one.averaged(two).values, [1.6, -1.6])
    assert one.averaged(two).deviation == pytest.approx(0.2 / np.sqrt(5.0))


@pytest.mark.parametrize("adjacency", ["zero_out", "add_remove", "replace_one"])
def test_what_is_measured_follows_from_the_noisy_scores(adjacency):
    """A row less, or another one, and the same noisy values: the same tables, and the same model."""
    X, y = planted(400)
    other, other_y = (np.delete(X, 3, axis=0), np.delete(y, 3)) if adjacency != "replace_one" else (X.copy(), y.copy())
    if adjacency == "replace_one":
        other[3, 0], other_y[3] = (X[3, 0] + 1) % 3, 1 - y[3]
    models, runs = [], [[]]
    for rows, label in ((X, y), (other, other_y)):
        given = {"n_samples_public": 400, "adjacency": adjacency, "epsilon": 50.0, "n_components": 4, "max_iter": 3}
        with recording(runs[-1]) as seen:
            models.append(model_of(2, **given).fit(rows, label))
        runs.append(seen)
    _, first, second = runs
    factor, reached = 2.0 if adjacency == "replace_one" else 1.0, []
    assert len(first) == len(second) == 5  # tables, and twice scores and tables
    for one, moved in zip(first, second, strict=True):
        distance = np.linalg.norm(one.exact - moved.exact) / one.sensitivity
        assert distance <= factor * (1 + 1e-12)
        reached.append(distance)
    assert max(reached) > 0.5
    assert models[0].tables_ == models[1].tables_
    assert models[0].tables_
    np.testing.assert_array_equal(models[0].components_, models[1].components_)
