"""Compile the numerical code in advance, for example in a container image: ``python -m skdp.warm_up``.

The command fits models to simulated data. Numba then stores the machine code beside the package, or in the directory
set by ``NUMBA_CACHE_DIR``. The code is specific to the processor, so run the command on the target machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np


def _fits() -> dict[str, Callable[[], object]]:
    """Return the fits to run, by the name of the estimator that is compiled."""
    import skdp

    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (2000, 4))
    y = np.arange(len(X)) % 2
    public = {"epsilon": 1.0, "delta": 1e-5}
    bounds = {f"x{j}": (-1.0, 1.0) for j in range(4)}
    classes = {"classes": [0, 1], **public}
    return {
        "tabular_pipeline": lambda: skdp.tabular_pipeline(schema=bounds, **classes).fit(X, y).predict(X),
        "DPLogisticRegression": lambda: skdp.DPLogisticRegression(data_norm=2.0, **classes).fit(X, y).predict(X),
        "DPMLPClassifier": lambda: skdp.DPMLPClassifier(data_norm=2.0, max_iter=1, **classes).fit(X, y).predict(X),
        "DPLinearRegression": lambda: skdp.DPLinearRegression(data_norm=2.0, y_bounds=(0, 1), **public).fit(X, y),
    }


def main() -> None:
    """Fit each model and print its CPU time."""
    for name, fit in _fits().items():
        start = time.process_time()
        fit()
        print(f"{name}: {time.process_time() - start:.1f} s CPU time", flush=True)


if __name__ == "__main__":
    main()

__all__ = ["main"]
