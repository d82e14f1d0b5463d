"""A budget file of an earlier commit opens with all of its charges."""

import pathlib
import shutil

import pytest

from skdp import PrivacyAccountant
from skdp.accounting import GaussianDpEvent, LaplaceDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from skdp.accounting.ledger.tables import FILE_SCHEMA

FILES = sorted(pathlib.Path(__file__).with_name("files").glob("*.budget"))
CHARGES = {
    "quantiles": GaussianDpEvent(8.0),
    "model": SelfComposedDpEvent(PoissonSampledDpEvent(0.01, GaussianDpEvent(1.5)), 200),
    "count": LaplaceDpEvent(10.0),
    "after the raise": GaussianDpEvent(4.0),
}
SPENT = 1.870731


@pytest.mark.parametrize("written", FILES, ids=lambda path: path.stem)
def test_budget_file_opens_with_all_charges(written, tmp_path):
    """If a later version cannot read a format, it rejects the file in one line: then move it to a test of that."""
    path = shutil.copy(written, tmp_path / written.name)
    ledger = PrivacyAccountant.open(path)
    assert {charge.label: charge.event for charge in ledger.history} == CHARGES
    assert (ledger.epsilon, ledger.delta, ledger.unit) == (4.0, 1e-6, "household")
    assert [entry.kind for entry in ledger.entries].count("raise") == 1
    assert ledger.spent == pytest.approx(SPENT, rel=1e-6)
    ledger.verify()
    ledger.spend(GaussianDpEvent(20.0), "new")
    assert len(PrivacyAccountant.open(path).history) == len(CHARGES) + 1


def test_there_is_a_file_of_the_current_format():
    assert f"format_{FILE_SCHEMA}" in {path.stem for path in FILES}
