"""A run that is stopped goes on from its file: same price, same steps, and with a seed the very same parameters."""

from __future__ import annotations

import contextlib
import errno
import inspect
import itertools
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pandas as pd
import pytest
from combinations import combined
from interrupts import StopAfter

import skdp._training.estimator
from skdp import BudgetExceededError, DPLogisticRegression, DPMLPClassifier, PrivacyAccountant
from skdp._training import loop
from skdp.ensemble import DPRandomTreesClassifier
from skdp.mechanisms import gaussian as mechanisms
from skdp.mechanisms import streams as _random
from skdp.mechanisms.streams import SecretStream

pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyLeakWarning")  # a replay needs a seed

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(400, 5))
Y = (X[:, 0] > 0).astype(int)
MODELS = {
    "full batch": (DPLogisticRegression, {"max_iter": 30}),
    "sampled": (DPLogisticRegression, {"sampling_rate": 0.1, "max_iter": 4}),
    "last iterate": (DPLogisticRegression, {"max_iter": 30, "average": False}),
    "network": (DPMLPClassifier, {"hidden_layer_sizes": (7,), "sampling_rate": 0.2, "max_iter": 8}),
    "adam": (DPMLPClassifier, {"hidden_layer_sizes": (7,), "solver": "adam", "average": "tail", "max_iter": 40}),
    "trees": (DPRandomTreesClassifier, {"n_estimators": 9, "max_depth": 3, "bounds": (-1, 1), "max_iter": 30}),
    "trees, sampled": (
        DPRandomTreesClassifier,
        {"n_estimators": 9, "max_depth": 3, "bounds": (-1, 1), "sampling_rate": 0.1, "max_iter": 4},
    ),
    "wide": (DPMLPClassifier, {"hidden_layer_sizes": (300, 40), "sampling_rate": 0.2, "max_iter": 8}),
}


def make(name, path=None, **parameters):
    cls, own = MODELS[name]
    return cls(**{"classes": [0, 1], "random_state": 7, "checkpoint": path, "delta": 1e-4, **own, **parameters})


def parameters_of(model):
    if isinstance(model, DPMLPClassifier):
        return [*model.coefs_, *model.intercepts_]
    return [model.coef_, model.intercept_]


def stopped(model, n_steps, error, monkeypatch, **keywords):
    """Fit, and stop in the middle: by Ctrl-C, which is handled, or by another error, as if the process had died."""
    with monkeypatch.context() as patch:
        patch.setattr(type(model), "_make_progress", lambda *arguments: StopAfter(n_steps, error))
        if isinstance(error, KeyboardInterrupt):
            with pytest.warns(UserWarning, match="interrupted"):
                model.fit(X, Y, **keywords)
        else:
            with pytest.raises(type(error)):
                model.fit(X, Y, **keywords)
    return model


def test_a_run_that_released_more_than_is_planned_is_refused(tmp_path, monkeypatch):
    """Of three classes that the constructor does not name, the counts are released, and priced."""
    path, y = tmp_path / "run.npz", np.arange(len(X)) % 3
    parameters = {"epsilon": None, "noise_multiplier": 3.0, "sampling_rate": 1.0}
    with monkeypatch.context() as patch:
        patch.setattr(DPMLPClassifier, "_make_progress", lambda *arguments: StopAfter(2, KeyboardInterrupt()))
        with pytest.warns(UserWarning, match="interrupted"):
            make("network", path, classes=None, **parameters).fit(X, y)
    accountant = PrivacyAccountant()
    with pytest.raises(ValueError, match="of a run that released class counts, which is not part of this run"):
        make("network", path, classes=[0, 1, 2], accountant=accountant, **parameters).fit(X, y)
    assert len(accountant.history) == 0


@combined(1, name=MODELS, error=[KeyboardInterrupt(), SystemError("killed")], n_steps=[17, 1])
def test_a_seeded_run_ends_where_it_would_have(name, error, n_steps, tmp_path, monkeypatch):
    path, accountant = tmp_path / "run.npz", PrivacyAccountant()
    whole = make(name).fit(X, Y)
    stopped(make(name, path, accountant=accountant), n_steps, error, monkeypatch)
    resumed = make(name, path, accountant=accountant).fit(X, Y)
    for one, other in zip(parameters_of(whole), parameters_of(resumed), strict=True):
        np.testing.assert_array_equal(one, other)
    assert (resumed.epsilon_, resumed.n_steps_, resumed.n_iter_) == (whole.epsilon_, whole.n_steps_, whole.n_iter_)
    assert resumed.privacy_event_ == whole.privacy_event_
    assert len(accountant.history) == 1
    assert not path.exists()


@pytest.mark.parametrize("name", ["sampled", "adam"])
def test_a_file_changes_no_result(name, tmp_path):
    plain, kept = make(name).fit(X, Y), make(name, tmp_path / "run.npz").fit(X, Y)
    for one, other in zip(parameters_of(plain), parameters_of(kept), strict=True):
        np.testing.assert_array_equal(one, other)
    assert list(tmp_path.iterdir()) == []


def test_one_release_a_step(tmp_path, monkeypatch):
    """Steps that were in the model handed out are not run again, so no step is ever released twice."""
    ran, release = [], skdp.mechanisms.GaussianMechanism.release
    monkeypatch.setattr(
        skdp.mechanisms.GaussianMechanism, "release", lambda *arguments: ran.append(1) or release(*arguments)
    )
    path = tmp_path / "run.npz"
    model = stopped(make("sampled", path, random_state=None), 17, KeyboardInterrupt(), monkeypatch)
    assert (len(ran), model.n_steps_) == (1 + 17, 17)  # the first one is that of the class counts
    resumed = make("sampled", path, random_state=None).fit(X, Y)
    assert (len(ran), resumed.n_steps_) == (1 + 40 + 1, 40)  # the last one is the offset


def test_without_a_seed_the_noise_is_fresh(tmp_path, monkeypatch):
    path = tmp_path / "run.npz"
    stopped(make("sampled", path, random_state=None), 20, KeyboardInterrupt(), monkeypatch)
    content = path.read_bytes()
    first = make("sampled", path, random_state=None).fit(X, Y)
    path.write_bytes(content)
    second = make("sampled", path, random_state=None).fit(X, Y)
    assert not np.any(first.coef_ == second.coef_)


@pytest.mark.parametrize("seed", [None, 7])
def test_no_state_of_a_generator_in_the_file_unless_seeded(seed, tmp_path, monkeypatch):
    path, keys = tmp_path / "run.npz", []
    begin = SecretStream.__init__
    monkeypatch.setattr(
        SecretStream, "__init__", lambda self, key, *track: keys.append(key) or begin(self, key, *track)
    )
    stopped(make("network", path, random_state=seed), 20, KeyboardInterrupt(), monkeypatch)
    with np.load(path, allow_pickle=False) as file:
        header = json.loads(bytes(file["header"]))
        leaves = [file[name] for name in file.files if name != "header"]
    assert (header["positions"] is None) == (seed is None)
    assert keys
    assert not any(key in path.read_bytes() or key.hex() in json.dumps(header) for key in keys)
    n_parameters = 5 * 7 + 7 + 7 + 1
    assert [leaf.size for leaf in leaves] == [n_parameters, n_parameters, 1, n_parameters, 1]


def test_an_accountant_that_does_not_hold_the_charge_is_charged(tmp_path, monkeypatch):
    path, other = tmp_path / "run.npz", PrivacyAccountant()
    stopped(make("sampled", path, accountant=PrivacyAccountant()), 9, KeyboardInterrupt(), monkeypatch)
    resumed = make("sampled", path, accountant=other).fit(X, Y)
    assert [charge.event for charge in other.history] == [resumed.privacy_event_]


@pytest.mark.parametrize(
    ("changes", "rows", "name"),
    [
        ({"max_grad_norm": 0.3}, 400, "max_grad_norm"),
        ({"random_state": 8}, 400, "random_state"),
        ({"random_state": None}, 400, "random_state"),
        ({"classes": [0, 1, 2]}, 400, "classes"),
        ({"alpha": 0.1}, 400, "alpha"),
        ({}, 399, "table"),
    ],
)
def test_a_file_of_another_run_is_refused_before_any_charge(changes, rows, name, tmp_path, monkeypatch):
    path, accountant = tmp_path / "run.npz", PrivacyAccountant()
    stopped(make("sampled", path), 9, KeyboardInterrupt(), monkeypatch)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=rf"is of another run \(its {name} differs\).*or remove the file"):
        make("sampled", path, accountant=accountant, **changes).fit(X[:rows], Y[:rows])
    assert accountant.history == ()
    assert path.read_bytes() == before


@pytest.mark.parametrize(("first", "then"), [("home", None), (None, "home"), ("home", "person")])
def test_a_run_for_groups_goes_on_for_groups_by_the_same_column(first, then, tmp_path, monkeypatch):
    """It is charged once: a ledger is not asked again, and would have refused the second fit."""
    labels = {name: {"groups": pd.Series(np.arange(400) // 2, name=name)} for name in ("home", "person")} | {None: {}}
    path, ledger = tmp_path / "run.npz", PrivacyAccountant(unit="household" if first else "row")
    given = {"accountant": ledger, "n_samples_public": 200, "n_groups_public": 200}
    stopped(make("sampled", path, **given), 9, KeyboardInterrupt(), monkeypatch, **labels[first])
    with pytest.raises(ValueError, match=r"is of another run \(its unit differs\)"):
        make("sampled", path, **given).fit(X, Y, **labels[then])
    resumed = make("sampled", path, **given).fit(X, Y, **labels[first])
    assert resumed.privacy_unit_ == ("group" if first else "row")
    assert len(ledger.history) == 1


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", b"PK\x03\x04 cut short"])
def test_a_damaged_file_is_refused_before_any_charge(content, tmp_path):
    path, accountant = tmp_path / "run.npz", PrivacyAccountant()
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is no checkpoint"):
        make("sampled", path, accountant=accountant).fit(X, Y)
    assert accountant.history == ()


# --- instalments: the file names what came before ---


def instalment(path=None, **parameters):
    """A second instalment, after a first one at a price of its own."""
    model = make("full batch", random_state=None, warm_start=True, **parameters).fit(X, Y)
    return model.set_params(epsilon=0.5, checkpoint=path)


def test_a_run_does_not_go_on_after_another_first_phase(tmp_path, monkeypatch):
    """Its state depends on the first phase that it began after, which a cheaper one does not pay for."""
    path, accountant = tmp_path / "run.npz", PrivacyAccountant()
    stopped(instalment(path, epsilon=8.0), 17, SystemError("killed"), monkeypatch)
    before = path.read_bytes()
    other = instalment(path, epsilon=0.1).set_params(accountant=accountant)
    price, coefficients = other.epsilon_, other.coef_.copy()
    with pytest.raises(ValueError, match=r"is of another run \(its earlier events differs\)"):
        other.fit(X, Y)
    assert accountant.history == ()
    assert path.read_bytes() == before
    assert other.epsilon_ == price
    np.testing.assert_array_equal(other.coef_, coefficients)
    same = instalment(path, epsilon=8.0).fit(X, Y)
    assert same.n_steps_ == 60
    assert same.epsilon_ > 8.0


def test_an_interrupted_instalment_is_resumed_by_the_same_call(tmp_path, monkeypatch):
    """The model of the steps done already depends on this run: going on with it adds no event."""
    path, accountant = tmp_path / "run.npz", PrivacyAccountant()
    model = instalment(path, accountant=accountant)
    stopped(model, 17, KeyboardInterrupt(), monkeypatch)
    assert (model.n_steps_, len(accountant.history)) == (47, 2)
    price, event = model.epsilon_, model.privacy_event_
    model.fit(X, Y)
    assert (model.n_steps_, model.n_iter_, len(accountant.history)) == (60, 60, 2)
    assert (model.epsilon_, model.privacy_event_) == (price, event)
    assert not path.exists()
    model.fit(X, Y)  # and the next one is new
    assert (model.n_steps_, len(accountant.history)) == (90, 3)
    assert model.epsilon_ > price


@pytest.mark.parametrize("warm_start", [False, True])
def test_a_run_that_ended_before_its_file_was_removed_gives_the_very_same_model(warm_start, tmp_path, monkeypatch):
    """Two models for one charge would be two releases."""
    path, accountant = tmp_path / "run.npz", PrivacyAccountant()
    model = make("sampled", path, random_state=None, accountant=accountant, warm_start=warm_start)
    with monkeypatch.context() as patch:
        patch.setattr(
            skdp._training.checkpoint.Checkpoint, "finish", lambda self: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, Y)
    first, price = model.coef_.copy(), model.epsilon_
    assert path.exists()
    model.fit(X, Y)
    np.testing.assert_array_equal(model.coef_, first)
    assert (model.n_steps_, model.epsilon_, len(accountant.history)) == (40, price, 1)
    assert list(tmp_path.iterdir()) == []


# --- files that a killed process left ---


def test_a_file_that_was_not_moved_to_its_name_is_where_the_run_resumes(tmp_path, monkeypatch):
    """Its steps may have been read: releasing them a second time is not paid for."""
    path, ran, release = tmp_path / "run.npz", [], skdp.mechanisms.GaussianMechanism.release
    stopped(make("sampled", path, random_state=None), 6, SystemError("killed"), monkeypatch)
    earlier = path.read_bytes()
    stopped(make("sampled", path, random_state=None), 8, SystemError("killed"), monkeypatch)
    later = path.read_bytes()
    path.write_bytes(earlier)
    (tmp_path / "run.npz.4242.part").write_bytes(later)
    (tmp_path / "run.npz.4243.part").write_bytes(later[: len(later) // 2])  # cut short
    (tmp_path / "other.npz.4244.part").write_bytes(later)  # of another file
    with np.load(path) as file:
        done_earlier = json.loads(bytes(file["header"]))["n_done"]
    with np.load(tmp_path / "run.npz.4242.part") as file:
        done_later = json.loads(bytes(file["header"]))["n_done"]
    assert done_earlier < done_later
    monkeypatch.setattr(
        skdp.mechanisms.GaussianMechanism, "release", lambda *arguments: ran.append(1) or release(*arguments)
    )
    model = make("sampled", path, random_state=None).fit(X, Y)
    assert (len(ran), model.n_steps_) == (40 - done_later + 1, 40)
    assert [each.name for each in tmp_path.iterdir()] == ["other.npz.4244.part"]


def test_a_part_of_another_run_takes_no_place(tmp_path, monkeypatch):
    path, part = tmp_path / "run.npz", tmp_path / "run.npz.4242.part"
    stopped(make("sampled", path), 30, SystemError("killed"), monkeypatch)
    path.rename(tmp_path / "later, with another receipt")
    stopped(make("sampled", path), 6, SystemError("killed"), monkeypatch)
    (tmp_path / "later, with another receipt").rename(part)
    stopped(make("sampled", path), 1, SystemError("killed"), monkeypatch)
    assert not part.exists()
    with np.load(path) as file:
        assert json.loads(bytes(file["header"]))["n_done"] <= 7


SCRIPT = """
import signal, sys
import numpy as np
from skdp import DPMLPClassifier, PrivacyAccountant
X = np.random.default_rng(0).uniform(-1, 1, size=(500, 5))
model = DPMLPClassifier(
    (20,), classes=[0, 1], random_state=3, sampling_rate=0.5, max_iter=60, delta=1e-5,
    checkpoint=sys.argv[1], accountant=PrivacyAccountant(5.0, 1e-5, path=sys.argv[2]),
)
class Halt:
    def __call__(self, n_done):
        if n_done == 60:
            signal.pause()
    def close(self):
        pass
if sys.argv[4:]:
    DPMLPClassifier._make_progress = lambda *given: Halt()
model.fit(X, (X[:, 0] * X[:, 1] > 0).astype(int))
np.save(sys.argv[3], model.coefs_[0])
"""


def test_kill_9_and_go_on_in_another_process(tmp_path):
    """The file is there after a kill at any moment, the ledger shows one charge, and the end is that of a whole run."""
    environment = {**os.environ, "PYTHONWARNINGS": "ignore", "OPENBLAS_NUM_THREADS": "1"}

    def command(run, budget, out):
        names = [str(tmp_path / name) for name in (run, budget, out)]
        return [sys.executable, "-c", textwrap.dedent(SCRIPT), *names]

    # Half of the steps are done while the signal is on its way, or fewer.
    process = subprocess.Popen([*command("run.npz", "a.budget", "a.npy"), "wait"], env=environment)
    deadline = time.monotonic() + 600
    while not (tmp_path / "run.npz").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert (tmp_path / "run.npz").exists()
    assert not (tmp_path / "a.npy").exists()
    for arguments in (("run.npz", "a.budget", "a.npy"), ("other.npz", "b.budget", "b.npy")):
        subprocess.run(command(*arguments), env=environment, check=True, timeout=600)
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), np.load(tmp_path / "b.npy"))
    ledgers = [PrivacyAccountant.open(tmp_path / name) for name in ("a.budget", "b.budget")]
    assert [len(ledger.history) for ledger in ledgers] == [1, 1]
    assert ledgers[0].get_epsilon() == ledgers[1].get_epsilon()


# --- disks that are full, and kills around the charge ---


@contextlib.contextmanager
def full_disk():
    """No file grows beyond a size that no state of a run has."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, before[1]))  # Python ignores the signal: writing gives an error
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def drawn(monkeypatch):
    """The draws of noise so far, and what to do at each, given its number."""
    counted, actions, add = [], [], mechanisms.GaussianMechanism._add_noise

    def noted(mechanism, value, stream):
        counted.append(1)
        for action in actions:
            action(len(counted))
        return add(mechanism, value, stream)

    monkeypatch.setattr(mechanisms.GaussianMechanism, "_add_noise", noted)
    return counted, actions


def test_a_full_disk_before_the_charge_costs_nothing(tmp_path, drawn):
    path, accountant = tmp_path / "run.npz", PrivacyAccountant()
    make("sampled").fit(X, Y)  # nothing is left to compile
    drawn[0].clear()
    model = make("sampled", path, accountant=accountant)
    for _ in range(3):
        with full_disk(), pytest.raises(OSError, match=r"this fit was not charged: make room.*another path") as caught:
            model.fit(X, Y)
        message = str(caught.value)
        assert message.startswith(f"checkpoint={str(path)!r} could not be written (")
        assert "\n" not in message
        assert caught.value.errno == errno.EFBIG
        assert (accountant.history, drawn[0], list(tmp_path.iterdir())) == ((), [], [])
    model.fit(X, Y)
    assert len(accountant.history) == 1


@pytest.mark.parametrize("error", [None, KeyboardInterrupt()], ids=["", "interrupted"])
def test_a_full_disk_within_a_run_leaves_the_charge_and_the_last_file(error, tmp_path, drawn, monkeypatch):
    path, accountant, whole = tmp_path / "run.npz", PrivacyAccountant(), make("sampled").fit(X, Y)
    counted, actions = drawn
    counted.clear()
    model = make("sampled", path, accountant=accountant)
    with contextlib.ExitStack() as stack:
        if error is not None:
            patch = stack.enter_context(monkeypatch.context())
            patch.setattr(type(model), "_make_progress", lambda *arguments: StopAfter(15, error))
        actions.append(lambda number: number == 1 + 15 and stack.enter_context(full_disk()))
        with pytest.raises(OSError, match=r"could not be written .* after the fit was charged, which stands") as caught:
            model.fit(X, Y)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    assert not hasattr(model, "coef_")
    assert [each.name for each in tmp_path.iterdir()] == ["run.npz"]
    with np.load(path) as file:
        n_kept = json.loads(bytes(file["header"]))["n_done"]
    assert n_kept == 14  # a file at every other step
    actions.clear()
    counted.clear()
    model.fit(X, Y)
    assert (len(counted), model.n_steps_, len(accountant.history)) == (40 - n_kept + 1, 40, 1)
    np.testing.assert_array_equal(model.coef_, whole.coef_)


@pytest.mark.parametrize(("name", "charged"), [("sampled", True), ("network", False)])
def test_a_kill_between_the_first_file_and_the_charge_or_the_first_step(name, charged, tmp_path, monkeypatch, drawn):
    """No ledger holds the receipt of that file: the run is charged when it resumes, and once."""
    path, whole = tmp_path / "run.npz", parameters_of(make(name).fit(X, Y))
    accountant, spend = PrivacyAccountant(), PrivacyAccountant.spend

    def killed(ledger, *given, **keywords):
        assert path.exists()
        if charged:
            spend(ledger, *given, **keywords)
        raise SystemError("killed")

    drawn[0].clear()
    with monkeypatch.context() as patch:
        patch.setattr(PrivacyAccountant, "spend", killed)
        with pytest.raises(SystemError):
            make(name, path, accountant=accountant).fit(X, Y)
    assert (len(accountant.history), drawn[0]) == (int(charged), [])
    resumed = make(name, path, accountant=accountant).fit(X, Y)
    assert len(accountant.history) == 1
    for found, expected in zip(parameters_of(resumed), whole, strict=True):
        np.testing.assert_array_equal(found, expected)
    assert list(tmp_path.iterdir()) == []


def test_a_charge_that_is_refused_at_the_last_moment_leaves_no_file(tmp_path, monkeypatch):
    """Others may charge between the check and the charge: this run never ran, and would be in the way of the next."""
    path, accountant = tmp_path / "run.npz", PrivacyAccountant(1.5, 1e-4)
    begin = skdp._training.estimator.GradientEstimator._begin_file

    def and_others_charge(model, *given):
        begin(model, *given)
        make("sampled", accountant=accountant).fit(X, Y)

    with monkeypatch.context() as patch:
        patch.setattr(skdp._training.estimator.GradientEstimator, "_begin_file", and_others_charge)
        with pytest.raises(BudgetExceededError):
            make("sampled", path, accountant=accountant).fit(X, Y)
    assert len(accountant.history) == 1
    assert list(tmp_path.iterdir()) == []


def denied(name):
    """Path methods that are not allowed, as in a folder that became read-only: the tests may run as root."""

    def refuse(path, *given, **keywords):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    return name, refuse


def test_leftovers_that_cannot_be_removed_are_told_before_the_charge(tmp_path, monkeypatch):
    path, accountant = tmp_path / "run.npz", PrivacyAccountant()
    (tmp_path / "run.npz.4242.part").write_bytes(b"cut short")
    monkeypatch.setattr(pathlib.Path, *denied("unlink"))
    with pytest.raises(OSError, match=r"^checkpoint=.* cannot be used \(Permission denied\), and this fit was not"):
        make("sampled", path, accountant=accountant).fit(X, Y)
    assert accountant.history == ()


def test_a_complete_run_whose_file_stays_is_published_and_says_so(tmp_path, monkeypatch):
    path, accountant = tmp_path / "run.npz", PrivacyAccountant()
    finish = skdp._training.checkpoint.Checkpoint.finish

    def denied_finish(checkpoint):
        with monkeypatch.context() as patch:
            patch.setattr(pathlib.Path, *denied("unlink"))
            finish(checkpoint)

    monkeypatch.setattr(skdp._training.checkpoint.Checkpoint, "finish", denied_finish)
    model = make("sampled", path, accountant=accountant)
    with pytest.warns(
        UserWarning, match=r"run.npz' of a fit that is complete could not be removed \(Permission denied"
    ):
        model.fit(X, Y)
    assert (model.n_steps_, len(accountant.history), path.exists()) == (40, 1, True)


# --- streams that go on ---


@pytest.mark.parametrize("drawn", [[], [1], [8192], [5, 8000, 300], [3, 20_000]])
def test_a_stream_goes_on_from_its_position(drawn):
    first, second = (SecretStream(bytes(32)) for _ in range(2))
    for size in drawn:
        first.normal(size)
    second.seek(first.position)
    np.testing.assert_array_equal(first.normal(10_000), second.normal(10_000))
    assert first.position == second.position


FILES_OF_NOISE = {inspect.getfile(module) for module in (_random, loop, mechanisms)}


def interrupted_at(line, work):
    """Whether `work` came to so many lines of the loop, of the mechanism and of the stream: there it gets a Ctrl-C."""
    left = line

    def trace(frame, event, argument):
        nonlocal left
        if frame.f_code.co_filename not in FILES_OF_NOISE:
            return None
        if event == "line":
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with contextlib.suppress(KeyboardInterrupt):
            work()
    finally:
        sys.settrace(before)
    return left <= 0


@pytest.mark.filterwarnings("ignore:.*interrupted")
@pytest.mark.parametrize("name", ["sampled", "wide"])
def test_a_run_goes_on_bit_for_bit_wherever_it_is_interrupted(name, tmp_path):
    """Between any two lines, in steps of a prime: neither the noise nor the rows of a step are other ones then."""
    whole = parameters_of(make(name, max_iter=1).fit(X, Y))
    for line in itertools.count(1, 53):
        model = make(name, tmp_path / "run", max_iter=1)
        was_interrupted = interrupted_at(line, lambda: model.fit(X, Y))  # noqa: B023
        if was_interrupted:
            model.fit(X, Y)
        for found, expected in zip(parameters_of(model), whole, strict=True):
            np.testing.assert_array_equal(found, expected)
        if not was_interrupted:
            break
    assert line > 200


def test_a_run_may_be_stopped_many_times(tmp_path, monkeypatch):
    path, whole = tmp_path / "run.npz", make("sampled").fit(X, Y)
    for _ in range(4):
        stopped(make("sampled", path), 5, KeyboardInterrupt(), monkeypatch)
    resumed = make("sampled", path).fit(X, Y)
    np.testing.assert_array_equal(resumed.coef_, whole.coef_)


def test_the_next_fit_is_a_new_run(tmp_path):
    path, accountant = tmp_path / "run.npz", PrivacyAccountant()
    for _ in range(2):
        make("sampled", path, accountant=accountant).fit(X, Y)
    assert len(accountant.history) == 2


@pytest.mark.parametrize("n_words", [0, 1, 2, 7, 100_001])
def test_words_go_on_from_their_position(n_words):
    first, second = (SecretStream(bytes(32)) for _ in range(2))
    first.words(n_words)
    second.seek(first.position)
    np.testing.assert_array_equal(first.words(9), second.words(9))
