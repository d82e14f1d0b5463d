"""
Six accounting methods on one training run: epsilon against epoch
=================================================================

Abadi et al. (2016) compared their moments accountant with strong composition on DP-SGD with sampling probability
``q = 0.01``, noise multiplier ``sigma = 4`` and ``delta = 1e-5``: after 100 epochs (10,000 steps) 1.26 against 9.34.
This example draws that comparison anew, up to 400 epochs, with what has been found since.

The dashed line is the strong-composition bound as it was published. It is drawn for history and is not a guarantee:
the analytic Gaussian and exact amplification in the same theorem give 16.8 instead of 9.34 (``docs/accounting.md``).

Run it alone::

    python examples/plot_moments_vs_strong.py
    python examples/plot_moments_vs_strong.py --quick --output picture.png
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from skdp.accounting import (
    METHODS,
    DpEvent,
    GaussianDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
    get_epsilon,
)
from skdp.plotting import AccountantComparisonDisplay

SAMPLING_RATE, NOISE_MULTIPLIER, DELTA = 0.01, 4.0, 1e-5
STEPS_PER_EPOCH = 100
CASE_EPOCHS, LAST_EPOCH = 100, 400
PICTURE = "moments_vs_strong.png"

LINES = ("naive", "strong", "strong_2016", "moments", "rdp", "pld")
TABLE = ("naive", "strong", "optimal", "optimal_exact", "strong_2016", "moments", "rdp", "pld")


def after_epochs(epochs: int) -> DpEvent:
    """What DP-SGD has released after some epochs: one noisy sum of a Poisson sample a step."""
    step = PoissonSampledDpEvent(SAMPLING_RATE, GaussianDpEvent(NOISE_MULTIPLIER))
    return SelfComposedDpEvent(step, STEPS_PER_EPOCH * epochs)


# %%
# The paper's case in figures
# ---------------------------


def print_table() -> None:
    """Epsilon of the paper's case by method."""
    steps = STEPS_PER_EPOCH * CASE_EPOCHS
    print(f"q = {SAMPLING_RATE}, sigma = {NOISE_MULTIPLIER:g}, {steps:,} steps, delta = {DELTA:g}\n")
    print(f"{'method':<14} {'epsilon':>9}  guarantee")
    for method in TABLE:
        epsilon = get_epsilon(after_epochs(CASE_EPOCHS), DELTA, method=method)
        print(f"{method:<14} {epsilon:9.4f}  {'yes' if method in METHODS else 'no'}")


# %%
# Epsilon against epoch
# ---------------------


def draw(quick: bool, output: Path) -> None:
    """Draw all lines on a logarithmic axis and write the picture."""
    import matplotlib

    matplotlib.use("Agg")  # Only a file is written: no display is needed.
    import matplotlib.pyplot as plt

    every = 50 if quick else 10
    epochs = [1, 2, 5, *range(10, every, 10), *range(every, LAST_EPOCH + 1, every)]
    figure, ax = plt.subplots(figsize=(9.0, 5.5), dpi=120, layout="constrained")
    ax.set_yscale("log")
    AccountantComparisonDisplay.from_event(
        after_epochs, epochs, DELTA, methods=LINES, xlabel="epoch (100 steps each)", ax=ax, linewidth=1.8
    )
    ax.set_yticks(
        [0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000], labels=["0.1", "0.3", "1", "3", "10", "30", "100", "300", "1000"]
    )
    ax.set_xlim(0, LAST_EPOCH)
    ax.axvline(CASE_EPOCHS, color="#bbbbbb", linewidth=0.8, zorder=0)
    ax.annotate("the paper's case", (CASE_EPOCHS, 0.04), xytext=(4, 4), textcoords="offset points", color="#666666")
    ax.set_ylim(0.04, 8_000)
    figure.suptitle(f"DP-SGD with q = {SAMPLING_RATE}, sigma = {NOISE_MULTIPLIER:g}: one run, priced by six methods")
    ax.legend(loc="upper left", ncols=2, fontsize="small", frameon=False)
    figure.savefig(output)
    plt.close(figure)


# %%
# Command line
# ------------


def check_output(output: Path) -> None:
    """Refuse a picture that cannot be written before the work is done."""
    if not output.parent.is_dir():
        raise FileNotFoundError(f"--output {output}: there is no folder {output.parent}")
    if output.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise ValueError(f"--output {output}: give a name that ends in .png, .pdf or .svg")


def main(arguments: list[str] | None = None) -> None:
    """Print the table and write the picture."""
    parser = argparse.ArgumentParser(description="Epsilon against epoch by method of accounting.")
    parser.add_argument("--quick", action="store_true", help="fewer points")
    parser.add_argument("--output", type=Path, default=Path(PICTURE), help=f"the picture; default: {PICTURE}")
    options = parser.parse_args(arguments if "__file__" in globals() else ["--quick"])
    try:
        check_output(options.output)
    except (OSError, ValueError) as error:
        sys.exit(f"plot_moments_vs_strong.py: {error}")
    print_table()
    try:
        draw(options.quick, options.output)
    except ImportError:
        print('\nNo picture: matplotlib is missing; pip install "skdp[plot]"')
    else:
        print(f"\nPicture: {options.output}")


if __name__ == "__main__":
    main()
