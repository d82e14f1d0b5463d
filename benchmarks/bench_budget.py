"""Time of charging an accountant, in memory and in a file.

    python benchmarks/bench_budget.py [--charges 200] [--folder FOLDER]

A charge is a `PrivacyAccountant.spend` under a budget, from the call to its return: with a file, to the entry's being
on the disk of FOLDER. "distinct" entries are each of another noise multiplier, so that each has a cost of its own.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time

from skdp.accounting import DpEvent, GaussianDpEvent, PoissonSampledDpEvent, PrivacyAccountant, SelfComposedDpEvent
from skdp.accounting.ledger import file_log as _store


def fit(k: int = 0) -> DpEvent:
    """A fit of 200 steps."""
    return SelfComposedDpEvent(PoissonSampledDpEvent(0.01, GaussianDpEvent(20.0 + 0.001 * k)), 200)


def milliseconds(accountant: PrivacyAccountant, number: int) -> list[float]:
    parameters = {"epsilon": 1.0, "delta": 1e-5, "noise_multiplier": None, "classes": [0, 1], "alpha": 0.0}
    found = []
    for _ in range(number):
        started = time.perf_counter()
        accountant.spend(fit(), "DPLogisticRegression", parameters=parameters)
        found.append(1e3 * (time.perf_counter() - started))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--charges", type=int, default=200)
    parser.add_argument("--folder", help="where files are made; by default the system's for temporary ones")
    given = parser.parse_args()
    print(f"{'kept':8} {'entries before':>22} {'median ms':>10} {'worst ms':>10}")
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        for kept in ("memory", "file"):
            for entries, distinct in ((0, False), (1000, False), (1000, True)):
                path = os.path.join(folder, f"{entries}{distinct}.budget") if kept == "file" else None
                accountant = PrivacyAccountant(50.0, 1e-5, path=path)
                for k in range(entries):
                    accountant.spend(fit(k * distinct))
                taken = milliseconds(accountant, given.charges)
                before = f"{entries}{', distinct' * distinct}"
                print(f"{kept:8} {before:>22} {statistics.median(taken):10.2f} {max(taken):10.2f}", flush=True)
                if path is not None and entries:
                    _store._STORES.clear()  # as in a process that opens the file for the first time
                    started = time.perf_counter()
                    PrivacyAccountant.open(path).spend(fit())
                    print(
                        f"{'':8} {'first of a process':>22} {1e3 * (time.perf_counter() - started):10.2f}", flush=True
                    )


if __name__ == "__main__":
    main()
