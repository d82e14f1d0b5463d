"""diffprivlib: pure epsilon, no steps, so whole fits are timed."""

from __future__ import annotations

from typing import Any

from peers.registry import contestant
from peers.tasks import Task


@contestant("diffprivlib LogisticRegression", "fit", role="private", home="diffprivlib")
def logistic_regression(task: Task, X: Any, y: Any) -> Any:
    from diffprivlib.models import LogisticRegression

    return lambda: LogisticRegression(epsilon=1.0, data_norm=task.widths[0] ** 0.5).fit(X, y)
