"""All injected faults, by part of the package."""

from table import accounting, evaluation, fits, kernels, mechanisms, models, preprocessing, synthesis, training

FAULTS = [
    *accounting.FAULTS,
    *evaluation.FAULTS,
    *fits.FAULTS,
    *kernels.FAULTS,
    *mechanisms.FAULTS,
    *models.FAULTS,
    *preprocessing.FAULTS,
    *synthesis.FAULTS,
    *training.FAULTS,
]
