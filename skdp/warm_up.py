"""Compile what first fits need, for an image or a fresh install: ``python -m skdp.warm_up``.

Models are fitted to made-up rows, so that Numba keeps their machine code beside the package or in the folder that
``NUMBA_CACHE_DIR`` names. It holds for processors of one kind: run it on the one that the image is for.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np


def _fits() -> dict[str, Callable[[], object]]:
    """What is fitted, by what it compiles for."""
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
    """Fit each model, and say how long it took."""
    for name, fit in _fits().items():
        start = time.process_time()
        fit()
        print(f"{name}: {time.process_time() - start:.1f} s of CPU", flush=True)


if __name__ == "__main__":
    main()

__all__ = ["main"]
