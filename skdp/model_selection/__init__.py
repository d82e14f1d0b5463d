"""Two parts of a data set, and private choice among candidates: a search whose epsilon is that of the whole search."""

from __future__ import annotations

from skdp._lazy import lazy_face

__getattr__, __dir__, __all__ = lazy_face(
    __name__,
    {
        "DPGridSearchCV": "skdp.model_selection.searches",
        "DPRandomizedSearchCV": "skdp.model_selection.searches",
        "PrivateScore": "skdp.model_selection.scores",
        "cross_validate": "skdp.model_selection.cross_validation",
        "SCORES": "skdp.model_selection.scores",
        "TableScore": "skdp.model_selection.scores",
        "make_private_scorer": "skdp.model_selection.scores",
        "private_train_test_split": "skdp.model_selection.parts",
    },
)
