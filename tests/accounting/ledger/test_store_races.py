"""Charges are charged without a lock: what others do meanwhile, and interrupts at any line."""

import contextlib
import linecache
import os
import sys
import threading

import pytest
from ledger_files import GAUSS, THIRD, fresh

from skdp import PrivacyAccountant
from skdp.accounting.ledger import file_log
from skdp.accounting.ledger import ledger as _ledger
from skdp.exceptions import BudgetExceededError


def interfering(monkeypatch, path, times):
    """Let another process charge THIRD between the cost of a charge and its entry, `times` times."""
    original, accountant = file_log.admit, PrivacyAccountant.open(path)
    other = file_log.Store(accountant.path, accountant._log.terms, accountant._log._heads[0])
    left = [times]

    def admitted_late(ledger, entry):
        result = original(ledger, entry)
        if left[0] and entry.label == "ours":
            left[0] -= 1
            with contextlib.suppress(BudgetExceededError):
                other.append(file_log.Charge(THIRD, "theirs", "zero_out"))
        return result

    monkeypatch.setattr(file_log, "admit", admitted_late)


@pytest.mark.parametrize("times", [2, 3])
def test_a_charge_is_priced_again_if_others_charged_meanwhile(path, budget, monkeypatch, times):
    interfering(monkeypatch, path, times)
    outcome = 0
    try:
        budget.spend(THIRD, "ours")
        outcome = 1
    except BudgetExceededError:
        pass
    assert outcome == (times < 3)
    assert [charge.label for charge in fresh(path).history] == ["theirs"] * times + ["ours"] * outcome
    assert fresh(path).verify() == times + outcome <= 3


class _Interrupts:
    """A Ctrl-C at the n-th line or return in the files that keep a ledger, or in the contexts that they enter.

    Lines that begin with `with` are left out: Python comes back to them at the end of the block, before the lock is
    released, and asks for signals only after that. The error is kept, with all that its traceback holds, as an
    interactive session keeps the last one.
    """

    FILES = (
        *(os.path.join("ledger", f"{name}.py") for name in ("log", "store", "sqlite", "tables", "admission", "ledger")),
        f"{os.sep}contextlib.py",
    )

    def __init__(self, after):
        self.left, self.error = after, None

    def __call__(self, frame, kind, argument):
        if not frame.f_code.co_filename.endswith(self.FILES):
            return None
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        if kind == "return" or (kind == "line" and not line.startswith("with ")):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self

    def during(self, work):
        """Whether the work was interrupted.

        It has a thread of its own: an error raised at a return inside an ``except`` leaves what is handled there as
        handled, for as long as the thread lives, and all later errors would bear it as their context.
        """
        others = []

        def run():
            found = sys.gettrace()  # coverage's, or a debugger's
            sys.settrace(self)
            try:
                work()
            except KeyboardInterrupt as error:
                self.error = error
            except BaseException as error:
                others.append(error)
            finally:
                sys.settrace(found)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        for error in others:
            raise error
        return self.error is not None


@pytest.mark.parametrize("in_file", [False, True])
def test_an_interrupt_at_any_line_leaves_a_ledger_that_can_be_charged(path, in_file):
    """No lock stays held, nothing is half written, and what was charged is in the ledger once."""
    accountant = PrivacyAccountant(50.0, 1e-5, path=path if in_file else None)
    accountant.spend(GAUSS)
    seen, line, known = 0, 0, 1
    while True:
        line += 1
        interrupts = _Interrupts(line)
        if not interrupts.during(lambda: accountant.spend(GAUSS)):
            break
        seen += 1
        done = threading.Event()
        threading.Thread(target=lambda: (accountant.spend(GAUSS), done.set()), daemon=True).start()  # noqa: B023
        assert done.wait(600), f"a lock is held after an interrupt at line {line}"
        found = len(accountant.history)
        assert found in (known + 1, known + 2)
        known = found
    assert seen > 20
    assert accountant.verify() == known + 1
    assert not in_file or fresh(path).verify() == known + 1


@pytest.mark.parametrize("charged", [0, 1])
def test_an_interrupt_at_any_line_leaves_no_entry_in_part(charged):
    """What is counted, and what the first charge fixes, is what the entries say, as in a ledger read from them."""
    line, interrupted = 0, True
    while interrupted:
        line += 1
        accountant = PrivacyAccountant(50.0, 1e-5)
        for _ in range(charged):
            accountant.spend(GAUSS, adjacency="replace_one")
        interrupted = _Interrupts(line).during(lambda: accountant.spend(GAUSS, adjacency="replace_one"))  # noqa: B023
        found = accountant._log.read()
        again = _ledger.Ledger(found.terms)
        for entry in found.entries:
            again.add(entry)
        assert len(found.entries) in (charged, charged + 1)
        assert found.shape == again.shape
        for name in ("adjacency", "rule", "counts", "event", "_size"):
            (one,), (other,) = found.balances, again.balances
            assert getattr(one, name) == getattr(other, name), f"{name} after an interrupt at line {line}"
    assert line > 20
