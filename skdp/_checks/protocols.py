"""What tells an estimator that pays for what it reads from one that reads nothing, and which one predicts."""

from __future__ import annotations

from typing import Any


def is_private(step: Any) -> bool:
    """Whether a step pays for what it reads; one whose ``__private_step__`` returns None reads nothing as it is set."""
    return hasattr(type(step), "__private_step__") and step.__private_step__() is not None


def last_step(model: Any) -> Any:
    """Return the last step of a pipeline, fitted where it is, and any other estimator as it is."""
    return model.steps[-1][1] if hasattr(model, "steps") else model
