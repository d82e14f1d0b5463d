"""
How to choose the clip, and why Adam hardly sees it: accuracy against epsilon
=============================================================================

DP-SGD's step is as long as its clip C: choose C ten times smaller, and the learning rate has to grow tenfold. Adam
divides by the size of the gradients, so once every gradient is clipped its updates do not depend on C at all
(Schwabedal et al. 2020, figure 1, for a generator of images; here for a classifier of census people). Bias correction
for the noise (DP-AdamBC; Tang et al. 2024) keeps that property, as its floor scales with C.

Each line is one clipping norm. On the left gradient descent at one learning rate: the lines lie far apart. Beside it
Adam: the smaller C is, the closer they lie. What distance is left comes from rows whose gradient is shorter than C,
which are not clipped: the theorem speaks of runs in which every gradient is.

Run it alone::

    python examples/plot_adam_clipping.py
    python examples/plot_adam_clipping.py --quick --output picture.png
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from skdp import DPMLPClassifier, PrivacyLeakWarning
from skdp.datasets import make_census
from skdp.plotting import PrivacyUtilityDisplay

CLIPS = (1e-5, 1e-3, 0.1, 1.0)
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
DELTA = 1e-5
N_PEOPLE, N_REPEATS = 20_000, 5
SOLVERS: dict[str, dict[str, Any]] = {
    "sgd": {"solver": "sgd", "learning_rate_init": 20.0},
    "adam": {"solver": "adam", "learning_rate_init": 0.01, "adam_epsilon": 1e-12},
    "adam, bias corrected": {
        "solver": "adam", "learning_rate_init": 0.01, "adam_epsilon": 0.0, "adam_noise_floor": 0.1,
    },
}  # fmt: skip
COLOURS = ("#000000", "#0072B2", "#009E73", "#D55E00")
PICTURE = "adam_clipping.png"


def people(n: int) -> tuple[Any, Any]:
    """Made-up people, their columns scaled by public bounds."""
    bunch = make_census(n, random_state=0)
    low, high = np.array([bunch.bounds[name] for name in bunch.feature_names]).T
    return ((bunch.data - low) / (high - low)).astype(np.float32), bunch.target


def measure(quick: bool) -> dict[tuple[str, float], NDArray[np.float64]]:
    """Area under the curve, by solver and clip: one row a repeat, one column an epsilon.

    Every clip sees the same noise, by a seed, so that lines differ by the clip alone. A seeded result must not leave
    one's hands.
    """
    X, y = people(4_000 if quick else N_PEOPLE)
    epsilons, repeats = (EPSILONS[::2], 1) if quick else (EPSILONS, N_REPEATS)
    scores = {(name, clip): np.empty((repeats, len(epsilons))) for name in SOLVERS for clip in CLIPS}
    for repeat in range(repeats):
        X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=repeat)
        for (name, clip), table in scores.items():
            for column, epsilon in enumerate(epsilons):
                model = DPMLPClassifier(
                    (32,), epsilon=epsilon, delta=DELTA, max_grad_norm=clip, sampling_rate=0.1, max_iter=20,
                    classes=(0, 1), random_state=repeat, **SOLVERS[name],
                )  # fmt: skip
                model.fit(X_train, y_train)
                table[repeat, column] = roc_auc_score(y_test, model.predict_proba(X_test)[:, 1])
    return scores


def print_table(scores: dict[tuple[str, float], NDArray[np.float64]], epsilons: tuple[float, ...]) -> None:
    """Mean scores, and how far the clips lie apart."""
    print("area under the curve, mean over repeats\n")
    print(f"{'solver':<22} {'C':>7}  " + " ".join(f"{f'eps {e:g}':>8}" for e in epsilons))
    for name in SOLVERS:
        for clip in CLIPS:
            print(f"{name:<22} {clip:7g}  " + " ".join(f"{v:8.4f}" for v in scores[name, clip].mean(axis=0)))
        small = [scores[name, clip] for clip in CLIPS[:2]]
        print(f"{'':<22} largest difference between the two smallest C: {np.abs(small[0] - small[1]).max():.1e}\n")


def draw(scores: dict[tuple[str, float], NDArray[np.float64]], epsilons: tuple[float, ...], output: Path) -> None:
    """One panel a solver, one line a clip."""
    import matplotlib

    matplotlib.use("Agg")  # Only a file is written: no display is needed.
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(SOLVERS), figsize=(11.0, 4.2), dpi=120, sharey=True, layout="constrained")
    for ax, name in zip(axes, SOLVERS, strict=True):
        for clip, colour, width in zip(CLIPS, COLOURS, (5.0, 3.0, 1.8, 1.2), strict=True):
            PrivacyUtilityDisplay.from_scores(
                epsilons, scores[name, clip].T, score_name="area under the ROC curve", ax=ax, color=colour,
                linewidth=width, label=f"C = {clip:g}",
            )  # fmt: skip
        ax.set(xlabel="epsilon", title=name)
        ax.label_outer()
    figure.suptitle(f"A network on made-up census people: one line for each clipping norm C, delta = {DELTA:g}")
    figure.savefig(output)
    plt.close(figure)


def check_output(output: Path) -> None:
    """Refuse a picture that cannot be written before the work is done."""
    if not output.parent.is_dir():
        raise FileNotFoundError(f"--output {output}: there is no folder {output.parent}")
    if output.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise ValueError(f"--output {output}: give a name that ends in .png, .pdf or .svg")


def main(arguments: list[str] | None = None) -> None:
    """Print the table and write the picture."""
    parser = argparse.ArgumentParser(description="Accuracy against epsilon for several clipping norms.")
    parser.add_argument("--quick", action="store_true", help="fewer people, budgets and repeats")
    parser.add_argument("--output", type=Path, default=Path(PICTURE), help=f"the picture; default: {PICTURE}")
    options = parser.parse_args(arguments if "__file__" in globals() else ["--quick"])
    try:
        check_output(options.output)
    except (OSError, ValueError) as error:
        sys.exit(f"plot_adam_clipping.py: {error}")
    warnings.simplefilter("ignore", PrivacyLeakWarning)  # The people are made up; the seed is said above.
    epsilons = EPSILONS[::2] if options.quick else EPSILONS
    scores = measure(options.quick)
    print_table(scores, epsilons)
    try:
        draw(scores, epsilons, options.output)
    except ImportError:
        print('No picture: matplotlib is missing; pip install "skdp[plot]"')
    else:
        print(f"Picture: {options.output}")


if __name__ == "__main__":
    main()
