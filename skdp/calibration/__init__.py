"""What follows from private scores: probabilities that are right on average, and thresholds for a purpose.

- `table_classifier`: what both classifiers share, and the one plan of a fit and of a noisy table of scores
- `calibrated_classifier`, `threshold_classifier`: maps of scores to probabilities, and thresholds, from that table
"""

from __future__ import annotations

from skdp._lazy import lazy_face

__getattr__, __dir__, __all__ = lazy_face(
    __name__,
    {
        "DPCalibratedClassifier": "skdp.calibration.calibrated_classifier",
        "DPThresholdClassifier": "skdp.calibration.threshold_classifier",
    },
)
