"""Which class an object is exactly of: one that derives from a listed class may do more, and is none."""

from __future__ import annotations

from typing import Any

PIPELINE_KINDS = frozenset(
    {
        "sklearn.pipeline.Pipeline",
        "skdp.pipeline.PrivatePipeline",
        "skdp.pipeline.PipelineSlice",
        "skdp.tabular.TabularPipeline",
    }
)
SEARCH_KINDS = frozenset(
    {"skdp.model_selection.searches.DPGridSearchCV", "skdp.model_selection.searches.DPRandomizedSearchCV"}
)
THRESHOLD_KIND = "sklearn.model_selection._classification_threshold.FixedThresholdClassifier"
CALIBRATED_KIND = "skdp.calibration.calibrated_classifier.DPCalibratedClassifier"
PURPOSE_KIND = "skdp.calibration.threshold_classifier.DPThresholdClassifier"
AROUND_KINDS = frozenset({THRESHOLD_KIND, CALIBRATED_KIND, PURPOSE_KIND})
"""Classifiers around one that was fitted, `estimator_`, whose scores they follow."""


def kind_of(model: Any) -> str:
    """Return the qualified name of a class."""
    return f"{type(model).__module__}.{type(model).__qualname__}"


def passes(step: Any) -> bool:
    """Whether a step of a pipeline hands rows on as they are."""
    return step is None or (isinstance(step, str) and step == "passthrough")
