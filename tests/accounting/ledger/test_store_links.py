"""Budget files on file systems without hard links."""

import errno
import os
import pathlib
import signal

import pytest
from ledger_files import NO_LINKS, THIRD, THREE, fresh, one_line, rejected, start

from skdp import PrivacyAccountant
from skdp.exceptions import BudgetFileError


@pytest.mark.parametrize("how", [errno.EPERM, None])
def test_a_file_is_made_without_hard_links(tmp_path, path, monkeypatch, how):
    def no_link(*arguments):
        raise OSError(how, os.strerror(how))

    if how is None:
        monkeypatch.delattr(os, "link")
    else:
        monkeypatch.setattr(os, "link", no_link)
    accountant = PrivacyAccountant(**THREE, path=path)
    accountant.spend(THIRD)
    assert fresh(path).verify() == 1
    assert os.listdir(tmp_path) == ["census.budget"]
    with pytest.raises(ValueError, match="already exists"):
        PrivacyAccountant.from_json(accountant.to_json(), resume=True, path=path)


def test_other_errors_of_links_are_told(path, monkeypatch):
    def no_link(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "link", no_link)
    with pytest.raises(BudgetFileError, match="cannot be used") as error:
        PrivacyAccountant(**THREE, path=path)
    one_line(error)
    assert not os.path.exists(path)


DIES_COPYING = (
    NO_LINKS
    + """
fsync = os.fsync
def dying(number):
    fsync(number)
    if os.path.exists(path) and os.path.samestat(os.fstat(number), os.stat(path)):
        os.kill(os.getpid(), 9)
os.fsync = dying
PrivacyAccountant(2.0, 1e-5, path=path)
"""
)


def test_death_while_the_file_is_copied_leaves_none_that_can_be_charged(path, rows):
    child = start(DIES_COPYING, path, "-")
    child.communicate(timeout=600)
    assert child.returncode == -signal.SIGKILL
    assert pathlib.Path(path).read_bytes()[:100] == bytes(100)
    rejected(path, rows, "not a budget file|damaged")
    with pytest.raises(BudgetFileError, match=r"not a budget file|damaged"):
        PrivacyAccountant(**THREE, path=path)
