"""Private data splitting, cross-validation, hyperparameter search, calibration and thresholds.

- `private_split`: `private_train_test_split`: a training part and a test part, with one accountant each
- `rehearsal`: `rehearse`: expected quality of a private fit from public numbers alone, on simulated rows
- `scores`: scores with a bounded contribution of each row or group, which can be released with noise
- `whole_fit`: one charge for several fits to parts of the rows, for searches, cross-validation and calibration
- `candidates`: candidates of a private search: the privacy cost of each fit, and the fit at exactly that cost
- `cross_validation`: `cross_validate`: one fit for each fold, and one noisy histogram of the out-of-fold scores
- `search`: a private search: charge, split, trials, selection, refit, and publication
- `table_classifier`: base of classifiers that are derived from a noisy histogram of scores
- `calibrated_classifier`: `DPCalibratedClassifier`: calibrated probabilities
- `threshold_classifier`: `DPThresholdClassifier`: decision thresholds
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
