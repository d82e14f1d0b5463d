"""`PrivacyAccountant`: the ledger of one data set, what a budget admits, and where it is kept.

- `accountant`: the public class, and how a parameter `accountant` is read; `figures`, `report`: how it is shown
- `ledger`: the entries; `balance`: what a partition has paid; `split`: two partitions by a rule of the library;
  `charges`: one entry, the terms, the joint price; `admission`: whether an entry may be written, and what the next one
  may cost
- `filters`: what a budget admits; `odometer`: what a run costs however it was chosen
- `log`: a ledger in memory; `store`, `sqlite`: in a file that processes share; `tables`: what such a file
  consists of, and whether it is whole; `serial`: JSON, and the chain of hashes
"""

from __future__ import annotations

from skdp.accounting.ledger.accountant import PrivacyAccountant, resolve_accountant
from skdp.accounting.ledger.charges import Charge

__all__ = ["Charge", "PrivacyAccountant", "resolve_accountant"]
