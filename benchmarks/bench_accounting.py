"""Speed and accuracy of `skdp.accounting` and dp-accounting on random runs of DP-SGD.

    python benchmarks/bench_accounting.py [--cases 40] [--seed 1] [--limit 60] [--calibrations 10] [--equal 40]
    python benchmarks/bench_accounting.py --only-equal
    python benchmarks/bench_accounting.py --compositions 1000

Cases: q from 1e-5 to 1, sigma .3 to 100, steps 1 to 1e6, delta 1e-12 to 1e-4, epsilon .01 to 40 (where a
figure is of use). A case that dp-accounting (PLD, its defaults) does not finish within the limit counts
with the limit. One warm-up call of each comes first. Our results are kept by cases, so each is new.

*Equal accuracy* (`--equal` cases with epsilon from .001 to 10): both libraries are brought to an error of 1e-3 of the
exact epsilon, which is known from the certified bracket. The interval of dp-accounting starts at its default, 1e-4, and
is divided by four until its figure is that good; only the run with the first that is counts. With `--widest 1e-2` it
starts from there: as if one knew beforehand how coarse it may be. The accuracy that skdp aims at, 1e-3 as in searches
for the noise, is divided by four likewise; its default, 2e-6, stands beside it.

*Compositions* (`--compositions`, alone): those of the tests (`tests/accounting_exact.py`), of plain and sampled
Gaussians, Laplace, randomized response and (epsilon, delta) events. How far a cost is above the certified lower end
says how far it may be above the exact value; the slow tests of `test_exact_costs.py` compare with that itself.
"""

from __future__ import annotations

import argparse
import math
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from skdp.accounting import (
    DpEvent,
    GaussianDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
    calibrate_noise_multiplier,
    get_epsilon,
    get_epsilon_bounds,
)
from skdp.accounting.methods import rough_epsilon

Case = tuple[float, float, int, float]


def dpsgd(q: float, sigma: float, steps: int) -> DpEvent:
    return SelfComposedDpEvent(PoissonSampledDpEvent(q, GaussianDpEvent(sigma)), steps)


def drawn(number: int, seed: int) -> list[Case]:
    """Cases by the coarse Rényi cost, which leaves the caches of what is timed cold."""
    rng, cases = np.random.default_rng(seed), []
    while len(cases) < number:
        q, sigma = 10 ** rng.uniform(-5, 0), 10 ** rng.uniform(math.log10(0.3), 2)
        steps, delta = int(10 ** rng.uniform(0, 6)), 10 ** rng.uniform(-12, -4)
        if 0.02 < get_epsilon(dpsgd(q, sigma, steps), delta, method="rdp") < 40:
            cases.append((q, sigma, steps, delta))
    return cases


class _TooLong(Exception):
    pass


@contextmanager
def _within(seconds: int) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def timed(work: Callable[[], Any], limit: int = 600) -> tuple[Any, float]:
    """Result and seconds; None and the limit where it takes longer."""
    start = time.perf_counter()
    try:
        with _within(limit):
            found = work()
    except _TooLong:
        return None, float(limit)
    return found, time.perf_counter() - start


def peer() -> tuple[Callable[[float, float, int, float], float], Callable[[float, int, float, float], float]]:
    """dp-accounting's epsilon and calibration."""
    import dp_accounting as dpa
    from dp_accounting import pld

    def event(q: float, sigma: float, steps: int) -> Any:
        return dpa.SelfComposedDpEvent(dpa.PoissonSampledDpEvent(q, dpa.GaussianDpEvent(sigma)), steps)

    def epsilon(q: float, sigma: float, steps: int, delta: float) -> float:
        return float(pld.PLDAccountant().compose(event(q, sigma, steps)).get_epsilon(delta))

    def calibrate(q: float, steps: int, goal: float, delta: float) -> float:
        bracket = dpa.LowerEndpointAndGuess(0.0, 1.0)
        made = dpa.calibrate_dp_mechanism(
            pld.PLDAccountant, lambda s: event(q, s, steps), goal, delta, bracket_interval=bracket, tol=1e-3
        )
        return float(made)

    return epsilon, calibrate


ERROR = 1e-3  # of the exact epsilon
DEFAULT, FINEST = 1e-4, 1e-7  # intervals of dp-accounting


def drawn_by_epsilon(number: int, seed: int) -> list[Case]:
    """Cases of 1 to 1e5 steps with an epsilon that is uniform in its logarithm from .001 to 10."""
    rng, cases = np.random.default_rng(seed), []
    while len(cases) < number:
        goal, delta = 10 ** rng.uniform(-3, 1), 10 ** rng.uniform(-12, -4)
        q, steps = 10 ** rng.uniform(-4, 0), int(10 ** rng.uniform(0, 5))
        sigma = calibrate_noise_multiplier(lambda s, q=q, n=steps: dpsgd(q, s, n), goal, delta, method="rdp")
        if 0.3 <= sigma <= 1000:
            cases.append((q, sigma, steps, delta))
    return cases


def their_epsilon_at(case: Case, interval: float, limit: int) -> tuple[float, float]:
    """dp-accounting's epsilon with a grid of that interval, and seconds; infinite where it takes longer."""
    import dp_accounting as dpa
    from dp_accounting import pld

    q, sigma, steps, delta = case
    event = dpa.SelfComposedDpEvent(dpa.PoissonSampledDpEvent(q, dpa.GaussianDpEvent(sigma)), steps)

    def work() -> float:
        accountant = pld.PLDAccountant(value_discretization_interval=interval)
        return float(accountant.compose(event).get_epsilon(delta))

    found, seconds = timed(work, limit)
    return (math.inf if found is None else found), seconds


def refined(cost: Callable[[float], tuple[float, float]], first: float, last: float, exact: float) -> Any:
    """The first figure and seconds that `cost` gives within `ERROR` of `exact`, and how fine it was; else the last."""
    fineness = first
    found, seconds = cost(fineness)
    while not abs(found / exact - 1.0) <= ERROR and math.isfinite(found) and fineness / 4.0 > last:
        fineness /= 4.0
        found, seconds = cost(fineness)
    return found, seconds, fineness


def compare_at_equal_accuracy(cases: list[Case], limit: int, widest: float) -> None:
    """Seconds of both to an error of `ERROR`, and of dp-accounting at its default interval."""
    faster, slower, defaults, missed = [], [], [], 0
    for case in cases:
        event, delta = dpsgd(*case[:3]), case[3]
        at_best, best_seconds = timed(lambda e=event, d=delta: get_epsilon(e, d))
        low, high = get_epsilon_bounds(event, delta)
        exact = 0.5 * (low + high)
        assert at_best >= low

        def ours_at(accuracy: float, event: DpEvent = event, delta: float = delta) -> tuple[float, float]:
            options = {"method": "pld", "adjacency": "zero_out", "accuracy": accuracy}
            return timed(lambda: rough_epsilon(event, delta, **options))

        ours, seconds, _ = refined(ours_at, ERROR, 2e-6, exact)
        missed += not abs(ours / exact - 1.0) <= ERROR
        at_default, default_seconds = their_epsilon_at(case, DEFAULT, limit)
        theirs, their_seconds, interval = refined(
            lambda width, c=case: their_epsilon_at(c, width, limit), widest, FINEST, exact
        )
        faster.append(their_seconds / seconds)
        slower.append(seconds / default_seconds)
        defaults.append(best_seconds / default_seconds)
        q, sigma, steps, _ = case
        print(
            f"q={q:.2g} sigma={sigma:.3g} T={steps} delta={delta:.0e}: epsilon {ours:.4g} in {1e3 * seconds:.1f} ms "
            f"({1e3 * best_seconds:.1f} ms by default); dp-accounting {theirs:.4g} in {1e3 * their_seconds:.0f} ms "
            f"(interval {interval:.1e}), by default {at_default:.4g} in {1e3 * default_seconds:.0f} ms",
            flush=True,
        )
    print(
        f"equal accuracy: {statistics.median(faster):.1f} times as fast in the median, least {min(faster):.2f}; "
        f"at most {max(slower):.2f} times the time of its default grid; {missed} of ours off by more than {ERROR}\n"
        f"both by default: {1.0 / statistics.median(defaults):.1f} times as fast in the median, at most "
        f"{max(defaults):.2f} times its time"
    )


def print_compositions(number: int, seed: int) -> None:
    """Prices of drawn compositions beside their certified lower ends and their Rényi costs, by delta."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
    from accounting_exact import drawn as drawn_compositions
    from accounting_exact import event_of

    found = []
    for case in drawn_compositions(number, seed=seed):
        event, options = event_of(case.parts), {"adjacency": case.adjacency}
        cost, seconds = timed(lambda e=event, d=case.delta, o=options: get_epsilon(e, d, **o))
        low, high = get_epsilon_bounds(event, case.delta, **options)
        renyi = get_epsilon(event, case.delta, method="rdp", **options)
        gap = 0.0 if high - low <= 1e-5 else (high - low) / high
        found.append((case.delta, gap, cost > renyi * (1.0 + 1e-6), seconds))
    print(
        f"{'delta':<16} {'cases':>6} {'gap, median':>12} {'99 in 100':>10} {'<= .1 %':>8} {'above Rényi':>12} {'ms':>6}"
    )
    for low, high in ((0.0, 1.0), (1e-5, 1.0), (1e-10, 1e-5), (0.0, 1e-10)):
        _, gaps, dearer, seconds = np.array([each for each in found if low <= each[0] < high]).T
        name = "all" if (low, high) == (0.0, 1.0) else f"{low:g} to {high:g}"
        print(
            f"{name:<16} {len(gaps):6d} {np.median(gaps):12.1e} {np.quantile(gaps, 0.99):10.1e} "
            f"{np.mean(gaps <= 1e-3):8.1%} {int(dearer.sum()):12d} {1e3 * np.median(seconds):6.1f}"
        )


def report(name: str, ours: list[float], theirs: list[float]) -> None:
    line = f"{name}: median {1e3 * statistics.median(ours):.1f} ms, longest {1e3 * max(ours):.0f} ms"
    if theirs:
        line += f"; dp-accounting {1e3 * statistics.median(theirs):.0f} ms; total {sum(theirs) / sum(ours):.1f} times"
    print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("cases", 40), ("calibrations", 10), ("seed", 1), ("limit", 60), ("equal", 40)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--widest", type=float, default=DEFAULT)
    parser.add_argument("--only-equal", action="store_true", help="the comparison at equal accuracy alone")
    parser.add_argument("--compositions", type=int, default=0, help="draw so many and print their costs' accuracy")
    asked = parser.parse_args()
    if asked.compositions:
        print_compositions(asked.compositions, asked.seed)
        return
    try:
        their_epsilon, their_noise = peer()
    except ImportError:
        sys.exit("dp-accounting is not installed: pip install dp-accounting==0.6.0")
    warm = (0.0123, 1.7, 321, 3e-6)
    get_epsilon_bounds(dpsgd(*warm[:3]), warm[3])
    their_epsilon(*warm)
    compare_at_equal_accuracy(drawn_by_epsilon(asked.equal, asked.seed), asked.limit, asked.widest)
    if asked.only_equal:
        return
    cases = drawn(asked.cases, asked.seed)

    ours, theirs, gaps = [], [], []
    for q, sigma, steps, delta in cases:
        found, seconds = timed(lambda q=q, s=sigma, n=steps, d=delta: get_epsilon(dpsgd(q, s, n), d))
        other, their_seconds = timed(lambda case=(q, sigma, steps, delta): their_epsilon(*case), asked.limit)
        ours.append(seconds)
        theirs.append(their_seconds)
        if other is not None and other < math.inf:
            gaps.append((found - other) / other if found > other + 1e-4 else 0.0)
    report("get_epsilon", ours, theirs)
    print(f"largest relative excess over dp-accounting beyond 1e-4: {max(gaps, default=0.0):.2e}", flush=True)

    seconds, widths = [], []
    for q, sigma, steps, delta in cases:
        (low, high), spent = timed(lambda q=q, s=sigma, n=steps, d=delta: get_epsilon_bounds(dpsgd(q, s, n), d))
        seconds.append(spent)
        widths.append((high - low) / high)
    report("get_epsilon_bounds", seconds, [])
    share = sum(width <= 1e-3 for width in widths) / len(widths)
    print(f"certified gap: median {statistics.median(widths):.1e}, largest {max(widths):.1e}, <= 1e-3 in {share:.0%}")

    rng = np.random.default_rng(asked.seed + 1)
    ours, theirs = [], []
    for _ in range(asked.calibrations):
        q, steps = 10 ** rng.uniform(-3.5, -0.3), int(10 ** rng.uniform(1.5, 4.5))
        goal, delta = 10 ** rng.uniform(-0.5, 0.9), 10 ** rng.uniform(-9, -5)
        event = lambda s, q=q, n=steps: dpsgd(q, s, n)  # noqa: E731
        ours.append(timed(lambda e=event, g=goal, d=delta: calibrate_noise_multiplier(e, g, d))[1])
        theirs.append(timed(lambda c=(q, steps, goal, delta): their_noise(*c), asked.limit)[1])
    report("calibration", ours, theirs)


if __name__ == "__main__":
    main()
