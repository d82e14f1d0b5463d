"""Mistakes in what is released of the errors of a regressor."""

from mutant import mutant
from paths import REGRESSOR_SCORES

MUTANTS = [
    mutant(
        "errors priced without the sums of targets",
        (REGRESSOR_SCORES, "return ERROR_PARTS + 1", "return ERROR_PARTS"),
        tests="regression",
        select="five_parts or cost_epsilon",
    ),
    mutant(
        "a sum of targets at twice its share",
        (REGRESSOR_SCORES, "np.trunc(amounts * (t / 2))", "np.trunc(amounts * t)"),
        tests="regression",
        select="five_parts",
    ),
    mutant(
        "squares of targets that are not centred",
        (REGRESSOR_SCORES, "amounts * (t**2 - 0.5)", "amounts * t**2"),
        tests="regression",
        select="five_parts",
    ),
    mutant(
        "targets beyond their bounds in the sums",
        (
            REGRESSOR_SCORES,
            "return np.clip(check_targets(y, n_samples), *self.y_bounds_)",
            "return check_targets(y, n_samples)",
        ),
        (REGRESSOR_SCORES, "t = np.clip((y - low) / half - 1.0, -1.0, 1.0)", "t = (y - low) / half - 1.0"),
        tests="regression",
        select="five_parts",
    ),
]
