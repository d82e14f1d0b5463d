"""The command line on a ledger's file: it shows, and changes nothing but by `create` and `raise`."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

import skdp
from skdp.accounting import GaussianDpEvent, PoissonSampledDpEvent, PrivacyAccountant, Risk, SelfComposedDpEvent
from skdp.accounting.__main__ import main
from skdp.accounting.ledger import file_log

ROOT = pathlib.Path(skdp.__file__).parents[1]


@pytest.fixture
def path(tmp_path):
    path = str(tmp_path / "census.budget")
    accountant = PrivacyAccountant(2.0, 1e-5, unit="person", path=path)
    accountant.spend(PoissonSampledDpEvent(0.1, GaussianDpEvent(2.0)), "first", note="a trial", parameters={"C": 1.0})
    accountant.spend(PoissonSampledDpEvent(0.1, GaussianDpEvent(3.0)), "second")
    return path


def run(capsys, *arguments):
    """Exit code, what was printed, and what was complained of."""
    try:
        code = main([str(argument) for argument in arguments])
    except SystemExit as end:
        code = end.code
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_show(capsys, path):
    accountant = PrivacyAccountant.open(path)
    code, out, _ = run(capsys, "show", path)
    assert code == 0
    words = ("first", "second", "a trial", "person", "Poisson(0.1)", path, "budget: epsilon=2", "remaining: epsilon=")
    assert all(word in out for word in words)
    assert accountant.table() in out
    assert f"head: {accountant.head}" in out
    assert accountant.history[0].time[:19].replace("T", " ") in out
    assert "parameters of 1: C=1.0" in out
    assert "adaptively" not in out
    assert "at delta=1e-07" in run(capsys, "show", path, "--delta", "1e-7")[1]


def test_show_tells_the_epsilon_that_was_asked_for_rejections_and_raises(capsys, path):
    accountant = PrivacyAccountant.open(path)
    event = PoissonSampledDpEvent(0.1, GaussianDpEvent(3.0))
    accountant.spend(event, "asked", parameters={"epsilon": 0.25, "delta": 1e-6})
    accountant.record_rejection("DPPCA", note="NaN in a column")
    assert run(capsys, "increase", path, "--epsilon", "4", "--note", "agreed by the board")[0] == 0
    out = run(capsys, "show", path)[1]
    words = ("epsilon=0.25, delta=1e-06", "input rejected", "NaN in a column", "budget increased from 2 to 4")
    words = (*words, "agreed by the board", "increased from 2", "3 charges, 1 rejected input, 1 budget increase")
    assert all(word in out for word in words)
    found = json.loads(run(capsys, "show", path, "--json")[1])
    assert [entry["kind"] for entry in found["charges"][3:]] == ["rejection", "raise"]
    assert (found["budget"]["epsilon"], found["budget"]["remaining"]) == (4.0, accountant.remaining())
    assert found["spent"]["plans_fixed_in_advance"] == accountant.get_epsilon()


def test_command_line_survives_closed_pipe(path):
    accountant = PrivacyAccountant.open(path)
    accountant.spend(GaussianDpEvent(1000.0), "x", note="y" * 100_000)
    command = [sys.executable, "-W", "error", "-m", "skdp.accounting", "export", path]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        child.stdout.read(10)
        child.stdout.close()
        assert child.stderr.read() == b""
    assert child.returncode == 0


def test_create_and_raise(capsys, tmp_path):
    path = tmp_path / "new.budget"
    code, out, _ = run(capsys, "create", path, "--epsilon", "1", "--delta", "1e-5", "--unit", "person")
    assert (code, out) == (0, f"{path}: epsilon=1 at delta=1e-05, unit=person, filter_family=auto\n")
    accountant = PrivacyAccountant.open(path)
    assert (accountant.epsilon, accountant.delta, accountant.unit) == (1.0, 1e-5, "person")
    code, _, err = run(capsys, "create", path, "--epsilon", "9", "--delta", "1e-5")
    assert code == 2
    assert "already exists" in err
    accountant.spend(GaussianDpEvent(3.8))
    for arguments, named in (
        (("--epsilon", "1"), "must exceed the present budget"),
        (("--epsilon", "3", "--delta", "1e-4"), "cannot be changed"),
    ):
        code, _, err = run(capsys, "increase", path, *arguments)
        assert code == 2
        assert named in err
    assert run(capsys, "increase", path, "--epsilon", "3", "--delta", "1e-5")[0] == 0
    assert fresh_epsilon(path) == 3.0
    assert run(capsys, "increase", tmp_path / "no.budget", "--epsilon", "3")[0] == 2
    assert run(capsys, "create", tmp_path / "no" / "such.budget", "--epsilon", "3", "--delta", "1e-5")[0] == 1
    assert sorted(os.listdir(tmp_path)) == ["new.budget"]


def test_create_takes_a_ceiling_in_risk(capsys, tmp_path):
    for name, given, risk in (
        ("a", ("--advantage", "0.1"), Risk(advantage=0.1)),
        ("b", ("--tpr", "0.03", "--fpr", "0.01"), Risk(tpr=0.03, fpr=0.01)),
    ):
        assert run(capsys, "create", tmp_path / name, *given, "--delta", "1e-6")[0] == 0
        assert fresh_epsilon(tmp_path / name) == PrivacyAccountant(risk, 1e-6).epsilon
    for given, named in (
        ((), "Set --epsilon, or --advantage, or --tpr and --fpr"),
        (("--advantage", "0.1", "--epsilon", "1"), "exactly one budget"),
        (("--tpr", "0.1"), "`tpr` and `fpr`"),
    ):
        code, _, err = run(capsys, "create", tmp_path / "c", *given, "--delta", "1e-6")
        assert code == 2
        assert named in err
        assert not (tmp_path / "c").exists()


def test_a_raise_that_leaves_less_wants_yes_and_both_figures_are_printed(capsys, tmp_path):
    path = tmp_path / "network.budget"
    accountant = PrivacyAccountant(2.0, 1e-5, path=path)
    accountant.spend(SelfComposedDpEvent(PoissonSampledDpEvent(0.01, GaussianDpEvent(1.2)), 500))
    code, out, err = run(capsys, "increase", path, "--epsilon", "2.2")
    assert (code, out) == (2, "")
    assert "from 1.26 to 0.959" in err
    assert "--yes" in err
    assert fresh_epsilon(path) == 2.0
    code, out, _ = run(capsys, "increase", path, "--epsilon", "2.2", "--yes")
    assert code == 0
    assert out.endswith("remaining=0.959, before 1.26\n")
    assert fresh_epsilon(path) == 2.2
    assert run(capsys, "increase", path, "--epsilon", "2.3")[0] == 0  # the odometer decides already: more is left


def test_a_damaged_file_is_not_shown(capsys, path):
    """The page of the charges is lost; those of the definitions and of the last entry are there."""
    whole = bytearray(pathlib.Path(path).read_bytes())
    whole[8192:12288] = bytes(4096)
    pathlib.Path(path).write_bytes(whole)
    file_log._STORES.clear()  # as in a process that has not seen it
    for command in ("show", "verify", "export"):
        code, out, err = run(capsys, command, path)
        assert (code, out) == (1, "")
        assert "charge to it the largest spent epsilon that can still be read, or the whole budget" in err


def fresh_epsilon(path):
    file_log._STORES.clear()
    return PrivacyAccountant.open(path).epsilon


def test_verify(capsys, path):
    head = json.loads(run(capsys, "export", path)[1])["head"]
    assert run(capsys, "verify", path) == (0, f"{path}: 2 entries, none altered\nhead: {head}\n", "")
    PrivacyAccountant.open(path).spend(GaussianDpEvent(100.0), "third")
    assert run(capsys, "verify", path, "--head", head)[0] == 0
    code, out, err = run(capsys, "verify", path, "--head", "0" * 64)
    assert (code, out) == (1, "")
    assert err.startswith("skdp.accounting: head=")
    assert err.count("\n") == 1


def test_nothing_is_written_or_created(capsys, tmp_path, path):
    before = pathlib.Path(path).read_bytes()
    for command in ("show", "verify", "export"):
        assert run(capsys, command, path)[0] == 0
        assert pathlib.Path(path).read_bytes() == before
        code, _, err = run(capsys, command, tmp_path / "no.budget")
        assert code == 2
        assert "does not exist" in err
        assert os.listdir(tmp_path) == ["census.budget"]


def test_wrong_calls(capsys, tmp_path, path):
    assert run(capsys)[0] == run(capsys, "spend", path)[0] == run(capsys, "show", path, "--delta", "x")[0] == 2
    code, out, err = run(capsys, "show", path, "--delta", "2")
    assert (code, out) == (2, "")
    assert "`delta` must be" in err
    (tmp_path / "table.csv").write_text("age,income\n" * 100)
    code, out, err = run(capsys, "show", tmp_path / "table.csv")
    assert (code, out) == (1, "")
    assert "not a budget file" in err
    assert "is not a file. Pass an existing budget file." in run(capsys, "show", tmp_path)[2]
