"""A run that is stopped goes on from its file: same cost, same steps, and with a seed the very same parameters."""

import contextlib
import errno
import inspect
import itertools
import json
import pathlib
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from combinations import combined
from interrupts import InterruptAt, StopAfter

from skdp import AddRemove, BudgetExceededError, DPLogisticRegression, DPMLPClassifier, PrivacyAccountant
from skdp._dpsgd import loop, solver
from skdp._dpsgd.checkpoint import Checkpoint
from skdp.ensemble import DPRandomTreesClassifier
from skdp.mechanisms import gaussian, streams
from skdp.mechanisms.streams import SecretStream

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(400, 5))
Y = (X[:, 0] > 0).astype(int)
MODELS = {
    "full batch": (DPLogisticRegression, {"max_iter": 30}),
    "sampled": (DPLogisticRegression, {"sampling_rate": 0.1, "max_iter": 4}),
    "merged rows": (DPLogisticRegression, {"sampling_rate": 0.1, "max_iter": 4, "merge_equal_rows": True}),
    "network": (DPMLPClassifier, {"hidden_layer_sizes": (7,), "sampling_rate": 0.2, "max_iter": 8}),
    "adam": (DPMLPClassifier, {"hidden_layer_sizes": (7,), "solver": "adam", "average": "tail", "max_iter": 40}),
    "trees": (DPRandomTreesClassifier, {"n_estimators": 9, "max_depth": 3, "bounds": (-1, 1), "max_iter": 30}),
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


def test_a_run_that_released_more_than_is_planned_is_rejected(tmp_path, monkeypatch):
    """Of three classes that the constructor does not name, the counts are released, and charged."""
    path, y = tmp_path / "run.npz", np.arange(len(X)) % 3
    parameters = {"epsilon": None, "noise_multiplier": 3.0, "sampling_rate": 1.0}
    with monkeypatch.context() as patch:
        patch.setattr(DPMLPClassifier, "_make_progress", lambda *arguments: StopAfter(2, KeyboardInterrupt()))
        with pytest.warns(UserWarning, match="interrupted"):
            make("network", path, classes=None, **parameters).fit(X, y)
    accountant = PrivacyAccountant()
    with pytest.raises(ValueError, match="to a run that released class counts, which is not part of this run"):
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


def test_one_release_a_step(tmp_path, monkeypatch, drawn):
    """Steps that were in the model handed out are not run again, so no step is ever released twice."""
    path, (ran, _) = tmp_path / "run.npz", drawn
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


def test_resumed_run_of_one_partition_is_charged_to_all(tmp_path, monkeypatch):
    """The charge to a partition does not cover steps that read the other ones; that to all units covers each."""
    path, accountant = tmp_path / "run.npz", PrivacyAccountant()
    january = accountant.partition("january", rule="month")
    stopped(make("sampled", path, accountant=january), 9, KeyboardInterrupt(), monkeypatch)
    stopped(make("sampled", path, accountant=accountant), 9, KeyboardInterrupt(), monkeypatch)
    make("sampled", path, accountant=january).fit(X, Y)
    assert [charge.partition for charge in accountant.history] == ["january", None]


def test_file_of_another_run_is_rejected_before_charge(tmp_path, monkeypatch):
    path, accountant = tmp_path / "run.npz", PrivacyAccountant()
    stopped(make("sampled", path), 9, KeyboardInterrupt(), monkeypatch)
    before = path.read_bytes()
    cases = [("max_grad_norm", 0.3), ("random_state", None), ("classes", [0, 1, 2]), ("table", 399)]
    for name, value in cases:
        changes, rows = ({}, value) if name == "table" else ({name: value}, 400)
        with pytest.raises(ValueError, match=rf"another run \(different {name}\)"):
            make("sampled", path, accountant=accountant, **changes).fit(X[:rows], Y[:rows])
    assert accountant.history == ()
    assert path.read_bytes() == before


@pytest.mark.parametrize(("first", "then"), [("home", None), (None, "home"), ("home", "person")])
def test_a_run_for_groups_goes_on_for_groups_by_the_same_column(first, then, tmp_path, monkeypatch):
    """It is charged once: a ledger is not asked again, and would have rejected the second fit."""
    labels = {name: {"groups": pd.Series(np.arange(400) // 2, name=name)} for name in ("home", "person")} | {None: {}}
    path, ledger = tmp_path / "run.npz", PrivacyAccountant(unit="household" if first else "row")
    given = {"accountant": ledger, "adjacency": AddRemove(200)}
    stopped(make("sampled", path, **given), 9, KeyboardInterrupt(), monkeypatch, **labels[first])
    with pytest.raises(ValueError, match=r"belongs to another run \(different unit\)"):
        make("sampled", path, **given).fit(X, Y, **labels[then])
    resumed = make("sampled", path, **given).fit(X, Y, **labels[first])
    assert resumed.privacy_unit_ == ("group" if first else "row")
    assert len(ledger.history) == 1


# --- instalments: the file names what came before ---


def instalment(path=None, **parameters):
    """A second instalment, after a first one at a cost of its own."""
    model = make("full batch", random_state=None, warm_start=True, **parameters).fit(X, Y)
    return model.set_params(epsilon=0.5, checkpoint=path)


def test_a_run_does_not_go_on_after_another_first_phase(tmp_path, monkeypatch):
    """Its state depends on the first phase that it began after, which a cheaper one does not pay for."""
    path, accountant = tmp_path / "run.npz", PrivacyAccountant()
    stopped(instalment(path, epsilon=8.0), 17, SystemError("killed"), monkeypatch)
    before = path.read_bytes()
    other = instalment(path, epsilon=0.1).set_params(accountant=accountant)
    cost, coefficients = other.epsilon_, other.coef_.copy()
    with pytest.raises(ValueError, match=r"belongs to another run \(different earlier events\)"):
        other.fit(X, Y)
    assert accountant.history == ()
    assert path.read_bytes() == before
    assert other.epsilon_ == cost
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
    cost, event = model.epsilon_, model.privacy_event_
    model.fit(X, Y)
    assert (model.n_steps_, model.n_iter_, len(accountant.history)) == (60, 60, 2)
    assert (model.epsilon_, model.privacy_event_) == (cost, event)
    assert not path.exists()
    model.fit(X, Y)  # and the next one is new
    assert (model.n_steps_, len(accountant.history)) == (90, 3)
    assert model.epsilon_ > cost


def test_finished_run_with_file_left_gives_same_model(tmp_path, monkeypatch):
    """Two models for one charge would be two releases."""
    path, accountant = tmp_path / "run.npz", PrivacyAccountant()
    model = make("sampled", path, random_state=None, accountant=accountant, warm_start=True)

    def interrupt(checkpoint):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "finish", interrupt)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, Y)
    first, cost = model.coef_.copy(), model.epsilon_
    assert path.exists()
    model.fit(X, Y)
    np.testing.assert_array_equal(model.coef_, first)
    assert (model.n_steps_, model.epsilon_, len(accountant.history)) == (40, cost, 1)
    assert list(tmp_path.iterdir()) == []


# --- files that a killed process left ---


def n_done_of(path):
    with np.load(path) as file:
        return json.loads(bytes(file["header"]))["n_done"]


def test_newest_unmoved_file_of_run_is_resumed(tmp_path, monkeypatch, drawn):
    """Its steps may have been read: a second release of them is unaccounted. Files of other runs are not resumed."""
    path, part, other = (tmp_path / name for name in ("run.npz", "run.npz.4242.part", "other.npz.4245.part"))
    stopped(make("sampled", path, random_state=None), 30, SystemError("killed"), monkeypatch)
    path.rename(tmp_path / "run.npz.4241.part")
    stopped(make("sampled", tmp_path / "first.npz", random_state=None), 6, SystemError("killed"), monkeypatch)
    (tmp_path / "first.npz").rename(path)
    earlier = path.read_bytes()
    stopped(make("sampled", path, random_state=None), 8, SystemError("killed"), monkeypatch)
    later = path.read_bytes()
    path.write_bytes(earlier)
    part.write_bytes(later)
    (tmp_path / "run.npz.4243.part").write_bytes(later[: len(later) // 2])  # cut short
    other.write_bytes(later)  # of another path
    n_done = n_done_of(part)
    assert n_done_of(path) < n_done < 20
    drawn[0].clear()
    model = make("sampled", path, random_state=None).fit(X, Y)
    assert (len(drawn[0]), model.n_steps_) == (40 - n_done + 1, 40)
    assert [each.name for each in tmp_path.iterdir()] == [other.name]


def test_counts_in_an_unmoved_file_are_not_released_again(tmp_path, monkeypatch, drawn):
    """Those who read the file know them: a second release of the same counts is unaccounted."""
    path, files = tmp_path / "run.npz", []
    with monkeypatch.context() as patch:
        write = Checkpoint._write
        patch.setattr(Checkpoint, "_write", lambda file, *given: (write(file, *given), files.append(path.read_bytes())))
        stopped(make("full batch", path, random_state=None), 2, SystemError("killed"), monkeypatch)
    path.write_bytes(files[0])  # begun
    (tmp_path / "run.npz.4242.part").write_bytes(files[1])  # with the counts of the classes
    drawn[0].clear()
    assert make("full batch", path, random_state=None).fit(X, Y).n_steps_ == 30
    assert len(drawn[0]) == 30 + 1  # steps, and the correction of the mean


SCRIPT = """
import signal, sys
import numpy as np
from skdp import DPLogisticRegression, PrivacyAccountant
X = np.random.default_rng(0).uniform(-1, 1, size=(400, 5))
class Halt:
    def __call__(self, n_done):
        if n_done == 20:
            signal.pause()
    def close(self):
        pass
DPLogisticRegression._make_progress = lambda *given: Halt()
accountant = PrivacyAccountant(5.0, 1e-4, path=sys.argv[2])
given = {"classes": [0, 1], "random_state": 7, "delta": 1e-4, "sampling_rate": 0.1, "max_iter": 4}
DPLogisticRegression(checkpoint=sys.argv[1], accountant=accountant, **given).fit(X, (X[:, 0] > 0).astype(int))
"""


def test_run_killed_by_signal_resumes_in_another_process(tmp_path):
    """The file is there, the budget file has one charge, and the end is that of a whole run."""
    path, budget, whole = tmp_path / "run.npz", tmp_path / "a.budget", make("sampled").fit(X, Y)
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, str(path), str(budget)]
    process = subprocess.Popen(command)
    deadline = time.monotonic() + 600
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    accountant = PrivacyAccountant.open(budget)
    resumed = make("sampled", path, accountant=accountant).fit(X, Y)
    np.testing.assert_array_equal(resumed.coef_, whole.coef_)
    assert len(PrivacyAccountant.open(budget).history) == 1
    assert not path.exists()


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
    counted, actions, add = [], [], gaussian.GaussianMechanism._add_noise

    def noted(mechanism, value, stream):
        counted.append(1)
        for action in actions:
            action(len(counted))
        return add(mechanism, value, stream)

    monkeypatch.setattr(gaussian.GaussianMechanism, "_add_noise", noted)
    return counted, actions


def test_a_full_disk_before_the_charge_costs_nothing(tmp_path, drawn):
    path, accountant = tmp_path / "run.npz", PrivacyAccountant()
    make("sampled").fit(X, Y)  # nothing is left to compile
    drawn[0].clear()
    model = make("sampled", path, accountant=accountant)
    for _ in range(3):
        with (
            full_disk(),
            pytest.raises(OSError, match=r"No budget was charged. Free disk space.*another path") as caught,
        ):
            model.fit(X, Y)
        message = str(caught.value)
        assert message.startswith(f"checkpoint={str(path)!r} could not be written (")
        assert "\n" not in message
        assert caught.value.errno == errno.EFBIG
        assert (accountant.history, drawn[0], list(tmp_path.iterdir())) == ((), [], [])
    model.fit(X, Y)
    assert len(accountant.history) == 1


def test_a_full_disk_within_a_run_leaves_the_charge_and_the_last_file(tmp_path, drawn):
    path, accountant, whole = tmp_path / "run.npz", PrivacyAccountant(), make("sampled").fit(X, Y)
    counted, actions = drawn
    counted.clear()
    model = make("sampled", path, accountant=accountant)
    with contextlib.ExitStack() as stack:
        actions.append(lambda number: number == 1 + 15 and stack.enter_context(full_disk()))
        with pytest.raises(OSError, match=r"could not be written .* The budget was already charged") as caught:
            model.fit(X, Y)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    assert not hasattr(model, "coef_")
    assert [each.name for each in tmp_path.iterdir()] == ["run.npz"]
    n_kept = n_done_of(path)
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


def test_a_charge_that_is_rejected_at_the_last_moment_leaves_no_file(tmp_path, monkeypatch):
    """Others may charge between the check and the charge: this run never ran, and would be in the way of the next."""
    path, accountant = tmp_path / "run.npz", PrivacyAccountant(1.5, 1e-4)
    begin = solver._begin_file

    def and_others_charge(*given):
        begin(*given)
        make("sampled", accountant=accountant).fit(X, Y)

    with monkeypatch.context() as patch:
        patch.setattr(solver, "_begin_file", and_others_charge)
        with pytest.raises(BudgetExceededError):
            make("sampled", path, accountant=accountant).fit(X, Y)
    assert len(accountant.history) == 1
    assert list(tmp_path.iterdir()) == []


def denied(path, *given, **keywords):
    """In the place of a method of `Path`, as in a folder that became read-only: the tests may run as root."""
    raise PermissionError(errno.EACCES, "Permission denied", str(path))


def test_checkpoint_leftovers_not_removable_raise_before_charge(tmp_path, monkeypatch):
    path, accountant = tmp_path / "run.npz", PrivacyAccountant()
    (tmp_path / "run.npz.4242.part").write_bytes(b"cut short")
    monkeypatch.setattr(pathlib.Path, "unlink", denied)
    with pytest.raises(OSError, match=r"^checkpoint=.* cannot be used \(Permission denied\). No budget was charged"):
        make("sampled", path, accountant=accountant).fit(X, Y)
    assert accountant.history == ()


def test_complete_run_with_file_not_removable_warns(tmp_path, monkeypatch):
    path, accountant = tmp_path / "run.npz", PrivacyAccountant()
    finish = Checkpoint.finish

    def denied_finish(checkpoint):
        with monkeypatch.context() as patch:
            patch.setattr(pathlib.Path, "unlink", denied)
            finish(checkpoint)

    monkeypatch.setattr(Checkpoint, "finish", denied_finish)
    model = make("sampled", path, accountant=accountant)
    with pytest.warns(UserWarning, match=r"of a completed fit could not be removed \(Permission denied"):
        model.fit(X, Y)
    assert (model.n_steps_, len(accountant.history), path.exists()) == (40, 1, True)


# --- interrupts ---


FILES_OF_NOISE = {inspect.getfile(module) for module in (streams, loop, gaussian)}


@pytest.mark.parametrize("name", ["sampled", "wide"])
def test_a_run_goes_on_bit_for_bit_wherever_it_is_interrupted(name, tmp_path):
    """Between any two lines, in steps of a prime: neither the noise nor the rows of a step are other ones then."""
    whole = parameters_of(make(name, max_iter=1).fit(X, Y))
    for k in itertools.count(1, 53):
        model = make(name, tmp_path / "run", max_iter=1)
        with InterruptAt(k, lambda frame: frame.f_code.co_filename in FILES_OF_NOISE) as interrupt:
            model.fit(X, Y)
        if interrupt.seen >= k:
            model.fit(X, Y)
        for found, expected in zip(parameters_of(model), whole, strict=True):
            np.testing.assert_array_equal(found, expected)
        if interrupt.seen < k:
            break
    assert k > 200
