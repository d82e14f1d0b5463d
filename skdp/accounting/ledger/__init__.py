"""`PrivacyAccountant`: the charges to one data set, the admission of further charges, and the storage of the record.

- `filters`: privacy filters, which admit adaptively chosen charges under a budget
- `report`: text and HTML tables of the entries
- `charges`: entries, the fixed terms of an accountant, and the privacy cost of a composition
- `balance`: the charges that affect one unit, the remaining budget, privacy odometers, and train/test splits
- `serial`: events and entries as JSON, and the hash chain of the entries
- `ledger`: all entries of an accountant, with a balance for each partition
- `admission`: admission of entries, error messages, the remaining budget, and the in-memory log
- `spending`: methods of `PrivacyAccountant` that report the spent and the remaining budget
- `sqlite`: transactions on a SQLite file, with one-line error messages
- `file_log`: the log in a SQLite file, shared by threads, processes and scripts
- `accountant`: `PrivacyAccountant`
"""

from __future__ import annotations

from skdp.accounting.ledger.accountant import PrivacyAccountant, resolve_accountant
from skdp.accounting.ledger.charges import Charge

__all__ = ["Charge", "PrivacyAccountant", "resolve_accountant"]
