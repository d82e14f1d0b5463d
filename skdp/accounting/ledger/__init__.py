"""`PrivacyAccountant`: the record of one data set, what a budget admits, and where it is kept.

- `filters`: privacy filters: which further charges a budget admits when they are chosen after seeing outputs
- `report`: the ledger of a `PrivacyAccountant` as text and as HTML
- `charges`: one entry of a ledger, the terms of a ledger, and the price of everything in it
- `balance`: `Balance`: what one unit has paid, and what the budget still admits of it
- `serial`: events, entries and ledgers as JSON, and the hashes that chain the entries of a ledger
- `ledger`: `Ledger`: the entries of a ledger, and the balances that they make, of which the tightest decides
- `admission`: whether an entry may be written, the message if it may not, what the next charge may cost, and the log
  in memory
- `spending`: a ledger as it is shown, and the figures under it: what was spent, what is left, what each figure is
  valid for
- `sqlite`: transactions on a file of SQLite, whose errors become one line with a remedy
- `file_log`: the log in a file: SQLite, one transaction a charge, on one balance for threads, processes and scripts
- `accountant`: `PrivacyAccountant`: the ledger of one data set, and its budget
"""

from __future__ import annotations

from skdp.accounting.ledger.accountant import PrivacyAccountant, resolve_accountant
from skdp.accounting.ledger.charges import Charge

__all__ = ["Charge", "PrivacyAccountant", "resolve_accountant"]
