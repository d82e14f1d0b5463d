"""What tests of rows that are not in memory share."""

import pytest

from skdp import PrivacyAccountant
from skdp._dpsgd.streamed import blocks
from skdp._dpsgd.streamed.arrow import ParquetRows


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks of 256 rows: small tables have several of them, and groups of rows lie across their borders."""
    monkeypatch.setattr(blocks, "_MAX_ROWS", 256)


@pytest.fixture
def opened(monkeypatch, request):
    """An accountant, its number of charges whenever a file was opened for its rows, and the columns that were read."""
    unit = getattr(request.module, "UNIT", "row")
    accountant, seen, original = PrivacyAccountant(10.0, 1e-5, unit=unit), [], ParquetRows._open

    def recording(self, columns, n_rows):
        seen.append((len(accountant.history), list(columns)))
        return original(self, columns, n_rows)

    monkeypatch.setattr(ParquetRows, "_open", recording)
    return accountant, seen
