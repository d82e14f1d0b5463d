"""Write the budget file of this folder, once for each version of the format: `python write.py`."""

import pathlib

from skdp import PrivacyAccountant
from skdp.accounting import GaussianDpEvent, LaplaceDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent

path = pathlib.Path(__file__).with_name("format_5.budget")
ledger = PrivacyAccountant(epsilon=3.0, delta=1e-6, unit="household", method="rdp", adjacency="zero_out", path=path)
ledger.spend(GaussianDpEvent(8.0), "quantiles", note="agreed")
ledger.spend(SelfComposedDpEvent(PoissonSampledDpEvent(0.01, GaussianDpEvent(1.5)), 200), "model")
ledger.spend(LaplaceDpEvent(10.0), "count")
ledger.increase_budget(epsilon=4.0, note="second year")
ledger.spend(GaussianDpEvent(4.0), "after the raise")
