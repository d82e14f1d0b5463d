"""`DPLogisticRegression` on rows of `PublicTreesEmbedding`: steps of their own, and a form that each row is held to."""

import pickle

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from combinations import over_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from interrupts import interrupt_after
from replay import assert_all_else_is_equal, moves, replay
from sklearn.pipeline import make_pipeline

from skdp import AddRemove, DPLogisticRegression, PrivacyAccountant, allocate_budget
from skdp._checks.rows import row_form_of, row_norm_of
from skdp._dpsgd.models.one_hot import Blocks, OneHotForm, rows_of_sparse
from skdp.accounting import compose, get_epsilon
from skdp.ensemble import DPRandomTreesClassifier, PublicTreesEmbedding


def people(n=300, n_classes=2, seed=0):
    X = np.random.default_rng(seed).uniform(-1, 1, (n, 4))
    return X, ((X[:, 0] * X[:, 1] > 0) * 1 + (X[:, 2] > 0.3)) % n_classes


def embedding_of(n_estimators=12, **own):
    return PublicTreesEmbedding(n_estimators, **{"max_depth": 3, "bounds": (-1, 1), "random_state": 0, **own})


def embedded(n=300, n_classes=2, n_estimators=12, **own):
    X, y = people(n, n_classes)
    return embedding_of(n_estimators, **own).fit_transform(X), y


def model_of(**own):
    return DPLogisticRegression(**{"classes": [0, 1], "random_state": 5, **own})


def trees_of(n_estimators=12, **own):
    return DPRandomTreesClassifier(
        n_estimators, **{"max_depth": 3, "bounds": (-1, 1), "classes": [0, 1], "random_state": 5, **own}
    )


def entries_of(Z):
    """Entry of the block of each column."""
    form = row_form_of(Z)
    return np.repeat(form.weights, form.blocks.widths)


# --- the form of rows -------------------------------------------------------------------------------------------------


def test_the_form_says_what_all_rows_are():
    Z, _ = embedded()
    form = row_form_of(Z)
    assert form.n_plain == 4
    assert form.blocks.widths == (17,) * 4 + (8,) * 12
    np.testing.assert_array_equal(Z.data.reshape(len(Z.indptr) - 1, -1), np.tile(form.weights, (300, 1)))
    np.testing.assert_allclose(np.square(form.weights), [1 / 12] * 4 + [2 / 36] * 12, rtol=1e-6)
    assert form.n_free == 4 * 17
    assert embedding_of()._form_to_come(4) == form  # before there is a table


def test_only_the_rows_themselves_carry_it():
    Z, _ = embedded()
    carries = pickle.loads(pickle.dumps(Z))
    assert row_form_of(carries) == row_form_of(Z) is not None
    for other in (Z[:10], Z.copy(), Z * 1.0, Z.tocsc(), Z.astype(np.float64), sp.vstack([Z, Z]), sp.csr_array(Z), 3):
        assert row_form_of(other) is None
    assert row_norm_of(Z) == 1.0


FORMS = {
    "a bit": (2,),
    "bytes of several blocks": (2, 2, 3, 16, 16, 16, 5, 1, 7),
    "more than a byte": (257, 3, 2, 300),
}


def broken(row, kind, widths, weights, rng):
    """A row of the form, as (indices, values), with one mistake; `row` itself where the form has no room for it."""
    indices, values = row
    b = int(rng.integers(len(widths)))
    if kind == "an entry less":
        return np.delete(indices, b), np.delete(values, b)
    if kind == "an entry more":
        free = np.setdiff1d(np.arange(sum(widths)), indices)
        if len(free) == 0:
            return row
        at = int(np.searchsorted(indices, free[0]))
        return np.insert(indices, at, free[0]), np.insert(values, at, weights[b])
    if kind == "two in a block":
        b = int(np.argmax(widths))
        others = np.setdiff1d(np.arange(sum(widths[:b]), sum(widths[: b + 1])), indices)
        if len(widths) == 1 or len(others) == 0:
            return row
        moved = np.sort(np.append(np.delete(indices, 0 if b else 1), others[0]))
        return moved, np.asarray(weights, np.float32)
    other = {"zero": 0.0, "negative": -values[b], "NaN": np.nan, "double": 2 * values[b], "infinite": np.inf}
    changed = values.copy()
    changed[b] = other.get(kind, np.nextafter(values[b], np.float32(2.0)))
    return indices, changed


MISTAKES = [
    "an entry less", "an entry more", "two in a block", "zero", "negative", "NaN", "double", "infinite", "a last bit",
]  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(
    widths=st.one_of(st.sampled_from(sorted(FORMS.values())), st.lists(st.integers(1, 40), min_size=1, max_size=9)),
    mistakes=st.lists(st.sampled_from([*MISTAKES, "none"]), min_size=1, max_size=12),
    seed=st.integers(0, 2**16),
)
def test_each_row_is_held_to_the_form_for_itself(widths, mistakes, seed):
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.1, 1.0, len(widths)).astype(np.float32)
    form = OneHotForm(Blocks(tuple(widths)), tuple(weights.tolist()), 1)
    starts = np.cumsum([0, *widths[:-1]])
    rows = []
    for kind in mistakes:
        row = starts + [rng.integers(width) for width in widths], weights
        rows.append(row if kind == "none" else broken(row, kind, widths, weights, rng))
    ends = np.cumsum([0, *(len(each) for each, _ in rows)])
    indices, values = (np.concatenate(each) for each in zip(*rows, strict=True))
    X = sp.csr_matrix((values.astype(np.float32), indices, ends), shape=(len(rows), sum(widths)))
    found, fits = rows_of_sparse(X, form)
    read = [reference.one_hot_levels(each, widths, weights) for each in rows]
    assert fits.tolist() == [each is not None for each in read]
    codes = form.blocks.empty_codes(len(rows))
    form.blocks.encode(np.array([[0] * len(widths) if each is None else each for each in read]).T, codes)
    np.testing.assert_array_equal(found.codes, codes)
    assert found.shape == X.shape


# --- steps ------------------------------------------------------------------------------------------------------------

RUNS = {
    "last iterate": {"average": False, "max_iter": 40},
    "lots": {"sampling_rate": 0.3, "max_iter": 7},
    "no intercept": {"fit_intercept": False, "max_iter": 40},
    "rate and clip given": {"learning_rate": 3.0, "max_grad_norm": 0.1, "max_iter": 40},
    "add_remove": {"adjacency": AddRemove(250), "max_iter": 40},
    "weights of classes": {"class_weight": {0: 4.0}, "max_iter": 40},
}


@over_rows("run, n_classes", [*((run, 2) for run in RUNS), ("weights of classes", 3)])
def test_a_fit_is_that_of_random_trees(run, n_classes, monkeypatch):
    """For the same trees and seed, in other units; weights of blocks are rounded to float32, by 2 ** -23 = 1.2e-7.

    The noise is calibrated twice, to 1e-4 of it.
    """
    X, y = people(300, n_classes)
    monkeypatch.setattr("skdp.ensemble.embedding._PLAIN", 2 / 3)  # as in the estimator where rows are so few
    weights = np.where(np.arange(300) % 3, 1.0, 0.25)
    other = trees_of(classes=range(n_classes), **RUNS[run]).fit(X, y, weights)
    Z = embedding_of(marginals=other.embedding_.marginals).fit_transform(X)
    *offset, counts, steps = other.privacy_event_.events
    rest = compose([*offset, steps])  # what is left for all but the counts
    epsilon = get_epsilon(rest, other.delta_, adjacency=other.adjacency_)
    one = model_of(classes=range(n_classes), **RUNS[run], epsilon=epsilon)
    one._public_name = type(other).__name__  # the same noise under the same seed
    one.fit(Z, y, weights)
    assert counts.noise_multiplier > 0.0
    for _ in range(2):
        size = np.abs(other.coef_).max()
        np.testing.assert_allclose(one.coef_ * entries_of(Z), other.coef_, rtol=0, atol=2e-4 * size)
        np.testing.assert_allclose(one.coef_noise_ * entries_of(Z), other.coef_noise_, rtol=2e-4)
        np.testing.assert_allclose(one.intercept_, other.intercept_, rtol=0, atol=2e-4 * size)
        np.testing.assert_allclose(one.decision_function(Z), other.decision_function(X), rtol=0, atol=2e-3 * size)
        for name in ("n_steps_", "sampling_rate_", "max_grad_norm_", "noise_multiplier_", "learning_rate_",
                     "data_norm_"):  # fmt: skip
            assert getattr(one, name) == pytest.approx(getattr(other, name), rel=2e-4)
        one.set_params(epsilon=other.epsilon).partial_fit(Z, y, sample_weight=weights)  # nothing more is estimated
        other.partial_fit(X, y, sample_weight=weights)


# --- one row ----------------------------------------------------------------------------------------------------------


def with_row(Z, i, change):
    """The same table, form included, but for the values or the places of row i."""
    made = pickle.loads(pickle.dumps(Z))
    change(made, slice(made.indptr[i], made.indptr[i + 1]))
    return made


def double(Z, row):
    Z.data[row] *= 2.0


def last_bit(Z, row):
    Z.data[row.start] = np.nextafter(Z.data[row.start], np.float32(2.0))


def enormous(Z, row):
    Z.data[row] = 1e30


def other_block(Z, row):
    Z.indices[row.start] = next(j for j in range(17, 34) if j not in Z.indices[row])
    Z.indices[row] = np.sort(Z.indices[row])


def repeated(Z, row):
    """Two entries in one place, which are one entry once they are added up."""
    Z.indices[row.start + 1] = Z.indices[row.start]


def zeros(Z, row):
    Z.data[row] = 0.0


BROKEN = [double, last_bit, enormous, other_block, repeated, zeros]
OWN = [{"max_iter": 20}, {"sampling_rate": 0.5, "max_iter": 5}, {"classes": [0, 1, 2], "max_iter": 20}]


@over_rows("change, own", [*((change, OWN[0]) for change in BROKEN), *((double, own) for own in OWN[1:])])
def test_a_row_of_another_form_is_a_null_row(change, own):
    """Exactly: each release is that of the table in which it has weight 0, and so is all that is said and published."""
    Z, y = embedded()
    without = np.ones(300)
    without[7] = 0.0
    fit = fitting(weight_bound=1.0, **own)
    one, other = replay(fit, (with_row(Z, 7, change), y, np.ones(300)), (Z, y, without))
    assert max(moves(one, other)) == 0.0
    assert_all_else_is_equal(one, other)


def fitting(**own):
    return lambda rows: model_of(**own).fit(*rows)


@over_rows("change, own", [*((change, own) for change in (double, None) for own in OWN), (repeated, OWN[0])])
def test_one_row_moves_releases_by_the_clip(change, own):
    """A muted row, an exchanged one, and one that is exchanged by a row of another form."""
    Z, y = embedded()
    if change is None:

        def change(table, row):
            table.indices[row] = table.indices[table.indptr[8] : table.indptr[9]]

    one, other = replay(fitting(**own), (Z, y), (with_row(Z, 7, change), y))
    counts, *rest = moves(one, other)
    assert counts == (1.0 if change in BROKEN else 0.0)  # the exchanged row has the same class
    assert 0.0 < max(rest) <= (1.0 if change in BROKEN else 2.0) * (1 + 1e-9)
    assert_all_else_is_equal(one, other)


@over_rows("own", OWN)
def test_nothing_says_how_many_rows_have_another_form(own):
    """Nor that none has it: a fit to null rows alone ends like any other."""
    Z, y = embedded()
    for n_broken in (1, 299, 300):
        other = pickle.loads(pickle.dumps(Z))
        other.data[: other.indptr[n_broken]] *= 0.5
        one, two = replay(fitting(**own), (Z, y), (other, y))
        assert_all_else_is_equal(one, two)
    assert not any(each.exact.any() for each in two.releases)


# --- instalments ------------------------------------------------------------------------------------------------------


@over_rows("change, own, method", [(lambda Z: Z.copy(), {}, "fit"), (lambda Z: Z, {"data_norm": 1.0}, "partial_fit")])
def test_an_instalment_on_rows_of_another_form_is_rejected_before_its_charge(change, own, method):
    Z, y = embedded()
    accountant = PrivacyAccountant()
    model = model_of(warm_start=True, accountant=accountant, max_iter=3).fit(Z, y)
    before = model.coef_.copy(), model.epsilon_
    with pytest.raises(ValueError, match=r"^The rows do not have the public form of earlier runs[^\n]*$"):
        getattr(model.set_params(**own), method)(change(Z), y)
    assert len(accountant.history) == 1
    np.testing.assert_array_equal(model.coef_, before[0])
    assert model.epsilon_ == before[1]
    model.set_params(warm_start=False).fit(change(Z), y)
    assert len(accountant.history) == 2


def test_an_interrupted_run_resumes_on_the_same_form_alone(tmp_path):
    Z, y = embedded()
    accountant = PrivacyAccountant()

    def make():
        return model_of(checkpoint=tmp_path / "run.npz", accountant=accountant, max_iter=30)

    model = make()
    interrupt_after(model, 12)
    assert model.fit(Z, y).n_steps_ == 12
    with pytest.raises(ValueError, match=r"belongs to another run .different row_form"):
        make().fit(embedded(n_estimators=24, max_depth=2)[0], y)
    resumed = make().fit(Z, y)
    assert len(accountant.history) == 1
    np.testing.assert_array_equal(resumed.coef_, model_of(max_iter=30).fit(Z, y).coef_)


# --- pipelines and searches -------------------------------------------------------------------------------------------


def test_a_private_pipeline_plans_for_the_form():
    """The cost is planned before there are rows: the form follows from the parameters of the embedding."""
    X, y = people()
    accountant = PrivacyAccountant()
    last = model_of(random_state=None, accountant=accountant)
    pipe = allocate_budget(make_pipeline(embedding_of(), last), 2.0).fit(X, y)
    assert (pipe[-1].n_steps_, pipe[-1].data_norm_) == (100, 1.0)
    assert 1.99 < pipe.epsilon_ <= 2.0
    (charge,) = accountant.history
    assert charge.event == pipe.privacy_event_ == pipe[-1].privacy_event_


def test_rows_of_another_form_than_planned_are_rejected_before_the_charge(monkeypatch):
    X, y = people()
    accountant, planned = PrivacyAccountant(), embedding_of(11)._form_to_come(4)
    monkeypatch.setattr(PublicTreesEmbedding, "_form_to_come", lambda self, n_features: planned)
    pipe = allocate_budget(make_pipeline(embedding_of(), model_of(random_state=None, accountant=accountant)), 2.0)
    with pytest.raises(ValueError, match="not have the form that the previous step should return"):
        pipe.fit(X, y)
    assert accountant.history == ()
