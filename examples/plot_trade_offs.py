"""
One epsilon, three mechanisms: what an attacker can tell
========================================================

Epsilon and delta are one point of a curve. This example sets the noise of a Gaussian release, of a Laplace release and
of 20 steps of DP-SGD so that all three cost the same epsilon at the same delta, and draws their trade-off
functions: the least share of false negatives of any test that tells whether a record is there, at each share of false
positives. Where a curve is higher the attacker knows less.

Run it alone::

    python examples/plot_trade_offs.py
    python examples/plot_trade_offs.py --quick --output picture.png
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from skdp.accounting import (
    DpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    PoissonSampledDpEvent,
    PrivacyProfile,
    SelfComposedDpEvent,
    calibrate_noise_multiplier,
)
from skdp.plotting import TradeOffDisplay

EPSILON, DELTA = 1.0, 1e-5
SAMPLING_RATE, STEPS = 0.01, 20
FALSE_POSITIVES = (0.01, 0.1, 0.5)
PICTURE = "trade_offs.png"

# %%
# Three events at one price
# -------------------------


def dpsgd(noise: float) -> DpEvent:
    """Noisy sums of Poisson samples."""
    return SelfComposedDpEvent(PoissonSampledDpEvent(SAMPLING_RATE, GaussianDpEvent(noise)), STEPS)


def calibrated() -> dict[str, DpEvent]:
    """The three events, each with the noise at which it costs epsilon at delta."""
    makers = {"Gaussian": GaussianDpEvent, "Laplace": LaplaceDpEvent, f"DP-SGD, {STEPS:,} steps": dpsgd}
    return {name: make(calibrate_noise_multiplier(make, EPSILON, DELTA)) for name, make in makers.items()}


# %%
# What they allow
# ---------------


def print_table(events: dict[str, DpEvent]) -> None:
    """Least shares of false negatives, and delta at other epsilons."""
    print(f"epsilon = {EPSILON:g} at delta = {DELTA:g}\n")
    print(f"{'':<20} {'false negatives at false positives of':>42}   delta at")
    columns = "".join(f"{each:>14g}" for each in FALSE_POSITIVES)
    print(f"{'':<20} {columns}   epsilon = {EPSILON / 2:g}")
    for name, event in events.items():
        profile = PrivacyProfile(event)
        message = "".join(f"{profile.trade_off(each):14.4f}" for each in FALSE_POSITIVES)
        print(f"{name:<20} {message}   {profile(EPSILON / 2):.2g}")


def draw(events: dict[str, DpEvent], output: Path) -> None:
    """Draw the trade-off functions and write the picture."""
    import matplotlib

    matplotlib.use("Agg")  # Only a file is written: no display is needed.
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(6.0, 5.2), dpi=120, layout="constrained")
    TradeOffDisplay.from_events(events, ax=ax, linewidth=1.8)
    ax.set_title(f"Trade-off functions at epsilon = {EPSILON:g}, delta = {DELTA:g}", fontsize="medium")
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
    parser = argparse.ArgumentParser(description="Trade-off functions of three mechanisms at one price.")
    parser.add_argument("--quick", action="store_true", help="the same: it takes a second")
    parser.add_argument("--output", type=Path, default=Path(PICTURE), help=f"the picture; default: {PICTURE}")
    options = parser.parse_args(arguments if "__file__" in globals() else ["--quick"])
    try:
        check_output(options.output)
    except (OSError, ValueError) as error:
        sys.exit(f"plot_trade_offs.py: {error}")
    events = calibrated()
    print_table(events)
    try:
        draw(events, options.output)
    except ImportError:
        print('\nNo picture: matplotlib is missing; pip install "skdp[plot]"')
    else:
        print(f"\nPicture: {options.output}")


if __name__ == "__main__":
    main()
