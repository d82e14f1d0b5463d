"""Mistakes in losses and in the clip of their residuals."""

from mutant import mutant
from paths import LOSSES

MUTANTS = [
    mutant(
        "loss: counts without a bound on their mean",
        (LOSSES, "return (limit if mean > limit else mean) - target", "return mean - target"),
        tests="losses",
        select="extreme or bounds",
    ),
    mutant(
        "loss: a mean that is lost taken for the largest",
        (LOSSES, "(limit if mean > limit else mean)", "(mean if mean < limit else limit)"),
        tests="losses",
        select="extreme or lost",
    ),
    mutant(
        "loss: Huber's line on one side only",
        (LOSSES, "        difference = -limit if difference < -limit else difference\n", ""),
        tests="losses",
        select="slopes or bounds",
    ),
    mutant(
        "loss: each output clipped by its own size",
        (
            LOSSES,
            "size = _norm(residuals[:, i])\n",
            "size = abs(residuals[0, i])\n",
        ),
        tests="losses",
        select="passes_the_clip or reach_the_clip",
    ),
    mutant(
        "loss: residuals clipped without the length of their row",
        (LOSSES, "size *= lengths[i] * room", "size *= room"),
        tests="losses",
        select="passes_the_clip or same_clip",
    ),
    mutant(
        "loss: NaN left to the largest of the others",
        (
            LOSSES,
            "        if not abs(values[k]) < np.inf:\n            return np.inf\n"
            "        top = max(top, abs(values[k]))\n",
            "        top = top if top >= abs(values[k]) else abs(values[k])\n",
        ),
        tests="losses",
        select="null_rows",
    ),
    mutant(
        "loss: squares of residuals that vanish",
        (
            LOSSES,
            "        square += (values[k] / top) ** 2\n    return top * math.sqrt(square)",
            "        square += values[k] ** 2\n    return math.sqrt(square)",
        ),
        tests="losses",
        select="passes_the_clip",
    ),
]
