"""A budget file of an earlier commit opens with all of its charges, or is rejected in one line."""

import pathlib
import shutil

import pytest

from skdp import PrivacyAccountant
from skdp.accounting import GaussianDpEvent, LaplaceDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from skdp.accounting.ledger.file_log import FILE_SCHEMA
from skdp.exceptions import BudgetFileError

FOLDER = pathlib.Path(__file__).with_name("files")
FILES = sorted(FOLDER.glob("*.budget"))
CHARGES = {
    "quantiles": GaussianDpEvent(8.0),
    "model": SelfComposedDpEvent(PoissonSampledDpEvent(0.01, GaussianDpEvent(1.5)), 200),
    "count": LaplaceDpEvent(10.0),
    "after the raise": GaussianDpEvent(4.0),
}
METHODS = {"format_4": "pld", "format_5": "rdp"}  # the earlier format states none
SPENT = 1.870731
REMOVED = {"gdp": "filter_family='gaussian'", "discrete": "noise='discrete'"}


@pytest.mark.parametrize("written", FILES, ids=lambda path: path.stem)
def test_budget_file_opens_with_all_charges(written, tmp_path):
    """If a later version cannot read a format, it rejects the file in one line: then move it to a test of that."""
    path = shutil.copy(written, tmp_path / written.name)
    ledger = PrivacyAccountant.open(path)
    assert {charge.label: charge.event for charge in ledger.history} == CHARGES
    assert (ledger.epsilon, ledger.delta, ledger.unit) == (4.0, 1e-6, "household")
    assert (ledger.method, ledger.adjacency) == (METHODS[written.stem], "zero_out")
    assert [entry.kind for entry in ledger.entries].count("raise") == 1
    assert ledger.spent == pytest.approx(SPENT, rel=1e-6)
    ledger.verify()
    ledger.spend(GaussianDpEvent(20.0), "new")
    assert len(PrivacyAccountant.open(path).history) == len(CHARGES) + 1


def test_there_is_a_file_of_the_current_format():
    assert f"format_{FILE_SCHEMA}" in {path.stem for path in FILES}


@pytest.mark.parametrize(("family", "remedy"), REMOVED.items())
def test_removed_filter_family_is_rejected_in_one_line(family, remedy, tmp_path):
    """Files with one charge each, written before the families were removed; also named at creation and in JSON."""
    with pytest.raises(ValueError, match=f"filter_family='{family}' was removed") as error:
        PrivacyAccountant(1.0, 1e-6, filter_family=family)
    assert remedy in str(error.value)
    ledger = PrivacyAccountant(1.0, 1e-6, filter_family="renyi")
    ledger.spend(GaussianDpEvent(50.0))
    with pytest.raises(ValueError, match="was removed"):
        PrivacyAccountant.from_json(ledger.to_json().replace('"renyi"', f'"{family}"'))
    path = shutil.copy(FOLDER / "removed" / f"family_{family}.budget", tmp_path)
    for read in (PrivacyAccountant.open, lambda path: PrivacyAccountant(1.0, 1e-6, path=path)):
        with pytest.raises(BudgetFileError, match=f"filter_family='{family}', which was removed") as error:
            read(path)
        assert remedy in str(error.value)
        assert "\n" not in str(error.value)
