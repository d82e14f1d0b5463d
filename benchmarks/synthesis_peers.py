"""Synthetic tables of other libraries, for bench_synthesis.py, which runs this file in their environments.

    python benchmarks/synthesis_peers.py PEER SOURCE TARGET EPSILON DELTA

SOURCE is an ``.npz`` file with rows of codes and the number of levels of each column, TARGET will have as many rows.

The package mbi has graphical models and their estimation, and leaves mechanisms to its users. MST (McKenna, Miklau &
Sheldon 2021, "Winning the NIST contest") and AIM (McKenna, Mullins, Sheldon & Miklau 2022, "AIM: an adaptive and
iterative mechanism") are written here on top of it, from the papers: they are what mbi makes of them, on the same bins.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int64]
Clique = tuple[str, ...]

MODEL_MB = 1.0
"""Largest graphical model of AIM, in megabytes. The paper has 80, with which a fit takes hours."""
ITERATIONS = {"mst": 5000, "aim": 1000, "dpmm, aim": 200}
"""Steps of mirror descent of an estimate; dpmm starts each round of AIM from the last one."""
ROUNDS = {"aim": 16, "dpmm, aim": 4}
"""Rounds of AIM for a column, at first. The paper has 16; 1000 steps of dpmm take 16 CPU seconds a round."""
RARE = 3.0
"""MST merges the values of a column whose noisy count is below so many standard deviations of the noise."""
MEASURED = 0.9
"""Part of a round of AIM for the measurement; the rest is for the choice of what is measured."""


# --- smartnoise-synth -------------------------------------------------------------------------------------------------


def smartnoise(name: str, drawn: bool = False) -> Callable[..., Codes]:
    """A synthesizer of smartnoise-synth; `drawn` draws rows one by one, which mbi 1.1 does not by default."""

    def make(rows: Codes, _: list[int], epsilon: float, delta: float) -> Codes:
        import pandas as pd
        from mbi import MarkovRandomField
        from snsynth import Synthesizer

        if drawn:
            rounded = MarkovRandomField.synthetic_data
            MarkovRandomField.synthetic_data = lambda self, rows=None: rounded(self, rows, "sample")
        frame = pd.DataFrame(rows, columns=[f"c{j}" for j in range(rows.shape[1])])
        made = Synthesizer.create(name, epsilon=epsilon, delta=delta).fit_sample(
            frame, categorical_columns=list(frame.columns), preprocessor_eps=0.0
        )
        return made.to_numpy().astype(int)

    return make


# --- dpmm -------------------------------------------------------------------------------------------------------------


def dpmm(name: str) -> Callable[..., Codes]:
    """A synthesizer of dpmm, which has an older estimation of mbi and the authors' MST and AIM; models as above."""

    def make(rows: Codes, levels: list[int], epsilon: float, delta: float) -> Codes:
        import pandas as pd
        from dpmm.models.aim import AIMGM
        from dpmm.models.mst import MSTGM

        frame = pd.DataFrame(rows, columns=[f"c{j}" for j in range(rows.shape[1])])
        sizes = dict(zip(frame.columns, levels, strict=True))
        given: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "domain": sizes, "n_jobs": 1}
        limits = {"max_model_size": MODEL_MB, "n_iters": ITERATIONS["dpmm, aim"]}
        limits["rounds"] = ROUNDS["dpmm, aim"] * len(levels)
        model = AIMGM(**given, **limits) if name == "aim" else MSTGM(**given)
        model.fit(frame)
        return model.generate(n_records=len(rows))[frame.columns].to_numpy().astype(int)

    return make


# --- mbi --------------------------------------------------------------------------------------------------------------


def rho_of(epsilon: float, delta: float) -> float:
    """The largest rho whose zero-concentrated privacy has this epsilon and delta (Canonne, Kamath & Steinke 2020)."""
    from scipy.optimize import brentq, minimize_scalar

    def log_delta(rho: float) -> float:
        def at(log_order: float) -> float:
            a = 1 + math.exp(log_order)
            return (a - 1) * (a * rho - epsilon) + a * math.log1p(-1 / a) - math.log(a - 1)

        return float(minimize_scalar(at, bounds=(-10, 15), method="bounded").fun)

    return float(brentq(lambda rho: log_delta(rho) - math.log(delta), 1e-12, epsilon + 1))


def dataset(rows: Codes, levels: Iterable[int]) -> Any:
    """The rows as mbi has them."""
    import mbi

    names = [f"c{j}" for j in range(rows.shape[1])]
    return mbi.Dataset(dict(zip(names, rows.T, strict=True)), mbi.Domain(names, levels))


def rows_of(data: Any) -> Codes:
    return np.column_stack([data.to_dict()[name] for name in sorted(data.domain, key=lambda name: int(name[1:]))])


def counts(data: Any, clique: Clique) -> NDArray[Any]:
    return np.asarray(data.project(clique).datavector(), dtype=float)


def measure(data: Any, cliques: list[Clique], sigma: float, rng: np.random.Generator) -> list[Any]:
    """Noisy counts of some marginals, each with noise of this standard deviation."""
    import mbi

    noisy = ((each, counts(data, each)) for each in cliques)
    return [mbi.LinearMeasurement(x + rng.normal(0, sigma, x.size), each, sigma) for each, x in noisy]


def estimate(data: Any, measurements: list[Any], iterations: int, start: Any = None) -> Any:
    """A graphical model of the measurements; the number of rows is public here, as it is for skdp."""
    from mbi import estimation

    given = {"known_total": float(data.records), "iters": iterations, "warm_start": start}
    return estimation.MirrorDescent().estimate(data.domain, measurements, **given)


def choose(scores: NDArray[Any], epsilon: float, sensitivity: float, rng: np.random.Generator) -> int:
    """The exponential mechanism."""
    logits = 0.5 * epsilon / sensitivity * (scores - scores.max())
    weights = np.exp(logits)
    return int(rng.choice(len(scores), p=weights / weights.sum()))


def mst(rows: Codes, levels: list[int], epsilon: float, delta: float) -> Codes:
    """Single columns, a spanning tree of pairs, and the pairs: a third of rho for each."""
    rng, rho = np.random.default_rng(), rho_of(epsilon, delta)
    data = dataset(rows, levels)
    columns = [(name,) for name in data.domain]
    sigma = math.sqrt(3 * len(columns) / (2 * rho))
    ones = measure(data, columns, sigma, rng)
    merged = {each.clique[0]: _merge(np.asarray(each.noisy_measurement), sigma) for each in ones}
    domain, data = data.domain, data.compress(merged)
    ones = [each.compress(merged, domain) for each in ones]
    edges = _tree(data, ones, rho / 3, rng)
    pairs = measure(data, edges, math.sqrt(3 * len(edges) / (2 * rho)), rng)
    model = estimate(data, ones + pairs, ITERATIONS["mst"])
    return rows_of(model.synthetic_data(rows=len(rows)).decompress(merged))


def _merge(noisy: NDArray[Any], sigma: float) -> NDArray[np.int64]:
    """Where each value goes: rare ones share the last place."""
    common = noisy >= RARE * sigma
    return np.where(common, np.cumsum(common) - 1, common.sum())


def _tree(data: Any, ones: list[Any], rho: float, rng: np.random.Generator) -> list[Clique]:
    """A spanning tree, edge by edge, of pairs that are far from independent."""
    model = estimate(data, ones, ITERATIONS["aim"])
    single = {name: np.asarray(model.project((name,)).datavector()) / data.records for name in data.domain}
    scores = {
        (a, b): np.abs(counts(data, (a, b)) - data.records * np.outer(single[a], single[b]).ravel()).sum()
        for a, b in itertools.combinations(data.domain, 2)
    }
    part = {name: name for name in data.domain}
    edges: list[Clique] = []
    while len(edges) < len(part) - 1:
        open_ones = [(a, b) for a, b in scores if part[a] != part[b]]
        epsilon = math.sqrt(8 * rho / (len(part) - 1))
        a, b = open_ones[choose(np.array([scores[each] for each in open_ones]), epsilon, 1.0, rng)]
        edges.append((a, b))
        part = {name: part[a] if of == part[b] else of for name, of in part.items()}
    return edges


def aim(rows: Codes, levels: list[int], epsilon: float, delta: float) -> Codes:
    """Columns, and then, pair by pair, what the model has least right; all pairs are the workload."""
    from mbi import junction_tree

    rng, rho = np.random.default_rng(), rho_of(epsilon, delta)
    data = dataset(rows, levels)
    columns = [(name,) for name in data.domain]
    pairs = list(itertools.combinations(data.domain, 2))
    weights = {each: _overlap(each, pairs) for each in columns + pairs}
    rounds = ROUNDS["aim"] * len(columns)
    sigma, eps = math.sqrt(rounds / (2 * MEASURED * rho)), math.sqrt(8 * (1 - MEASURED) * rho / rounds)
    measurements = measure(data, columns, sigma, rng)
    spent = len(columns) / (2 * sigma**2)
    model, is_last = estimate(data, measurements, ITERATIONS["aim"]), False
    while not is_last:
        left = rho - spent
        if left < 2 * (1 / (2 * sigma**2) + eps**2 / 8):
            sigma, eps, is_last = math.sqrt(1 / (2 * MEASURED * left)), math.sqrt(8 * (1 - MEASURED) * left), True
        spent += 1 / (2 * sigma**2) + eps**2 / 8
        limit, taken = MODEL_MB * spent / rho, list(model.cliques)
        inside = {part for each in taken for k in (1, 2) for part in itertools.combinations(each, k)}
        fits = [
            each for each in weights
            if each in inside or junction_tree.hypothetical_model_size(data.domain, [*taken, each]) <= limit
        ]  # fmt: skip
        errors = [np.abs(counts(data, each) - counts(model, each)).sum() for each in fits]
        bias = [_mean_noise(sigma, data.domain.size(each)) for each in fits]
        scores = np.array([weights[each] * (e - b) for each, e, b in zip(fits, errors, bias, strict=True)])
        best = fits[choose(scores, eps, max(weights[each] for each in fits), rng)]
        before = counts(model, best)
        measurements += measure(data, [best], sigma, rng)
        model = estimate(data, measurements, ITERATIONS["aim"], model)
        if np.abs(counts(model, best) - before).sum() <= _mean_noise(sigma, before.size):
            sigma, eps = sigma / 2, 2 * eps
    return rows_of(model.synthetic_data(rows=len(rows)))


def _overlap(clique: Clique, workload: list[Clique]) -> int:
    return sum(len(set(clique) & set(each)) for each in workload)


def _mean_noise(sigma: float, cells: int) -> float:
    """Expected absolute sum of the noise in so many cells."""
    return math.sqrt(2 / math.pi) * sigma * cells


PEERS: dict[str, Callable[..., Codes]] = {
    "smartnoise-synth 1.0.8, mst": smartnoise("mst"),
    "smartnoise-synth 1.0.8, mst, rows drawn": smartnoise("mst", drawn=True),
    "smartnoise-synth 1.0.8, aim": smartnoise("aim"),
    "dpmm 0.1.9, mst": dpmm("mst"),
    "dpmm 0.1.9, aim, 4 rounds a column": dpmm("aim"),
    "mbi 2.0.0, mst": mst,
    "mbi 2.0.0, aim": aim,
}


def main() -> None:
    name, source, target, epsilon, delta = sys.argv[1:]
    found = np.load(source)
    made = PEERS[name](found["rows"], [int(each) for each in found["levels"]], float(epsilon), float(delta))
    np.savez(target, rows=made)


if __name__ == "__main__":
    main()
