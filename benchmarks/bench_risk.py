#!/usr/bin/env python3
"""Membership-inference risk: bounds of mu, comparison with riskcal, and accuracy for a budget stated as a risk.

    python benchmarks/bench_risk.py --compositions 500              # brackets of mu, 1e-3 and 1e-6
    SKDP_DATA=FOLDER python benchmarks/bench_risk.py --splits 6     # AUROC at one promise, by two ways
    python benchmarks/bench_risk.py --events 200                    # where riskcal is installed beside skdp

Compositions are those of the tests (`tests/accounting_exact.py`). Events against riskcal are plain and sampled
Gaussians, Laplace noise, and all three together, a quarter each; riskcal reads the privacy loss distribution of each by
dp-accounting.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

import skdp
from skdp.accounting import (
    DpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    PoissonSampledDpEvent,
    PrivacyProfile,
    SelfComposedDpEvent,
    compose,
)
from skdp.accounting.statements.targets import RiskTarget

ERRORS = (1e-3, 1e-6)  # down to which mu holds
FPR = np.array([0.1, 0.01, 0.001])
STEP = 1e-4  # of dp-accounting's privacy losses
ADVANTAGE, DELTA = 0.1, 1e-6

Part = tuple[str, float, float, int]
"""Kind, rate, scale of the noise, number of times."""


def print_brackets(number: int, seed: int) -> None:
    """How far apart the two ends of mu are, over drawn compositions."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
    from accounting_exact import drawn, event_of

    for alpha in ERRORS:
        widths, open_below, infinite, seconds = [], 0, [0, 0], []
        for place, case in enumerate(drawn(number, seed=seed)):
            start = time.process_time()
            low, high = PrivacyProfile(event_of(case.parts), adjacency=case.adjacency).mu_bounds(alpha)
            seconds.append(time.process_time() - start)
            if high == math.inf:
                infinite[low == math.inf] += 1
            elif low == 0.0 < high:
                open_below += 1
            else:
                widths.append((high / low - 1.0 if high else 0.0, high, place))
        found = np.array([width for width, _, _ in widths])
        print(
            f"errors from {alpha:g}: {number} compositions, {infinite[1]} infinite, {infinite[0]} so above alone, "
            f"{open_below} without a lower end; of the other {found.size}, {np.sum(found <= 1e-3)} within 1e-3, widest "
            f"{[(f'{w:.1e}', round(mu, 2), k) for w, mu, k in sorted(widths, reverse=True)[:4]]}; "
            f"{np.median(seconds):.2f} s each",
            flush=True,
        )


def draw_events(number: int, seed: int) -> list[list[Part]]:
    """Parts of events, a quarter of each kind."""
    rng = np.random.default_rng(seed)

    def between(low: float, high: float) -> float:
        return float(10.0 ** rng.uniform(low, high))

    events = []
    for place in range(number):
        plain = ("gaussian", 1.0, between(-0.2, 1.0), int(rng.integers(1, 5)))
        sampled = ("gaussian", between(-3.0, -0.3), between(-0.2, 0.7), int(between(0.0, 2.5)))
        laplace = ("laplace", 1.0, between(-0.3, 1.5), int(rng.integers(1, 8)))
        events.append([[plain], [sampled], [laplace], [plain, sampled, laplace]][place % 4])
    return events


def our_event(parts: list[Part]) -> DpEvent:
    """The event of skdp."""
    made = []
    for kind, rate, scale, times in parts:
        noise: DpEvent = LaplaceDpEvent(scale) if kind == "laplace" else GaussianDpEvent(scale)
        made.append(SelfComposedDpEvent(PoissonSampledDpEvent(rate, noise) if rate < 1.0 else noise, times))
    return compose(made)


def their_distribution(parts: list[Part]) -> Any:
    """The privacy loss distribution of dp-accounting."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    total = None
    for kind, rate, scale, times in parts:
        if kind == "laplace":
            one = pld.from_laplace_mechanism(scale, value_discretization_interval=STEP)
        else:
            one = pld.from_gaussian_mechanism(scale, sampling_prob=rate, value_discretization_interval=STEP)
        one = one.self_compose(times) if times > 1 else one
        total = one if total is None else total.compose(one)
    return total


def print_riskcal(number: int, seed: int) -> None:
    """Advantages and rates beside riskcal's, and on which side of them."""
    from riskcal.analysis import conversions

    advantages, rates = [], []
    for parts in draw_events(number, seed):
        profile, theirs = PrivacyProfile(our_event(parts)), their_distribution(parts)
        advantages.append(profile.advantage() - conversions.get_advantage_from_pld(theirs))
        found = profile.true_positive_rate(FPR)
        rates.append(found - (1.0 - np.asarray(conversions.get_beta_from_pld(theirs, alpha=FPR))))
    gaps = np.array(rates)
    print(
        f"{number} events, skdp less riskcal: advantage from {min(advantages):.1e} to {max(advantages):.1e}; true "
        f"positives at {FPR.tolist()} from {gaps.min(axis=0)} to {gaps.max(axis=0)}; all three within 1e-3 on "
        f"{np.sum(np.abs(gaps).max(axis=1) <= 1e-3)}"
    )


def print_adult(splits: int, folder: str) -> None:
    """AUROC and log loss at the same promise: the dial in risk, and the epsilon that implies it."""
    import pandas as pd  # which need not stand beside riskcal

    rows = pd.concat([pd.read_csv(f"{folder}/adult_{part}.csv.gz") for part in ("train", "test")], ignore_index=True)
    y = rows.pop("income").str.contains(">50K", regex=False).astype(int)
    implied = RiskTarget.of(skdp.Risk(advantage=ADVANTAGE)).implied_by(DELTA)
    for budget in ({"epsilon": skdp.Risk(advantage=ADVANTAGE)}, {"epsilon": implied}):
        scores = []
        for seed in range(splits):
            X, X_test, labels, y_test = train_test_split(rows, y, test_size=0.25, random_state=seed)
            model = skdp.tabular_pipeline("classifier", classes=[0, 1], delta=DELTA, **budget).fit(X, labels)
            chances = model.predict_proba(X_test)[:, 1]
            scores.append((roc_auc_score(y_test, chances), log_loss(y_test, chances)))
        mean, error = np.mean(scores, axis=0), np.std(scores, axis=0, ddof=1) / math.sqrt(splits)
        advantage = PrivacyProfile(model.privacy_event_).advantage()
        print(
            f"Adult, {budget}: AUROC {mean[0]:.4f} +- {error[0]:.4f}, log loss {mean[1]:.4f} +- {error[1]:.4f}, "
            f"epsilon {model.epsilon_:.4f}, advantage {advantage:.6f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("compositions", "events", "splits"):
        parser.add_argument(f"--{name}", type=int, default=0)
    parser.add_argument("--seed", type=int, default=32)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    if asked.compositions:
        print_brackets(asked.compositions, asked.seed)
    if asked.events:
        print_riskcal(asked.events, asked.seed)
    if asked.splits:
        print_adult(asked.splits, os.environ["SKDP_DATA"])


if __name__ == "__main__":
    main()
