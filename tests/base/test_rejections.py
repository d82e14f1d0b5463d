"""What is rejected, when, and what the ledger keeps of it: parameters, then the budget, then rows, then the charge."""

import contextlib
import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from combinations import over_rows
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, FunctionTransformer, Normalizer, OneHotEncoder, PolynomialFeatures
from unread import UnreadTable

import skdp
from skdp import (
    DPPCA,
    BudgetExceededError,
    DPGridSearchCV,
    DPLogisticRegression,
    DPMLPClassifier,
    PrivacyAccountant,
    allocate_budget,
)
from skdp.accounting import NoOpDpEvent
from skdp.base.row_wise import row_wise
from skdp.ensemble import DPRandomTreesClassifier
from skdp.pipeline.joint_fit import zero_wild_rows

N, DELTA = 300, 1e-4
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(N, 4))
Y = (X[:, 0] > 0).astype(int)
SECRET = "Alice Smith"


def classifier(**parameters):
    return DPLogisticRegression(**{"classes": [0, 1], "max_iter": 3, "delta": DELTA, **parameters})


def pipeline(accountant, *public, pca=None, **parameters):
    projection = DPPCA(**{"n_components": 2, "center": False, "accountant": accountant, **(pca or {})})
    steps = make_pipeline(*public, projection, classifier(accountant=accountant, **parameters))
    return allocate_budget(steps, 1.0, DELTA)


def search(accountant, estimator=None, grid=None, **parameters):
    grid = {"alpha": [0.0, 0.1]} if grid is None else grid
    estimator = classifier(accountant=accountant) if estimator is None else estimator
    return DPGridSearchCV(estimator, grid, epsilon=1.0, delta=DELTA, **parameters)


MAKERS = {
    "linear": lambda accountant: classifier(accountant=accountant),
    "network": lambda accountant: DPMLPClassifier((3,), classes=[0, 1], max_iter=2, delta=DELTA, accountant=accountant),
    "trees": lambda accountant: DPRandomTreesClassifier(
        5, 2, bounds=(-1, 1), classes=[0, 1], max_iter=2, delta=DELTA, accountant=accountant
    ),
    "pca": lambda accountant: DPPCA(2, delta=DELTA, accountant=accountant),
    "pipeline": pipeline,
    "search": search,
}


def rejections(accountant):
    """Entries of the ledger that tell of rejected rows."""
    return sum(entry not in accountant.history for entry in accountant.entries)


def spent(accountant):
    return accountant.get_epsilon(DELTA)


# --- before any row ---------------------------------------------------------------------------------------------------


@over_rows("kind", MAKERS)
def test_parameters_and_ceiling_are_looked_at_before_the_rows(kind):
    budget = PrivacyAccountant(0.1, DELTA)
    with pytest.raises(BudgetExceededError):
        MAKERS[kind](budget).fit(UnreadTable(N, 4), Y)
    accountant = PrivacyAccountant()
    with pytest.raises(ValueError, match=r"`delta` must be .*, got 2"):
        MAKERS[kind](accountant).set_params(delta=2.0).fit(UnreadTable(N, 4), Y)
    assert (budget.history, accountant.history) == ((), ())


GRIDS = {
    "components": {"dppca__n_components": [2, 50]},
    "degree": {"polynomialfeatures__degree": [1, -1]},
    "norm": {"dppca__whiten": [True], "dppca__data_norm": [1.0, -1.0]},
    "penalty": {"dplogisticregression__alpha": [0.1, -1.0]},
}


@over_rows("name", GRIDS)
def test_a_candidate_that_cannot_be_fitted_costs_nothing(name):
    """However often it is tried: which candidates are drawn is secret, so all are looked at."""
    for _ in range(2):
        accountant = PrivacyAccountant()
        steps = make_pipeline(PolynomialFeatures(1), DPPCA(2, accountant=accountant), classifier(accountant=accountant))
        with pytest.raises(ValueError):
            search(accountant, steps, GRIDS[name]).fit(X, Y)
        assert spent(accountant) == 0.0


def test_a_list_of_rows_is_rejected_in_front_of_public_steps():
    """One value among whole numbers would decide the type of all, and the names of categories."""
    accountant, rows = PrivacyAccountant(), [[1, 2], [2, 1]] * 150
    encoder = OneHotEncoder(categories=[[1, 2], [1, 2]], handle_unknown="ignore")
    steps = make_pipeline(encoder, classifier(accountant=accountant))
    grid = {"dplogisticregression__alpha": [0.0, 0.1]}
    for model in (allocate_budget(steps, 1.0, DELTA), search(accountant, steps, grid)):
        with pytest.raises(ValueError, match="got a list of rows"):
            model.fit(rows, Y)
        assert model.fit(np.array(rows), Y).epsilon_ <= 1.0


# --- rows and labels --------------------------------------------------------------------------------------------------


def spoilt(cell, label):
    rows, labels = X.copy(), Y.copy()
    rows[7, 2], labels[7] = X[7, 2] if cell is None else cell, Y[7] if label is None else label
    return rows, labels


SPOILT = [
    (kind, cell, label)
    for kind in MAKERS
    for cell, label in ((math.nan, None), (math.inf, None), (None, 424242))
    # A projection does not look at labels, and numbers that are not finite have a bin of trees.
    if not (kind == "pca" and label) and not (kind == "trees" and cell)
]


@over_rows(("kind", "cell", "label"), SPOILT)
def test_rows_are_rejected_before_the_charge_and_the_ledger_notes_it(kind, cell, label):
    accountant = PrivacyAccountant()
    with pytest.raises(ValueError) as caught:
        MAKERS[kind](accountant).fit(*spoilt(cell, label))
    assert "\n" not in str(caught.value)
    assert "424242" not in str(caught.value)
    assert spent(accountant) == 0.0
    assert rejections(accountant) == 1


@over_rows("kind", MAKERS)
def test_rejected_list_of_unequal_rows_is_recorded(kind):
    accountant, rows = PrivacyAccountant(), X.tolist()
    rows[7].pop()
    with pytest.raises(ValueError, match="rows of different lengths"):
        MAKERS[kind](accountant).fit(rows, Y)
    assert spent(accountant) == 0.0
    assert rejections(accountant) == 1


def frames(bad):
    jobs = np.array(["clerk", "cook"])[Y].astype(object)
    jobs[5] = bad
    return pd.DataFrame({"job": jobs, "age": X[:, 1]})


@over_rows("searched", [False, True])
def test_an_unknown_category_costs_nothing_and_is_not_printed(searched):
    accountant = PrivacyAccountant()
    encoder = OneHotEncoder(categories=[["clerk", "cook"]], sparse_output=False)
    table = ColumnTransformer([("job", encoder, ["job"])], remainder="passthrough", sparse_threshold=0)
    steps = make_pipeline(table, classifier(accountant=accountant))
    model = allocate_budget(steps, 1.0, DELTA)
    if searched:
        model = search(accountant, steps, {"dplogisticregression__alpha": [0.0, 0.1]})
    with pytest.raises(
        ValueError, match=r"Step 'columntransformer': ColumnTransformer raised \w+ for the rows"
    ) as caught:
        model.fit(frames(SECRET), Y)
    error = caught.value
    while error is not None:
        assert SECRET not in str(error)
        error = error.__context__ or error.__cause__
    assert "\n" not in str(caught.value)
    assert spent(accountant) == 0.0
    assert model.fit(frames("cook"), Y).epsilon_ <= 1.0


def test_warnings_of_public_steps_do_not_depend_on_a_row():
    steps = make_pipeline(FunctionTransformer(np.log), classifier())
    told = []
    for cell in (0.5, -1.0):  # the logarithm of a negative number is NaN: rejected, and nothing more is said
        rows = np.abs(X) + 0.1
        rows[3, 0] = cell
        rejected = pytest.raises(ValueError, match="NaN") if cell < 0 else contextlib.nullcontext()
        with warnings.catch_warnings(record=True, action="always") as caught, rejected:
            allocate_budget(steps, 20.0, DELTA).fit(rows, Y)  # nothing else is warned of
        told.append([str(each.message) for each in caught])
    assert told[0] == told[1] == []


# --- steps behind a private one ---------------------------------------------------------------------------------------


def behind(accountant, *steps):
    """A pipeline of a private projection and steps behind it."""
    return make_pipeline(DPPCA(3, accountant=accountant), *steps, classifier(accountant=accountant))


def budgeted(*steps):
    return lambda accountant: allocate_budget(behind(accountant, *steps), 1.0, DELTA)


def searched(*steps, **scoring):
    grid = {"dplogisticregression__alpha": [0.0, 0.1]}
    return lambda accountant: search(accountant, behind(accountant, *steps), grid, **scoring)


def network_search(grid, **scoring):
    return lambda accountant: search(
        accountant, DPMLPClassifier((3,), max_iter=1, accountant=accountant), grid, **scoring
    )


MISSING_COLUMN = ColumnTransformer([("a", "passthrough", [5])], sparse_threshold=0)
WHOLE_COLUMNS = FunctionTransformer(skdp.row_wise(lambda rows: rows - rows.mean(axis=0)))
REJECTED = {
    "components": (
        lambda accountant: pipeline(accountant, pca={"n_components": 9}),
        "`n_components` must be at most the number of columns of X, 4, got 9",
    ),
    "center": (lambda accountant: pipeline(accountant, pca={"center": "mean"}), "`center` must be .*, got 'mean'"),
    "clip": (lambda accountant: pipeline(accountant, max_grad_norm=-1), "`max_grad_norm` must be .*, got -1"),
    "one class": (lambda accountant: pipeline(accountant, classes=[1]), "classes"),
    "words": (lambda accountant: pipeline(accountant, alpha="0.1"), "`alpha` must be .*, got '0.1'"),
    "components behind": (budgeted(DPPCA(5)), "`n_components` must be at most the number of columns of X, 3, got 5"),
    "column behind": (searched(MISSING_COLUMN), "columntransformer"),
    "words behind": (budgeted(Binarizer(threshold="a")), "binarizer"),
    "function of several rows behind": (searched(WHOLE_COLUMNS), "functiontransformer"),
    "values that are rejected behind": (budgeted(OneHotEncoder(categories=[[0.5]] * 3)), "rejects some values"),
    "no predictions": (
        lambda accountant: search(accountant, DPPCA(2), {"n_components": [1, 2]}),
        "`estimator` must end in a classifier with predict",
    ),
    "solver": (network_search({"solver": ["sgd", "foo"]}), "`solver` must be one of .*, got 'foo'"),
    "log loss of labels": (
        network_search({"alpha": [0.0, 0.1]}, scoring="neg_log_loss"),
        "`y` must have one class per row",
    ),
}


@over_rows("name", REJECTED)
def test_invalid_parameters_of_parts_cost_nothing(name):
    make, message = REJECTED[name]
    accountant, y = PrivacyAccountant(), np.column_stack([Y, 1 - Y]) if name == "log loss of labels" else Y
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        make(accountant).fit(X, y)
    assert "\n" not in str(caught.value)
    assert spent(accountant) == 0.0


@over_rows(("dtype", "output"), [(np.float64, "default"), (np.float32, "pandas")])
def test_no_value_is_rejected_behind_a_private_step(dtype, output):
    """A long row overflows there: it becomes a row of zeros, and no answer is had that is unaccounted."""
    rows = (1e3 * X).astype(dtype)
    for function in (np.exp, np.log):
        accountant = PrivacyAccountant()
        projection = DPPCA(2, center=False, data_norm=1e4, accountant=accountant)
        steps = make_pipeline(
            projection, FunctionTransformer(function), Normalizer(), classifier(accountant=accountant)
        )
        model = allocate_budget(steps, 8.0, DELTA).set_output(transform=output)
        with warnings.catch_warnings(action="error"):
            model.fit(rows, Y)
        assert np.isfinite(model[-1].coef_).all()
        assert len(accountant.entries) == 1
    grid = {"functiontransformer__func": [np.tanh, np.exp]}
    assert search(None, make_pipeline(DPPCA(2, data_norm=1e4), FunctionTransformer(), classifier()), grid).fit(rows, Y)


CELLS = np.array([[1, "2"], [None, 3.0], ["a word", 1.0], [4.0, 10**400], [5, True]], dtype=object)
WILD = np.array([[1.0, 2.0], [np.nan, 3.0], [np.inf, 1.0], [4.0, -np.inf], [5.0, 1.0]])


@over_rows(
    "rows",
    [
        WILD, sp.csr_array(WILD), pd.DataFrame(WILD, index=[7, 7, 8, 9, 5]), CELLS, pd.DataFrame(CELLS),
        pd.DataFrame({"a": pd.array([1.0, None, None, 4.0, 5.0], "Float64"), "b": [2, 1, 1, np.inf, 1]}),
        pl.DataFrame({"a": [1.0, None, np.nan, np.inf, 5.0], "b": [2, 3, 1, 1, 1]}),
    ],
)  # fmt: skip
def test_rows_not_finite_behind_private_step_become_zeros(rows):
    """Cells that are objects are read each by itself, and columns of a frame keep their types and their index."""
    with warnings.catch_warnings(action="error"):  # a warning would reveal a gap
        found = zero_wild_rows(rows)
    cells = found.toarray() if sp.issparse(found) else np.asarray(found, np.float64)
    np.testing.assert_array_equal(cells, [[1, 2], [0, 0], [0, 0], [0, 0], [5, 1]])
    if hasattr(rows, "columns") and object not in list(rows.dtypes):
        assert list(found.dtypes) == list(rows.dtypes)
    if hasattr(rows, "index"):
        assert found.index.equals(rows.index)


@row_wise
def with_words(X):
    """Numbers, but for values that no made-up row has."""
    rare = np.abs(np.abs(X) - 777.7) < 0.1
    return np.where(rare, "rare", X.astype(object)) if rare.any() else X


@row_wise
def as_objects(X):
    """Numbers without a type."""
    return X.astype(object)


@over_rows("n_rare", [0, 1])
def test_no_object_is_rejected_behind_a_private_step(n_rare):
    """One row with a word is a row of zeros: that it is there must not show in a rejection without a charge."""
    rows, accountant = X.copy(), PrivacyAccountant()
    rows[:n_rare], rows[:n_rare, 0] = 0.0, 777.7
    imputer = skdp.DPSimpleImputer(bounds=(-1e3, 1e3), accountant=accountant)
    steps = make_pipeline(imputer, FunctionTransformer(with_words), classifier(accountant=accountant))
    model = allocate_budget(steps, 8.0, DELTA).fit(rows, Y)
    assert np.isfinite(model[-1].coef_).all()
    assert len(accountant.entries) == 1
    steps.set_params(functiontransformer__func=as_objects)
    with pytest.raises(ValueError, match="the next step requires numbers"):
        allocate_budget(steps, 8.0, DELTA).fit(rows, Y)
    assert accountant.entries[-1].event == NoOpDpEvent()


def test_a_warning_that_is_an_error_comes_before_the_charge():
    accountant = PrivacyAccountant()
    for model in (
        classifier(accountant=accountant, delta=0.005),
        DPPCA(2, delta=0.005, accountant=accountant),
        allocate_budget(make_pipeline(DPPCA(2, accountant=accountant), classifier(accountant=accountant)), 1.0, 0.005),
        search(accountant).set_params(delta=0.005),
    ):
        with warnings.catch_warnings(action="error"), pytest.raises(UserWarning, match=r"delta=0.005 is at least 1/n"):
            model.fit(X, Y)
    assert spent(accountant) == 0.0
