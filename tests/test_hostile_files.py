"""Files that an attacker wrote: no code runs, no memory beyond a cap, one line, and no charge is lost.

Good files are changed at random (Miller, Fredriksen & So 1990), each a few times: bytes and bits, slices that are cut,
repeated or exchanged, and words that parsers take for something else. Archives are also changed inside, with right
check sums.
"""

from __future__ import annotations

import io
import json
import pathlib
import pickle
import random
import sys
import tracemalloc
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from ledger_files import fresh
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

import skdp
from skdp.accounting import EpsilonDeltaDpEvent, GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from skdp.datasets import load_mnist
from skdp.exceptions import BudgetFileError
from skdp.export import plan_from_json, plan_to_json

MEGABYTE = 2**20
N_FILES = 1_035  # of all formats together


# --- the engine -------------------------------------------------------------------------------------------------------

WORDS = [
    b"", b"\x00", b"\xff" * 4, b"\xff" * 8, b"\x7f\xff\xff\xff", b"NaN", b"-Infinity", b"1e999", b"-1", b"0", b"null",
    b"true", b"9" * 400, b"9" * 5_000, b"[" * 3_000, b'{"a":' * 3_000, b"\\u0000", b"\xed\xa0\x80", b'"', b"{}", b"[]",
    b"!!python/object/apply:os.system ['true']\n", b"&a [*a, *a]\n", b"*a", b"? ", b"<<: ", b": ", b"\n", b"- ",
    b"cos\nsystem\n(S'true'\ntR.", b"\x80\x04\x95", b"(999999999999,)", b"(4294967296, 4294967296)", b"'|O'",
    b"|V99999", b"<f8", b"PK\x03\x04", b"__class__", b"<script>", b"%s", b"{0}",
]  # fmt: skip


def mutated(seed: bytes, rng: random.Random) -> bytes:
    """One to four changes of a file."""
    content = bytearray(seed)
    for _ in range(rng.randint(1, 4)):
        start = rng.randrange(len(content) + 1)
        end = min(len(content), start + rng.choice([1, 1, 2, 4, 16, 256, 4096]))
        kind = rng.randrange(8)
        if kind == 0:
            content[start:end] = rng.randbytes(end - start)
        elif kind == 1 and start < len(content):
            content[start] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del content[start:end]
        elif kind == 3:
            content[start:start] = content[start:end] * rng.choice([1, 2, 50])
        elif kind == 4:
            other = rng.randrange(len(content) + 1)
            content[start:end] = content[other : other + end - start]
        elif kind == 5:
            del content[start:]
        else:
            word = rng.choice(WORDS)
            content[start : start + rng.choice([0, len(word)])] = word
    return bytes(content)


def mutated_inside(seed: bytes, rng: random.Random) -> bytes:
    """An archive one of whose members was changed, and whose check sums are right."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(seed)) as archive, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as written:
        chosen = rng.choice(archive.namelist())
        for name in archive.namelist():
            content = archive.read(name)
            if name == chosen:  # of most members the first bytes matter, which say what the others are
                head = rng.choice([128, len(content)])
                content = mutated(content[:head], rng) + content[head:]
            written.writestr(name, content)
    return made.getvalue()


FORBIDDEN = {"os.system", "os.exec", "os.posix_spawn", "os.spawn", "subprocess.Popen", "socket.connect",
             "ctypes.dlopen", "pickle.find_class", "os.remove", "os.rename", "shutil.rmtree"}  # fmt: skip


class Watch:
    """Tells what the interpreter is asked to do while a file is read; hooks of audits stay for ever."""

    def __init__(self) -> None:
        self.is_on, self.seen = False, set[str]()
        sys.addaudithook(self._record_lot)

    def _record_lot(self, event: str, given: Any) -> None:
        if self.is_on and event in FORBIDDEN:
            self.seen.add(event)


WATCH = Watch()


class Format(NamedTuple):
    """Good files, and what reads one; it returns what it learned, or raises one of `errors`."""

    seeds: Callable[[], list[bytes]]
    read: Callable[[pathlib.Path], Any]
    errors: tuple[type[Exception], ...] = (ValueError,)
    most_bytes: int = 16 * MEGABYTE
    is_archive: bool = False
    allowed: frozenset[str] = frozenset()
    """Events that an honest file brings, too."""


def fuzz(form: Format, path: pathlib.Path, n_files: int, seed: int = 0) -> Counter:
    """Read files and count how they end; anything but a result or one line is an error."""
    rng, seeds, ended = random.Random(seed), form.seeds(), Counter()
    for good in seeds:  # and what is imported on the way is there
        path.write_bytes(good)
        form.read(path)
    tracemalloc.start()
    try:
        for number in range(n_files):
            change = mutated_inside if form.is_archive and number % 2 else mutated
            path.write_bytes(change(rng.choice(seeds), rng))
            ended[_outcome(form, path, f"file {number} of seed {seed}")] += 1
    finally:
        tracemalloc.stop()
    return ended


def _outcome(form: Format, path: pathlib.Path, which: str) -> str:
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    WATCH.seen, WATCH.is_on = set(), True
    try:
        with warnings.catch_warnings(action="ignore"):
            form.read(path)
        outcome = "read"
    except form.errors as error:
        message = str(error)
        assert "\n" not in message, f"{which}: {message!r}"
        assert len(message) < 1_000 + path.stat().st_size, f"{which}: a line of {len(message)} characters"
        outcome = "rejected"
    finally:
        WATCH.is_on = False
        peak = tracemalloc.get_traced_memory()[1] - before
    assert not WATCH.seen - form.allowed, f"{which}: {WATCH.seen}"
    assert peak <= form.most_bytes, f"{which}: {peak:,} bytes"
    return outcome


# --- what is read -----------------------------------------------------------------------------------------------------

EVENTS = [
    GaussianDpEvent(20.0),
    SelfComposedDpEvent(PoissonSampledDpEvent(0.01, GaussianDpEvent(1.0)), 5),
    EpsilonDeltaDpEvent(0.01, 1e-9),
]


def ledger(path: pathlib.Path | None = None) -> skdp.PrivacyAccountant:
    made = skdp.PrivacyAccountant(9.0, 1e-5, path=path)
    for event in EVENTS:
        made.spend(event, "sum", note="of a table")
    return made


def budget_files() -> list[bytes]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "l.budget"
        ledger(path)
        return [path.read_bytes()]


def read_budget_file(path: pathlib.Path) -> None:
    """No charge is lost: what is not rejected holds all of them, and admits one more beside them."""
    assert [each.event for each in fresh(str(path)).history] == EVENTS


def read_ledger_json(path: pathlib.Path) -> None:
    assert [each.event for each in skdp.PrivacyAccountant.from_json(text_of(path)).history] == EVENTS


def text_of(path: pathlib.Path) -> str:
    return path.read_bytes().decode("utf-8", "surrogateescape")


ROWS = np.random.default_rng(0).uniform(-1, 1, (60, 2))
LABELS = (ROWS[:, 0] > 0).astype(int)


def model(path: pathlib.Path, accountant: skdp.PrivacyAccountant | None = None) -> skdp.DPLogisticRegression:
    given = {"checkpoint": path, "accountant": accountant, "delta": 1e-5}
    return skdp.DPLogisticRegression(classes=[0, 1], max_iter=4, noise_multiplier=20.0, epsilon=None, **given)


CHARGED = skdp.PrivacyAccountant()
"""The ledger that the run in the checkpoint was charged to."""


def checkpoints() -> list[bytes]:
    import tempfile

    from interrupts import StopAfter

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "run.npz"
        stopped = model(path, CHARGED)
        stopped._make_progress = lambda plan: StopAfter(2, MemoryError("planted"))
        with warnings.catch_warnings(action="ignore"), pytest.raises(MemoryError):
            stopped.fit(ROWS, LABELS)
        return [path.read_bytes()]


def read_checkpoint(path: pathlib.Path) -> None:
    """A fit resumes from it, or the file is rejected; nobody is charged by a file that is rejected."""
    before = len(CHARGED.history)
    try:
        fitted = model(path, CHARGED).fit(ROWS, LABELS)
    except ValueError:
        assert len(CHARGED.history) == before
        raise
    assert fitted.coef_.shape == (1, 2)
    assert fitted.epsilon_ > 0


def schema() -> skdp.TableSchema:
    return skdp.TableSchema({
        "age": (0, 99),
        "sex": ["f", "m"],
        "sum": {"kind": "number", "edges": [0, 1, 2]},
    })  # fmt: skip


def schemas() -> list[bytes]:
    return [schema().to_json().encode()]


def schemas_in_yaml() -> list[bytes]:
    pytest.importorskip("yaml")
    return [schema().to_yaml().encode(), b"a: &x {bounds: [1, 2]}\nb: *x\n"]


def metadata() -> list[bytes]:
    pytest.importorskip("yaml")
    return [
        b"Database:\n  S:\n    T:\n      rows: 9\n      a: {type: int, lower: 0, upper: 9}\n      b: {type: string}\n"
    ]


def plans() -> list[bytes]:
    pipeline = make_pipeline(Normalizer(), skdp.DPPCA(2), skdp.DPLogisticRegression(classes=[0, 1]))
    search = skdp.DPGridSearchCV(skdp.DPRidge(y_bounds=(0, 1)), {"alpha": [0.0, 1.0]}, epsilon=skdp.Risk(advantage=0.1))
    vectorizer = skdp.DPTableVectorizer(schema(), adjacency=skdp.AddRemove(100), fit_bins=True)
    return [plan_to_json(plan).encode() for plan in (skdp.allocate_budget(pipeline, 1.0), search, vectorizer)]


def read_plan(path: pathlib.Path) -> None:
    """What is read has no accountant, path or seed, and can be written again."""
    plan = plan_from_json(text_of(path))
    owned = ("accountant", "checkpoint", "memory", "random_state")
    assert not [name for name, value in plan.get_params().items() if name.rpartition("__")[2] in owned and value]
    assert plan_to_json(plan)


def reports() -> list[bytes]:
    return [
        skdp.privacy_report(skdp.DPRidge(y_bounds=(0, 1)).fit(ROWS, LABELS)).to_json().encode(),
        skdp.privacy_report(skdp.DPPCA(1, accountant=ledger()).fit(ROWS)).to_json().encode(),
    ]


def read_report(path: pathlib.Path) -> None:
    report = skdp.PrivacyReport.from_json(text_of(path))
    assert "<script>" not in report.to_html().replace("<script>document", "")
    assert str(report)
    assert json.loads(report.to_json())


def digits() -> list[bytes]:
    made = io.BytesIO()
    images = np.zeros((3, 28, 28), np.uint8)
    np.savez_compressed(made, x_train=images, y_train=np.arange(3), x_test=images, y_test=np.arange(3))
    return [made.getvalue()]


FORMATS = {
    "budget file": Format(budget_files, read_budget_file, (BudgetFileError,)),
    "ledger in JSON": Format(lambda: [ledger().to_json().encode()], read_ledger_json),
    "checkpoint": Format(checkpoints, read_checkpoint, is_archive=True, allowed=frozenset({"os.remove", "os.rename"})),
    "schema in JSON": Format(schemas, lambda path: skdp.TableSchema.from_json(path)),
    "schema in YAML": Format(schemas_in_yaml, lambda path: skdp.TableSchema.from_yaml(path)),
    "metadata of SmartNoise": Format(metadata, lambda path: skdp.TableSchema.from_smartnoise_yaml(path)),
    "plan": Format(plans, read_plan),
    "report": Format(reports, read_report),
    "MNIST": Format(digits, load_mnist, is_archive=True),
}


@pytest.mark.parametrize("name", FORMATS)
def test_hostile_files_are_read_or_rejected_in_one_line(name, tmp_path):
    n_files = -(-N_FILES // len(FORMATS))
    found = fuzz(FORMATS[name], tmp_path / "file", n_files)
    assert n_files // 20 < found["rejected"] < n_files  # else the changes change nothing, or everything


# --- files that changes at random hardly make -------------------------------------------------------------------------


def npz(**members: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as written:
        for name, content in members.items():
            written.writestr(f"{name}.npy", content)
    return made.getvalue()


def array_that_says(shape: str, dtype: str = "'|u1'") -> bytes:
    header = f"{{'descr': {dtype}, 'fortran_order': False, 'shape': {shape}}}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(16)


def nested_aliases(levels: int) -> str:
    """A list in a list and so on, each of which holds its inner one twice: few characters, or 2**levels of them."""
    nest = "&a0 [x, y]"
    for k in range(1, levels):
        nest = f"&a{k} [{nest}, *a{k - 1}]"
    return nest


LAUGHS = "\n".join(["a0: &a0 [x, y]", *(f"a{k}: &a{k} [*a{k - 1}, *a{k - 1}]" for k in range(1, 40))])


CRAFTED = {
    "an array that says it is large": ("MNIST", npz(**dict.fromkeys(
        ("x_train", "y_train", "x_test", "y_test"), array_that_says("(268435456,)")))),
    "a checkpoint that says it is large": ("checkpoint", npz(header=array_that_says("(268435456,)"))),
    "an array of objects": ("checkpoint", npz(header=array_that_says("(2,)", "'|O'"))),
    "aliases of aliases": ("schema in YAML", LAUGHS.encode()),
    "aliases that a message would write out": ("schema in YAML", f"a: {nested_aliases(14)}\n".encode()),
    "lists in lists, in a schema": ("schema in JSON", b"[" * 100_000),
    "lists in lists, in a ledger": ("ledger in JSON", b"[" * 100_000),
    "a name that is no text, in YAML": ("schema in YAML", b"columns:\n  ? \n  : [0, 1]\n"),
    "a call in YAML": ("schema in YAML", b"a: !!python/object/apply:os.system ['true']\n"),
    "a report with nothing in it": ("report", b'{"schema": "skdp.privacy_report", "schema_version": 1}'),
}  # fmt: skip


@pytest.mark.parametrize("what", CRAFTED)
def test_crafted_files_are_rejected_in_one_line(what, tmp_path):
    name, content = CRAFTED[what]
    (tmp_path / "file").write_bytes(content)
    tracemalloc.start()
    try:
        assert _outcome(FORMATS[name], tmp_path / "file", what) == "rejected"
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("change", [lambda leaf: leaf[:1], lambda leaf: leaf.astype(np.float32)], ids=["cut", "narrow"])
def test_a_checkpoint_of_other_shapes_or_types_is_rejected(change, tmp_path):
    """Arrays of one number would be spread over all parameters, or read beyond their end."""
    with np.load(io.BytesIO(checkpoints()[0])) as archive:
        arrays = {name: archive[name] for name in archive.files}
    changed = {name: change(each) if name != "header" and each.ndim else each for name, each in arrays.items()}
    np.savez(tmp_path / "run.npz", **changed)
    with pytest.raises(ValueError, match=r"^checkpoint=[^\n]* is damaged. Remove the file and fit again\.$"):
        read_checkpoint(tmp_path / "run.npz")


def test_the_engine_sees_code_that_runs_memory_and_lines(tmp_path):
    """The harness itself can fail."""
    path = tmp_path / "file"
    path.write_bytes(pickle.dumps(Counter("ab")))
    plain = Format(list, lambda path: None)
    with pytest.raises(AssertionError, match=r"pickle\.find_class"):
        _outcome(plain._replace(read=lambda path: pickle.loads(path.read_bytes())), path, "it")
    tracemalloc.start()
    try:
        with pytest.raises(AssertionError, match="bytes"):
            _outcome(plain._replace(read=lambda path: bytes(17 * MEGABYTE)), path, "it")
    finally:
        tracemalloc.stop()
    with pytest.raises(AssertionError, match="first"):
        _outcome(plain._replace(read=lambda path: reject()), path, "it")


def reject() -> None:
    raise ValueError("first\nsecond")
