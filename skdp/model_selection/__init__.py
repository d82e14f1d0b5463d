"""Two parts of a data set, and private choice among candidates: a search whose epsilon is that of the whole search."""

from __future__ import annotations

from skdp import lazy_face

__getattr__, __dir__, __all__ = lazy_face(
    __name__,
    {
        "DPCalibratedClassifier": "skdp.model_selection.calibrated_classifier",
        "DPGridSearchCV": "skdp.model_selection.search",
        "DPRandomizedSearchCV": "skdp.model_selection.search",
        "DPThresholdClassifier": "skdp.model_selection.threshold_classifier",
        "PrivateScore": "skdp.model_selection.scores",
        "cross_validate": "skdp.model_selection.cross_validation",
        "Rehearsal": "skdp.model_selection.rehearsal",
        "SCORES": "skdp.model_selection.scores",
        "TableScore": "skdp.model_selection.scores",
        "make_private_scorer": "skdp.model_selection.scores",
        "private_train_test_split": "skdp.model_selection.private_split",
    },
)
