"""Privacy cost of selecting among candidates, by distribution of the number of trials, and run time.

    python benchmarks/bench_selection.py

One candidate costs epsilon 1 (by PLD) at the given delta; its score counts as part of it. The factor is what the
choice costs over that, by profiles ("pld") and by Rényi divergences ("rdp", also over the candidate's own Rényi
cost). "published" is Theorem 2 or 6 of Papernot & Steinke 2022 over PLD's cost, by dp-accounting if it is there. The
second table solves for the noise of a whole search: candidates, score, choice, and a refit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from skdp.accounting import (
    DpEvent,
    GaussianDpEvent,
    NumberOfTrials,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
    calibrate_noise_multiplier,
    calibrate_selection,
    compose,
    get_epsilon,
    to_dp_accounting,
)

LAWS = {"logarithmic": 0.0, "geometric": 1.0, "Poisson": math.inf}


def sampled(noise_multiplier: float) -> DpEvent:
    return SelfComposedDpEvent(PoissonSampledDpEvent(0.02, GaussianDpEvent(noise_multiplier)), 500)


BASES: dict[str, Callable[[float], DpEvent]] = {"full batch": GaussianDpEvent, "q .02, 500 steps": sampled}


def published(event: DpEvent, delta: float) -> float:
    try:
        from dp_accounting.rdp import RdpAccountant
    except ImportError:
        return math.nan
    return float(RdpAccountant().compose(to_dp_accounting(event)).get_epsilon(delta))


def factors() -> None:
    print("| base | delta | expected | law | profiles | Rényi / PLD | Rényi / Rényi | published | ms, profiles |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, make in BASES.items():
        for delta in (1e-5, 1e-6):
            run = make(calibrate_noise_multiplier(make, 1.0, delta))
            one, one_renyi = (get_epsilon(run, delta, method=method) for method in ("pld", "rdp"))
            for expected in (5.0, 10.0, 30.0):
                for law, shape in LAWS.items():
                    event = NumberOfTrials(expected, shape).event(run)
                    start = time.perf_counter()
                    found = get_epsilon(event, delta)
                    spent = time.perf_counter() - start
                    renyi = get_epsilon(event, delta, method="rdp")
                    print(
                        f"| {name} | {delta:g} | {expected:g} | {law} | {found / one:.3f} | {renyi / one:.3f} "
                        f"| {renyi / one_renyi:.3f} | {published(event, delta) / one:.3f} | {1e3 * spent:.0f} |"
                    )


def searches() -> None:
    print("\n| base | method | noise of one fit | of a search over 10 | ratio | s |\n|---|---|---|---|---|---|")
    for name, make in BASES.items():
        for method in ("pld", "rdp"):

            def whole(trials: NumberOfTrials, sigma: float, make: Callable[[float], DpEvent] = make) -> DpEvent:
                return compose([trials.event(compose([make(sigma), GaussianDpEvent(60.0)])), make(sigma)])

            one = calibrate_noise_multiplier(make, 1.0, 1e-5, method=method)
            start = time.perf_counter()
            found = calibrate_selection(whole, 10.0, 1.0, 1e-5, method=method)
            spent = time.perf_counter() - start
            noise = found.noise_multiplier
            print(f"| {name} | {method} | {one:.3f} | {noise:.3f} | {noise / one:.2f} | {spent:.2f} |")


if __name__ == "__main__":
    factors()
    searches()
