"""`PrivacyAccountant`: the record of one data set, what a budget admits, and where it is kept.

- `accountant`: the public class, and how a parameter `accountant` is read; `figures`, `report`: how it is shown
- `ledger`: the entries; `balance`: what the charges to one partition cost, the split into two partitions, and the
  odometer; `charges`: one entry, the terms, the joint cost
- `admission`: whether an entry may be written, what the next one may cost, and the log in memory
- `filters`: which charges a budget admits when they are chosen after outputs were seen
- `store`, `sqlite`: the log in a file that processes share; `serial`: JSON, and the chain of hashes
"""

from __future__ import annotations

from skdp.accounting.ledger.accountant import PrivacyAccountant, resolve_accountant
from skdp.accounting.ledger.charges import Charge

__all__ = ["Charge", "PrivacyAccountant", "resolve_accountant"]
