"""DPMLPClassifier as a user meets it: it learns, it says what it cost, it lives among scikit-learn's tools."""

import itertools
import math
import warnings

import numpy as np
import pandas as pd
import pytest
import reference
import scipy.sparse as sp
from combinations import combined
from rejections import assert_rejected
from scipy import stats
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline

import skdp._dpsgd.network_solver
from skdp import DPMLPClassifier, PrivacyAccountant, config_context
from skdp._dpsgd.models.network import NetworkModel
from skdp.accounting import flatten
from skdp.datasets import make_census
from skdp.preprocessing import DPTableVectorizer, TableSchema

FALSE_ALARM = 1e-6
KINDS = ["binary", "classes", "labels"]


def given_noise(**parameters):
    """An estimator of few and cheap steps, whose noise need not be solved for."""
    return DPMLPClassifier(
        **{"hidden_layer_sizes": (6,), "epsilon": None, "noise_multiplier": 1.0, "max_iter": 3, **parameters}
    )


@pytest.fixture(scope="module")
def table(draw):
    """A function that gives rows and targets for two classes, three, or three labels a row, and `classes`."""
    X, codes = draw(200, n_classes=3)

    def of(kind):
        if kind == "labels":
            return X, (X[:, :3] > 0).astype(int), range(3)
        return (X, codes, range(3)) if kind == "classes" else (X, (codes > 0).astype(int), [0, 1])

    return of


def parameters_of(model):
    return np.concatenate([part.ravel() for pair in zip(model.coefs_, model.intercepts_, strict=True) for part in pair])


# --- it learns --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "dtype"),
    [
        ({"clipping": "automatic"}, np.float64),
        ({"activation": "tanh", "solver": "adam", "learning_rate_init": 0.02}, np.float32),
    ],
    ids=str,
)
def test_without_noise_to_speak_of_it_learns_what_no_linear_model_can(parameters, dtype):
    """XOR of two signs: a line is right for half of the rows, a network for nearly all."""
    X = np.random.default_rng(0).uniform(-1, 1, (2_000, 2)).astype(dtype)
    y = (X[:, 0] > 0) ^ (X[:, 1] > 0)
    assert LogisticRegression().fit(X, y).score(X, y) < 0.6
    model = DPMLPClassifier(
        **{"hidden_layer_sizes": (32,), "epsilon": None, "noise_multiplier": 1e-3, "classes": [False, True],
           "sampling_rate": 0.2, "max_iter": 60, "random_state": 0, **parameters}
    ).fit(X, y)  # fmt: skip
    assert model.score(X, y) > 0.95


@pytest.mark.usefixtures("steps_alone")
@combined(clipping=["flat", "per_layer", "automatic"], kind=KINDS, hidden=[(), (5,), (4, 3)])
def test_one_step_is_the_clipped_mean_gradient(table, hidden, kind, clipping):
    """From the parameters of a first instalment, by the plain reading, at noise of a thousandth of C."""
    X, y, classes = table(kind)
    X = 1.5 * X
    sigma, clip, eta, momentum, data_norm, input_norm = 1e-3, 0.4, 2.0, 0.5, 1.7, 3.0
    weights = np.where(np.arange(200) % 5 == 0, 0.0, np.linspace(0.1, 1.0, 200))
    model = given_noise(
        hidden_layer_sizes=hidden, activation="tanh", classes=classes, clipping=clipping, warm_start=True,
        learning_rate="constant", learning_rate_init=eta, momentum=momentum, average=None, data_norm=data_norm,
        input_norm=input_norm, sampling_rate=1.0,
    ).fit(X, y)  # fmt: skip
    unit = input_norm / data_norm
    before, first_layer = parameters_of(model), 4 * (*hidden, model.n_outputs_)[0]
    theta = before.copy()
    theta[:first_layer] /= unit
    model.set_params(noise_multiplier=sigma, max_grad_norm=clip, max_iter=1).fit(X, y, weights)
    network = reference.Network((4, *hidden, model.n_outputs_), "tanh", model.out_activation_)
    targets = y[:, None] if kind == "binary" else y
    n_layers = len(hidden) + 1
    bounds = np.full(n_layers, clip / math.sqrt(n_layers)) / reference.room_for_rounding(np.float64, network.widths)
    gradients = reference.network_clipped_gradients(
        X, targets, weights, theta, network, clipping, bounds, radius=data_norm, unit=unit
    )
    expected = before - eta * (1 - momentum) * gradients.mean(axis=0) * np.where(
        np.arange(len(theta)) < first_layer, unit, 1.0
    )
    sd = eta * (1 - momentum) * unit * sigma * clip / 200
    np.testing.assert_allclose(parameters_of(model), expected, rtol=0, atol=6 * sd)  # 100 normals: once in 5e6
    assert np.abs(expected - before).max() > 100 * sd
    assert (model.out_activation_, model.n_outputs_) == (
        "softmax" if kind == "classes" else "logistic", 1 if kind == "binary" else 3
    )  # fmt: skip


@pytest.mark.parametrize(("activation", "gain"), [("relu", 2.0), ("tanh", 1.0)])
def test_start_is_random_scaled_by_the_inputs_and_zero_in_the_last_layer(activation, gain):
    """One step of length 1e-300 leaves the start: variance gain / inputs, intercepts and last layer 0."""
    X = np.zeros((10, 40))
    model = given_noise(
        hidden_layer_sizes=(300, 50), activation=activation, learning_rate_init=1e-300, max_iter=1, classes=[0, 1],
        input_norm=math.sqrt(40), random_state=0,
    ).fit(X, np.arange(10) % 2)  # fmt: skip
    for coef in model.coefs_[:-1]:
        score = np.sum(coef**2) / (gain / len(coef))
        assert stats.chi2(coef.size).ppf(FALSE_ALARM / 2) < score < stats.chi2(coef.size).isf(FALSE_ALARM / 2)
    assert np.abs(model.coefs_[-1]).max() < 1e-200
    assert max(np.abs(intercept).max() for intercept in model.intercepts_) < 1e-200


@pytest.mark.usefixtures("steps_alone")
def test_start_depends_on_no_row(table):
    """Not on X, y or weights: one step of length 1e-300 from the same seed, on other data."""
    X, y, _ = table("binary")
    weights = np.linspace(0, 3, 200)
    starts = [
        parameters_of(given_noise(learning_rate_init=1e-300, classes=[0, 1], random_state=0).fit(*data))
        for data in ((X, y), (1e3 * X[::-1], 1 - y), (0 * X, y, weights))
    ]
    for other in starts[1:]:
        np.testing.assert_allclose(other, starts[0], rtol=0, atol=1e-250)


def test_alpha_shrinks_weights_and_spares_intercepts():
    X, y = np.ones((500, 2)), np.arange(500) % 10 > 0
    free, held = (
        given_noise(noise_multiplier=1e-3, alpha=alpha, classes=[False, True], max_iter=50, sampling_rate=1.0).fit(X, y)
        for alpha in (0.0, 1e6)
    )
    assert max(np.abs(coef).max() for coef in held.coefs_) < 1e-3 * max(np.abs(coef).max() for coef in free.coefs_)
    assert held.intercepts_[-1][0] > 0.5


# --- as MLPClassifier -------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("hidden", [(), 5, np.array([5, 4])], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_attributes_and_predictions_are_those_of_scikit_learn(table, kind, hidden):
    """Same names, shapes and meaning; its forward pass with our coefficients gives our probabilities."""
    X, y, classes = table(kind)
    layers = np.atleast_1d(hidden).astype(int).tolist()
    model = given_noise(hidden_layer_sizes=hidden, activation="tanh", classes=classes).fit(X, y)
    peer = MLPClassifier(layers, activation="tanh", max_iter=1)
    peer.fit(X, y)
    for name in ("n_layers_", "n_outputs_", "out_activation_", "n_features_in_"):
        assert getattr(model, name) == getattr(peer, name)
    np.testing.assert_array_equal(model.classes_, peer.classes_)
    assert [c.shape for c in model.coefs_ + model.intercepts_] == [c.shape for c in peer.coefs_ + peer.intercepts_]
    peer.coefs_, peer.intercepts_ = model.coefs_, model.intercepts_
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), rtol=1e-9, atol=1e-15)
    np.testing.assert_array_equal(model.predict(X), peer.predict(X))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X), rtol=1e-9)


@pytest.mark.parametrize("average", [None, "tail"])
@pytest.mark.parametrize("solver", ["sgd", "adam"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_coefficients_have_the_dtype_of_the_rows(table, dtype, solver, average):
    X, y, classes = table("classes")
    model = given_noise(classes=classes, solver=solver, alpha=0.1, average=average).fit(X.astype(dtype), y)
    assert {part.dtype for part in model.coefs_ + model.intercepts_} == {np.dtype(dtype)}
    assert model.predict_proba(X).dtype == dtype


# --- formats ----------------------------------------------------------------------------------------------------------


def test_sparse_rows_and_other_layouts_are_the_same_rows(table):
    X, y, classes = table("classes")
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    model = given_noise(classes=classes, sampling_rate=0.5, random_state=0, activation="tanh")
    dense = clone(model).fit(X, y)
    for to_X in (sp.csr_array, sp.coo_array, np.asfortranarray):
        found = clone(model).fit(to_X(X), y)
        np.testing.assert_allclose(parameters_of(found), parameters_of(dense), rtol=0, atol=1e-9)
        np.testing.assert_allclose(found.predict_proba(to_X(X)), dense.predict_proba(X), rtol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_batch_size_changes_nothing_but_rounding(table, kind):
    """Property 3, through the estimator: noise, lots and steps are the same."""
    X, y, classes = table(kind)
    fits = [
        parameters_of(given_noise(classes=classes, random_state=0, batch_size=size, activation="tanh").fit(X, y))
        for size in ("auto", 1, 37, 10**6)
    ]
    for other in fits[1:]:
        np.testing.assert_allclose(other, fits[0], rtol=0, atol=1e-11)


# --- noise ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "sampling", "dtype", "clipping"),
    [
        (1, {"sampling_rate": 1.0}, np.float32, "flat"),
        (10, {"sampling_rate": 1.0}, np.float64, "per_layer"),
        (1000, {"sampling_rate": 1.0}, np.float32, "per_layer"),
        (1000, {"lot_size": 10}, np.float64, "flat"),
    ],
    ids=str,
)
def test_spread_of_a_step_on_null_records(n, sampling, dtype, clipping):
    """Properties 2 and 13: sigma C / L for L = 1, 10, 1000, in every parameter, over T steps by sqrt(T)."""
    X, y = np.ones((n, 30), dtype), np.arange(n) % 2
    nothing = np.full(n, 1e-30, dtype)
    model = given_noise(
        hidden_layer_sizes=(60,), classes=[0, 1], learning_rate="constant", learning_rate_init=1.0, momentum=0.0,
        average=None, max_iter=1, warm_start=True, clipping=clipping, delta=1e-9, random_state=3, noise_multiplier=1.7,
        max_grad_norm=0.3, **sampling,
    ).fit(X, y, nothing)  # fmt: skip
    before, first = parameters_of(model).astype(float), model.n_steps_
    model.fit(X, y, nothing)
    moved = parameters_of(model).astype(float) - before
    moved[: model.coefs_[0].size] /= 8.0 / math.sqrt(30)  # the first layer's are for rows as they are given
    n_steps = model.n_steps_ - first
    sd = 1.7 * 0.3 / (model.sampling_rate_ * n) * math.sqrt(n_steps)
    rounding = 1.0 if dtype == np.float64 else 1.0 + 1e-3  # parameters near 1, moved by 5e-4 and more, in steps of 6e-8
    spread = stats.chi2(moved.size)
    assert spread.ppf(FALSE_ALARM / 2) / rounding < np.sum((moved / sd) ** 2) < rounding * spread.isf(FALSE_ALARM / 2)
    start = 0
    for part in itertools.chain(*zip(model.coefs_, model.intercepts_, strict=True)):
        score = np.sum((moved[start : start + part.size] / sd) ** 2)
        start += part.size
        spread = stats.chi2(part.size)
        assert spread.ppf(FALSE_ALARM / 12) / rounding < score < rounding * spread.isf(FALSE_ALARM / 12)


# --- DP-Adam ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("clipping", ["flat", "per_layer"])
def test_adam_does_not_see_the_clip_where_every_gradient_is_clipped(table, clipping):
    """Schwabedal et al. (2020), for a vanishing adam_epsilon; with one that does not vanish the clip is felt."""
    X, y, classes = table("classes")

    def fitted(clip, adam_epsilon):
        model = given_noise(
            classes=classes, solver="adam", adam_epsilon=adam_epsilon, clipping=clipping,
            max_grad_norm=clip, max_iter=6, sampling_rate=0.5, activation="tanh", random_state=0,
            learning_rate_init=0.01,
        )  # fmt: skip
        return parameters_of(model.fit(1e3 * X, y, np.full(200, 1e6)))

    start = fitted(1e-4, 1e30)
    updates = [fitted(clip, 0.0) - start for clip in (1e-4, 1e-5)]
    assert np.abs(updates[0]).max() > 0.01
    assert np.abs(updates[0] - updates[1]).max() <= 1e-6 * np.abs(updates[0]).max()
    felt = [fitted(clip, 1e-6) - start for clip in (1e-4, 1e-5)]
    assert np.abs(felt[0] - felt[1]).max() > 1e-2 * np.abs(felt[0]).max()


# --- schedules and averages -------------------------------------------------------------------------------------------


def rates_of(table, monkeypatch, **parameters):
    """The step lengths that a fit of 20 steps uses."""
    rates = []
    original = skdp._dpsgd.loop.momentum_sgd

    def watched(schedule, *arguments):
        def noted(step):
            rates.append(schedule(step))
            return rates[-1]

        return original(noted, *arguments)

    X, y, classes = table("classes")
    with monkeypatch.context() as patch:
        patch.setattr(skdp._dpsgd.loop, "momentum_sgd", watched)
        given_noise(classes=classes, sampling_rate=0.5, max_iter=10, **parameters).fit(X, y)
    assert len(rates) == 20
    return rates


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"learning_rate": "constant", "learning_rate_init": 0.3}, {0: 0.3, 19: 0.3}),
        ({"learning_rate_init": 0.4}, {0: 0.4, 10: 0.3, 19: 0.21}),  # linear, to half of the start
        (  # Abadi et al. (2016), section 5.2: "from 0.1 to 0.052 over 10 epochs and then fixed to 0.052"
            {"learning_rate_init": 0.1, "learning_rate_end": (0.052, 5)},
            {0: 0.1, 5: 0.076, 10: 0.052, 19: 0.052},
        ),
        ({"learning_rate": "cosine", "learning_rate_init": 2.0}, {0: 2.0, 10: 1.0, 19: 1 + math.cos(math.pi * 0.95)}),
        (
            {"learning_rate": "cosine", "learning_rate_init": 2.0, "learning_rate_end": (1.0, 2.0)},
            {0: 2.0, 2: 1.5, 4: 1.0, 19: 1.0},
        ),
    ],
    ids=lambda case: ", ".join(f"{k}={v}" for k, v in case.items()),
)
def test_step_lengths(table, monkeypatch, parameters, expected):
    """Epochs are turned into steps by the sampling rate: two a step here."""
    rates = rates_of(table, monkeypatch, **parameters)
    for step, rate in expected.items():
        assert rates[step] == pytest.approx(rate, rel=1e-12)


@pytest.mark.parametrize(("from_vectorizer", "norm"), [(False, 8.0), (True, 4.0)])
def test_the_norm_at_the_input_follows_the_norm_that_rows_bring(from_vectorizer, norm):
    """Bit for bit the model of that `input_norm`, whatever the rows hold."""
    people = make_census(300, random_state=0)
    low, high = np.array([people.bounds[name] for name in people.feature_names]).T
    X, y = (people.data - low) / (high - low), people.target
    schema = TableSchema({f"x{number}": (0.0, 1.0) for number in range(X.shape[1])})

    def fitted(**parameters):
        model = given_noise(classes=people.classes, random_state=0, delta=1e-5, **parameters)
        if not from_vectorizer:
            return model.fit(X, y)
        return make_pipeline(DPTableVectorizer(schema, numbers="scale"), model).fit(X, y)[-1]

    np.testing.assert_array_equal(fitted().coefs_[0], fitted(input_norm=norm).coefs_[0])
    assert not np.array_equal(fitted().coefs_[0], fitted(input_norm=5.0).coefs_[0])


# --- the cost --------------------------------------------------------------------------------------------------------


def test_bounds_of_layers_are_billed_by_their_root_of_squares(table):
    """Property 4: C is 0.5 for bounds 0.3 and 0.4, and one number is shared equally."""
    X, y, classes = table("classes")
    model = given_noise(classes=classes, clipping="per_layer", max_grad_norm=(0.3, 0.4)).fit(X, y)
    assert model.max_grad_norm_ == pytest.approx(0.5, rel=1e-15)
    one, other = (
        given_noise(classes=classes, clipping="per_layer", max_grad_norm=bounds, random_state=0).fit(X, y)
        for bounds in (0.5, [math.sqrt(0.125)] * 2)
    )
    np.testing.assert_allclose(parameters_of(one), parameters_of(other), rtol=1e-9)


@pytest.mark.usefixtures("steps_alone")
def test_an_instalment_goes_on_from_the_present_coefficients(table):
    """Whatever the scaling of rows is by then: with steps of length 1e-300 they stay where they were."""
    X, y, classes = table("classes")
    model = given_noise(classes=classes, warm_start=True, learning_rate_init=0.5).fit(X, y)
    before = parameters_of(model)
    model.set_params(learning_rate_init=1e-300, data_norm=7.0, input_norm=0.1, average=None).fit(X, y)
    np.testing.assert_allclose(parameters_of(model), before, rtol=1e-12)
    assert not np.allclose(parameters_of(model.set_params(warm_start=False).fit(X, y)), before)


def test_partial_fit_names_the_labels_once(table):
    X, Y, _ = table("labels")
    model = given_noise()
    with pytest.raises(ValueError, match="`classes` must be set before the first call of partial_fit"):
        model.partial_fit(X, Y)
    model.partial_fit(X, Y, classes=["a", "b", "c"]).partial_fit(X, Y)
    assert model.classes_.tolist() == ["a", "b", "c"]
    with pytest.raises(
        ValueError, match=r"`classes` must name the 3 columns of y, as in earlier runs, got \['b', 'a', 'c'\]"
    ):
        model.partial_fit(X, Y, classes=["b", "a", "c"])


@pytest.mark.parametrize(
    ("changes", "kinds", "message"),
    [
        ({"hidden_layer_sizes": (6, 6)}, ("classes", "classes"), r"hidden_layer_sizes=\(6, 6\) does not match"),
        ({"adjacency": "replace_one"}, ("classes", "classes"), "adjacency='replace_one' differs from 'zero_out'"),
        ({"classes": [0, 1]}, ("classes", "binary"), r"classes=\[0, 1\] differs from \[0, 1, 2\] in earlier"),
        ({}, ("classes", "labels"), "The outputs of this run are 'logistic', but those of earlier runs are 'softmax'"),
    ],
)
def test_instalments_that_do_not_fit_are_rejected_and_not_charged(table, changes, kinds, message):
    (X, y, classes), (_, other, _) = (table(kind) for kind in kinds)
    accountant = PrivacyAccountant()
    model = given_noise(classes=classes, warm_start=True, accountant=accountant).fit(X, y)
    before = parameters_of(model), model.epsilon_
    model.set_params(**changes)
    with pytest.raises(ValueError, match=message) as caught:
        model.fit(X, other)
    assert "\n" not in str(caught.value)
    assert "start a new fit with warm_start=False" in str(caught.value)
    assert len(accountant.history) == 1
    np.testing.assert_array_equal(parameters_of(model), before[0])
    assert model.epsilon_ == before[1]


# --- interruption -----------------------------------------------------------------------------------------------------


@pytest.fixture
def interrupted(monkeypatch):
    """A function that lets the next fit see Ctrl-C while its sum of that number, from 0, is under way."""

    def at(n_sums):
        class Interrupted(NetworkModel):
            n_calls = 0

            def clipped_gradient_sum(self, *arguments):
                if self.n_calls == n_sums:
                    raise KeyboardInterrupt
                self.n_calls += 1
                return super().clipped_gradient_sum(*arguments)

        monkeypatch.setattr(skdp._dpsgd.network_solver, "NetworkModel", Interrupted)
        return pytest.warns(UserWarning, match=f"interrupted after {n_sums} of 20 steps.* full privacy cost")

    return at


@pytest.mark.usefixtures("steps_alone")
@pytest.mark.parametrize("average", ["ema", "tail", None])
@pytest.mark.parametrize("n_done", [0, 7, 15])
def test_interrupted_fit_keeps_the_model_of_the_steps_done_and_the_full_charge(table, interrupted, n_done, average):
    """For the tail: before it starts, and within it."""
    X, y, classes = table("classes")
    accountant = PrivacyAccountant()
    common = {"classes": classes, "sampling_rate": 1.0, "learning_rate": "constant", "learning_rate_init": 0.1}
    model = given_noise(accountant=accountant, average=average, max_iter=20, random_state=0, **common)
    iterates = [
        parameters_of(given_noise(average=None, max_iter=k, random_state=0, **common).fit(X, y))
        for k in range(1, n_done + 1)
    ]
    with interrupted(n_done):
        model.fit(X, y)
    assert (model.n_steps_, len(accountant.history)) == (n_done, 1)
    assert sum(flatten(model.privacy_event_).values()) == 20 + 1
    assert model.epsilon_ == accountant.get_epsilon(1e-5)
    assert model.predict_proba(X).shape == (200, 3)
    if n_done:
        plain = {"ema": reference.ema, "tail": reference.tail_mean, None: lambda them, n_steps: them[-1]}[average]
        np.testing.assert_allclose(parameters_of(model), plain(iterates, 20), rtol=0, atol=1e-12)
    else:
        assert np.any(model.coefs_[0] != 0)  # the start, from which another instalment can go on


# --- among scikit-learn's tools ---------------------------------------------------------------------------------------


def test_nothing_leaks_with_classes_and_no_seed(table):
    """The number of columns of y is public, so labels need no names."""
    with config_context(on_leak="raise"), warnings.catch_warnings(action="error"):
        X, y, _ = table("labels")
        given_noise().fit(X, y)


# --- labels -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [bool, object, sp.csr_array, pd.DataFrame], ids=str)
def test_several_labels_of_any_form(table, form):
    X, Y, _ = table("labels")
    given = Y.astype(form) if form in (bool, object) else form(Y)
    plain, found = (given_noise(random_state=0).fit(X, labels) for labels in (Y, given))
    np.testing.assert_array_equal(parameters_of(found), parameters_of(plain))
    assert found.predict(X).shape == (200, 3)
    assert found.score(X, Y) == plain.score(X, Y)


# --- bad input --------------------------------------------------------------------------------------------------------

X_GOOD = np.linspace(-1.0, 1.0, 80).reshape(40, 2)
Y_GOOD = np.arange(40) % 2
Y_LABELS = np.column_stack([Y_GOOD, 1 - Y_GOOD])


def spoilt(value):
    X = X_GOOD.copy()
    X[3, 1] = value
    return X


# What is changed, and what the message must contain: the parameter and its value (data are not quoted).
BAD_INPUT = [
    ({"hidden_layer_sizes": (5, 0)}, ["`hidden_layer_sizes` must be", "got 0"]),
    ({"hidden_layer_sizes": "5"}, ["`hidden_layer_sizes` must be", "got '5'"]),
    ({"hidden_layer_sizes": [[5]]}, ["`hidden_layer_sizes` must be", "got <list>"]),
    ({"activation": "swish"}, ["`activation` must be", "got 'swish'", "'identity', 'logistic', 'tanh', 'relu'"]),
    ({"solver": "lbfgs"}, ["`solver` must be", "got 'lbfgs'", "'sgd', 'adam'"]),
    ({"clipping": "ghost"}, ["`clipping` must be", "got 'ghost'", "'flat', 'per_layer', 'automatic'"]),
    ({"learning_rate": 0.1}, ["`learning_rate` must be", "got 0.1", "'constant', 'linear', 'cosine'"]),
    ({"average": True}, ["`average` must be", "got True", "'ema', 'tail'"]),
    ({"max_grad_norm": (0.1, 0.2)}, ["max_grad_norm=(0.1, 0.2)", "2 layers"]),
    ({"max_grad_norm": (0.1,), "clipping": "per_layer"}, ["max_grad_norm=(0.1,)", "one bound per layer"]),
    (
        {"max_grad_norm": (0.1, math.nan), "clipping": "per_layer"},
        ["`max_grad_norm` must be", "got nan", "from 1e-30 to 1e30"],
    ),
    ({"max_grad_norm": math.inf}, ["`max_grad_norm` must be", "got inf"]),
    ({"input_norm": 1e7}, ["`input_norm` must be", "got 10000000.0", "from 1e-6 to 1e6"]),
    ({"batch_size": 1.5}, ["`batch_size` must be", "got 1.5", "'auto'"]),
    ({"learning_rate_init": "x"}, ["`learning_rate_init` must be", "got 'x'", "'auto'"]),
    ({"learning_rate_end": -1}, ["`learning_rate_end` must be", "got -1"]),
    ({"momentum": 1}, ["`momentum` must be", "got 1"]),
    ({"beta_1": 1.0}, ["`beta_1` must be", "got 1.0"]),
    ({"beta_2": -0.1}, ["`beta_2` must be", "got -0.1"]),
    ({"adam_epsilon": -1e-8}, ["`adam_epsilon` must be", "got -1e-08"]),
    ({"alpha": -1}, ["`alpha` must be", "got -1"]),
    ({"classes": [0, 2]}, ["not in classes=[0, 2]"]),
    ({"y": Y_LABELS + 0.5}, ["several columns, so it must contain only 0 and 1"]),
    ({"y": np.where(Y_LABELS, "yes", "no")}, ["several columns, so it must contain only 0 and 1"]),
    (
        {"y": Y_LABELS, "classes": [0, 1, 2]},
        ["`classes` must name the 2 columns of y, as in earlier runs, got [0, 1, 2]"],
    ),
    ({"y": Y_LABELS, "classes": 2}, ["`classes` must name the 2 columns of y, as in earlier runs, got 2"]),
    ({"w": -np.ones(40)}, ["Negative values in data passed to `sample_weight`"]),
    ({"X": spoilt(math.nan)}, ["Input X contains NaN"]),
    ({"X": sp.csr_array(spoilt(math.inf))}, ["Input X contains infinity"]),
    ({"y": np.where(Y_LABELS, 1.0, math.nan)}, ["Input y contains NaN"]),
    ({"y": Y_LABELS[:, :, None]}, ["y should be a 1d array"]),
]
REJECTIONS = [
    pytest.param(*case, id=", ".join(f"{k}={np.shape(v) if k in 'Xyw' else v!r}" for k, v in case[0].items()))
    for case in BAD_INPUT
]


@pytest.mark.parametrize(("changes", "fragments"), REJECTIONS)
def test_bad_input_is_rejected_in_one_line_before_any_charge(changes, fragments):
    parameters = {"classes": [0, 1], **{key: value for key, value in changes.items() if key not in "Xyw"}}
    given = {"X": changes.get("X", X_GOOD), "y": changes.get("y", Y_GOOD), "sample_weight": changes.get("w")}
    assert_rejected(given_noise, parameters, given, fragments, errors=(ValueError,))
