"""Two parts of a data set, and private choice among candidates: a search whose epsilon is that of the whole search.

- `private_split`: `private_train_test_split`: two parts of a data set, drawn once by a key that its accountant keeps
- `rehearsal`: what a private fit would be worth, from public numbers alone: `rehearse` fits to simulated rows
- `scores`: scores that can be released: sums over rows, or over units of several rows, of bounded contributions
- `whole_fit`: one charge for fits of private estimators to parts of the rows, as searches, cross-validation and
  calibration make
- `candidates`: candidates of a private search: what each fit will cost, and the fit at exactly that cost
- `cross_validation`: `cross_validate`: fits to all folds but one, and one noisy table of how each scores the fold
  that it has not seen
- `search`: the body of a private search: charge, split, trials, choice, refit, and what is published
- `table_classifier`: what classifiers share that follow from a noisy table of scores: one plan for a fit and for the
  table
- `calibrated_classifier`: `DPCalibratedClassifier`: probabilities that are right on average, from a noisy table of
  scores
- `threshold_classifier`: `DPThresholdClassifier`: a threshold for a purpose, from a noisy table of scores
"""

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
