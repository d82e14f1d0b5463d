"""Newton steps for classes in an order: what one row moves, and whether thresholds and slopes have valid errors."""

import math

import numpy as np
from combinations import over_rows
from linear_rows import assert_errors_are_standard, fit_copy
from rejections import assert_rejected
from scipy import stats
from scipy.optimize import minimize
from scipy.special import expit

from skdp import DPOrdinalLogisticRegression
from skdp._checks.groups import read_units
from skdp.linear_model.likelihoods import Ordinal
from skdp.linear_model.newton import BoundRows, RowScale, Step, entry_of

FALSE_ALARM = 1e-6
LEVELS = ["poor", "fair", "middling", "good"]  # not in the order of the alphabet
SLOPES, THRESHOLDS = np.array([1.0, -0.6, 0.0, 0.4]), np.array([-1.0, 0.3, 0.5])
TRUTH = np.r_[SLOPES, THRESHOLDS]
MODEL = DPOrdinalLogisticRegression(LEVELS, data_norm=2.0, random_state=0, delta=1e-5)
SCALE = RowScale(2.0, 0.5)
HOW = Ordinal(4, entry_of(SCALE))


def draw(n, seed=0, steepness=1.0, thresholds=THRESHOLDS):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 4))
    return X, np.array(LEVELS)[np.digitize(steepness * X @ SLOPES + rng.logistic(size=n), thresholds)]


def codes_of(y):
    return np.array([LEVELS.index(each) for each in y])


def fitted(rows, **parameters):
    return fit_copy(MODEL, rows, **parameters)


def quiet(rows, **parameters):
    return fitted(rows, **{"epsilon": None, "noise_multiplier": 1e-3, **parameters})


def score_of_row(x, code, theta):
    """Score of the logarithm of P(class) by slopes and thresholds, as it is written, and minus its derivative."""
    edges = np.eye(4)[:, :3]
    above, below = np.r_[-x, edges[code]], np.r_[-x, np.roll(edges, 1, axis=0)[code]]
    high = expit(above @ theta) if code < 3 else 1.0
    low = expit(below @ theta) if code > 0 else 0.0
    f, g = high * (1.0 - high), low * (1.0 - low)
    score = (f * above - g * below) / (high - low)
    bends = f * (1.0 - 2.0 * high) * np.outer(above, above) - g * (1.0 - 2.0 * low) * np.outer(below, below)
    return score, np.outer(score, score) - bends / (high - low)


def without_privacy(X, codes):
    """Maximum likelihood by a general optimizer, and the errors of the sandwich."""

    def loss(theta):
        edges = np.r_[-np.inf, theta[4:], np.inf]
        chance = expit(edges[codes + 1] - X @ theta[:4]) - expit(edges[codes] - X @ theta[:4])
        return -np.sum(np.log(np.maximum(chance, 1e-300))) / len(X)

    theta = minimize(loss, np.r_[np.zeros(4), -0.5, 0.0, 0.5], method="BFGS", options={"gtol": 1e-7}).x
    scores, curvatures = map(np.array, zip(*map(score_of_row, X, codes, [theta] * len(X)), strict=True))
    bread, n = np.linalg.inv(curvatures.sum(axis=0)), len(X)
    return theta, np.sqrt(np.diag(bread @ (scores.T @ scores) @ bread) * n / (n - 7))


# --- one row, one unit ---


def bound_of(X, codes, units=None, scale=SCALE):
    return BoundRows(X, np.asarray(codes, float), 1.0, units, scale, Ordinal(4, entry_of(scale)))


@over_rows("intercept", [0.5, 50.0])
def test_a_row_adds_no_more_than_one_wherever_the_thresholds_are(intercept):
    """Narrow and wide classes, rows that are certain of one or of another; also where thresholds are out of order."""
    rng, norms, scale = np.random.default_rng(0), [], RowScale(2.0, intercept)
    for gap in (1e-6, 0.01, 1.0, 40.0, -1.0):
        for shift in (-30.0, -1.0, 0.0, 1.0, 30.0):
            theta = np.r_[4.0 * rng.normal(size=4), np.array([-1.0, 0.0, 1.0]) * gap + shift]
            for x in (np.zeros(4), *rng.uniform(-1.0, 1.0, (3, 4))):
                norms += [np.linalg.norm(bound_of(x[None], [code], scale=scale).sums(theta)) for code in range(4)]
    assert 0.9 < max(norms) <= 1.0


def test_the_bound_is_reached_by_each_of_its_parts():
    """A row of the norm of its bound: score and curvature are 1 together, and the class is beside them."""
    lines = np.linspace(-40.0, 40.0, 4001)
    eta = np.c_[lines - 20.0, lines, lines + 1e-9]
    residuals, slopes = HOW.residuals(np.full(4001, 1.0), eta)
    x, c = math.sqrt(0.8), math.sqrt(0.2)
    score = np.hypot(x * residuals.sum(axis=1), c * np.linalg.norm(residuals, axis=1))
    curvature = np.hypot(x**2 * slopes.sum(axis=1), math.sqrt(2.0) * x * c * np.linalg.norm(slopes, axis=1))
    curvature = np.hypot(curvature, c**2 * np.linalg.norm(slopes, axis=1))
    norms = np.hypot(score, HOW.curvature_weight * curvature)
    assert 0.999 < norms.max() <= 1.0
    x0 = np.hypot(np.linalg.norm(residuals, axis=1), HOW.curvature_weight * np.linalg.norm(slopes, axis=1))
    assert 0.999 < x0.max() <= 1.0


def test_a_release_is_the_score_and_the_curvature_of_the_likelihood_as_it_is_written():
    X, y = draw(60)
    codes, theta = codes_of(y), np.array([0.5, -1.0, 0.2, 0.0, -2.0, 1.0, 1.4])
    step = Step.of(theta, bound_of(X, codes).sums(theta), 1.0, HOW)
    unit, entry = SCALE.units(4)[0], entry_of(SCALE)
    plain = np.r_[theta[:4] * unit, theta[4:] * entry]
    scores, curvatures = zip(*(score_of_row(x, code, plain) for x, code in zip(X, codes, strict=True)), strict=True)
    by = np.r_[np.full(4, unit), np.full(3, entry)]
    np.testing.assert_allclose(step.score, by * np.sum(scores, axis=0), rtol=1e-9)
    np.testing.assert_allclose(step.curvature, np.outer(by, by) * np.sum(curvatures, axis=0), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(step.counts, np.bincount(codes, minlength=4))


@over_rows("column", [0.0, 1.0])
def test_a_unit_of_many_rows_adds_no_more_than_one(column):
    """Also of rows that are shorter than their bound, whose classes count as much as those of others."""
    norms = []
    for codes in (np.full(60, 1), np.full(60, 3), np.arange(60) % 4):
        bound = bound_of(np.full((60, 4), column), codes, read_units(np.repeat(0, 60), 60))
        for shift in (-200.0, 0.0, 200.0):
            norms.append(np.linalg.norm(bound.sums(np.r_[np.zeros(4), np.array([-1.0, 0.0, 0.1]) + shift])))
    assert 0.6 < max(norms) <= 1.0 + 1e-12


# --- errors ---


@over_rows("steepness", [1.0, 3.0])
def test_without_noise_it_is_maximum_likelihood_with_the_sandwich(steepness):
    X, y = draw(3_000, steepness=steepness)
    model = quiet((X, y))
    frame = model.summary().to_frame()
    theta, errors = without_privacy(X, codes_of(y))
    assert (frame["doubt"] == "").all()
    np.testing.assert_allclose((frame["coef"] - theta) / errors, 0.0, atol=0.05)
    np.testing.assert_allclose(frame["std_err"], errors, rtol=0.02)
    np.testing.assert_allclose(np.r_[model.coef_, model.thresholds_], frame["coef"])
    np.testing.assert_allclose(model.coef_noise_, frame["noise"].iloc[:4])


def test_errors_are_those_of_repeated_fits():
    """The sum of squared errors in units of the standard error is chi-squared, to first order: 10 % wider."""
    scores = []
    for seed in range(25):
        frame = fitted(draw(2_000, seed), epsilon=None, noise_multiplier=1.5, random_state=seed).summary().to_frame()
        scores.append(((frame["coef"] - TRUTH) / frame["std_err"]).to_numpy())
    assert_errors_are_standard(scores, FALSE_ALARM / 14)


def test_the_noise_of_thresholds_is_that_of_repeated_fits_to_the_same_rows():
    """Of a narrow class too, whose score is far from 1."""
    rows, found = draw(2_500, thresholds=np.array([-1.0, 0.3, 0.4])), []
    for seed in range(25):
        frame = fitted(rows, epsilon=None, noise_multiplier=1.5, random_state=seed).summary().to_frame()
        found.append(np.r_[frame["coef"], np.square(frame["noise"])])
    coefs, variances = np.split(np.array(found), 2, axis=1)
    squares = (len(coefs) - 1) * coefs.var(axis=0, ddof=1) / variances.mean(axis=0)
    low, high = stats.chi2.interval(1 - FALSE_ALARM / 7, len(coefs) - 1)
    assert squares.min() > 0.9 * low
    assert squares.max() < 1.1 * high


def test_probabilities_are_those_of_the_thresholds_in_the_sorted_order_of_classes():
    X, y = draw(2_000)
    model = quiet((X, y))
    assert list(model.levels_) == LEVELS
    assert list(model.classes_) == sorted(LEVELS)
    below = expit(model.thresholds_ - (X[:9] @ model.coef_)[:, None])
    expected = np.diff(np.c_[np.zeros(9), below, np.ones(9)], axis=1)
    found = model.predict_proba(X[:9])
    for k, level in enumerate(sorted(LEVELS)):
        np.testing.assert_allclose(found[:, k], expected[:, LEVELS.index(level)], rtol=1e-6)
    assert list(model.predict(X[:9])) == [LEVELS[k] for k in expected.argmax(axis=1)]
    assert model.score(X, y) > 0.4
    far = model.predict_proba(np.array([[1e3, -1e3, 0.0, 1e3], [-1e3, 1e3, 0.0, -1e3]]))
    assert (far > 0.0).all()


def test_a_table_has_slopes_and_thresholds_by_the_classes_beside_them():
    model = fitted(draw(20_000))
    table = model.summary(names=list("abcd"))
    frame = table.to_frame()
    assert list(frame.index) == [*"abcd", "poor/fair", "fair/middling", "middling/good"]
    assert (frame["doubt"] == "").all()
    assert ((frame["low"] < TRUTH) & (frame["high"] > TRUTH)).mean() >= 0.8
    assert "the log-odds of a higher class" in str(table)
    scaled = model.summary(scales=[2.0, 1.0, 1.0, 4.0]).to_frame()
    np.testing.assert_allclose(scaled["coef"] * np.r_[2.0, 1.0, 1.0, 4.0, 1.0, 1.0, 1.0], frame["coef"])


# --- where there is no interval ---


def test_a_class_that_hardly_occurs_has_no_interval_and_thresholds_remain_in_order():
    for rare in ("middling", "poor"):
        X, y = draw(5_000)
        y[y == rare] = "fair"
        y[:20] = rare
        model = quiet((X, y))
        assert set(model.summary().to_frame()["doubt"]) == {"fewer than 40 informative rows per coefficient"}
        assert (np.diff(fitted((X, y), epsilon=0.1).thresholds_) > 0.0).all()
        assert (np.diff(model.thresholds_) > 0.0).all()


def test_noise_that_hides_all_counts_leaves_thresholds_in_order():
    """Whatever the noise is: no class starts with a share below 0.001 / 1.02, and a slope of a share is at most 1/4.

    So gaps start from 0.004 / 1.02, and each of the seven steps that follow leaves at least half of them.
    """
    X, _ = draw(60)
    for seed in range(2):
        model = fitted((X, np.arange(60) % 3), classes=range(20), epsilon=1e-4, random_state=seed)
        assert (np.diff(model.thresholds_) > 0.999 * 0.004 / 1.02 / 2**7).all()


REJECTED = {
    "one class": ({"classes": ["poor"]}, ["at least two classes", "got ['poor']"]),
    "a class twice": ({"classes": ["poor", "fair", "poor"]}, ["must not contain duplicates"]),
    "no list": ({"classes": "poor"}, ["must be a sequence of all possible classes"]),
    "a label that is not named": ({"classes": ["poor", "fair"]}, ["y contains labels that are not in classes"]),
    "a set": ({"classes": set(LEVELS)}, ["`classes` must be a list", "from the lowest to the highest"]),
    "an iterator": ({"classes": iter(LEVELS)}, ["`classes` must be a list from the lowest to the highest"]),
    "a threshold too many": ({"classes": [*LEVELS, *map(str, range(198))]}, ["`classes` must have at most 201"]),
}


@over_rows("why", REJECTED)
def test_bad_classes_are_rejected_before_any_charge(why):
    given, words = REJECTED[why]
    X, y = draw(60)
    assert_rejected(DPOrdinalLogisticRegression, given, {"X": X, "y": y}, words, [])
