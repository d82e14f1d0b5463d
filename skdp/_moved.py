"""Aliases of modules under their names in pickles of version 0.1.0.

Each alias loads the module that replaced the old one when an attribute is looked up.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

_MOVED = {
    "skdp._releases": "skdp._fitting.releases",
    "skdp._row_wise": "skdp._fitting.row_wise",
    "skdp._scores": "skdp._search.scores",
    "skdp.accounting._accountant": "skdp.accounting.ledger.accountant",
    "skdp.accounting._affordable": "skdp.accounting.ledger.affordable",
    "skdp.accounting._bill": "skdp.accounting.ledger.ledger",
    "skdp.accounting._charges": "skdp.accounting.ledger.charges",
    "skdp.accounting._composition": "skdp.accounting.releases",
    "skdp.accounting._filters": "skdp.accounting.ledger.filters",
    "skdp.accounting._log": "skdp.accounting.ledger.log",
    "skdp.accounting._repeats": "skdp.accounting.tries",
    "skdp.accounting._selection": "skdp.accounting.calibration.selection",
    "skdp.accounting._store": "skdp.accounting.ledger.store",
}
_RENAMED = {"Bill": "Ledger"}


class _Moved(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(_MOVED[self.__name__]), _RENAMED.get(name, name))


for _name in _MOVED:
    sys.modules.setdefault(_name, _Moved(_name))
