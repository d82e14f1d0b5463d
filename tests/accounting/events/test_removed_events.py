"""Records with events that skdp no longer has are rejected, never read with a smaller sum."""

import json
import pathlib
import shutil

import pytest

from skdp import PrivacyAccountant
from skdp.accounting import GaussianDpEvent
from skdp.accounting.events.kinds import REMOVED_EVENTS
from skdp.accounting.ledger.serial import event_from_dict
from skdp.exceptions import BudgetFileError

WRITTEN = pathlib.Path(__file__).with_name("files") / "removed_event.budget"
"""By a commit that had the event: a Gaussian release of noise 8, then two choices by the exponential mechanism."""


@pytest.mark.parametrize("name", REMOVED_EVENTS)
def test_removed_event_is_rejected_in_one_line(name):
    inner = {"event": name, "epsilon": 0.1}
    whole = {"event": "ComposedDpEvent", "events": [{"event": "NoOpDpEvent"}, inner]}
    for content in (inner, whole):
        with pytest.raises(BudgetFileError, match=f"event='{name}' is not supported .* EpsilonDeltaDpEvent") as error:
            event_from_dict(content)
        assert "\n" not in str(error.value)


def test_budget_file_with_removed_event_is_rejected(tmp_path):
    path = pathlib.Path(shutil.copy(WRITTEN, tmp_path))
    before = path.read_bytes()
    accountant = PrivacyAccountant.open(path)
    for use in (
        lambda: accountant.spent,
        lambda: accountant.get_epsilon(1e-6),
        lambda: accountant.spend(GaussianDpEvent(100.0)),
        accountant.to_json,
    ):
        with pytest.raises(BudgetFileError, match="event='ExponentialMechanismDpEvent' is not supported") as error:
            use()
        assert "\n" not in str(error.value)
    assert path.read_bytes() == before


def test_json_record_with_removed_event_is_rejected():
    accountant = PrivacyAccountant()
    accountant.spend(GaussianDpEvent(8.0))
    content = json.loads(accountant.to_json())
    content["charges"][0]["event"] = {"event": "ReportNoisyMaxDpEvent", "epsilon": 0.5}
    with pytest.raises(BudgetFileError, match="event='ReportNoisyMaxDpEvent' is not supported"):
        PrivacyAccountant.from_json(json.dumps(content))
