"""One-run audits: guess from a single fit which of many canaries are in it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy import special, stats
from sklearn.base import clone

from skdp import accounting
from skdp._checks.parameters import check_choice, check_real
from skdp._checks.rows import check_labels, check_table
from skdp.accounting.formulas.numeric import bisect
from skdp.audit.checks import LEVEL
from skdp.audit.subjects import Attack
from skdp.linear_model.logistic import DPLogisticRegression
from skdp.mechanisms.release_log import RecordedLot, Track, Transcript, running
from skdp.mechanisms.streams import SecretStream

_CANARIES = 100_000
_SHARED = 0.1  # of the length of a canary lies in a column of all, so that its gradient reaches the clip in all steps
_SHORT = 0.1  # length of the rows that contradict canaries: gradients of longer ones are clipped or vanish too early
_OTHERS = 2  # of these rows for each canary: of one, many canaries are likely by the noise of their own columns
_LEAST_CANARIES = 64
_MOST_EPSILON, _MOST_MU = 100.0, 30.0
_MOST_EXPONENT = 500.0  # whose exponential is a number


def one_run_epsilon(
    included: Any,
    scores: Any,
    delta: float,
    *,
    confidence: float = 0.95,
    trade_off: str | Callable[[float], accounting.DpEvent] = "any",
) -> float:
    """Compute a lower bound on epsilon from a single fit with many canaries.

    Parameters
    ----------
    included : array-like of bool, shape (n_canaries,)
        Whether each canary was in the fit, drawn with probability 1/2 each and kept secret.
    scores : array-like of shape (n_canaries,)
        Any function of the releases. The canaries with the highest scores are guessed to be included, those with the
        lowest scores to be excluded.
    delta : float
        Delta of the claim, in (0, 1).
    confidence : float, default=0.95
        Confidence level of the bound.
    trade_off : {"any", "gaussian"} or callable, default="any"
        Family of mechanisms to which the fit belongs. "any" makes no assumption. A callable maps a noise multiplier to
        an event, as for `skdp.accounting.calibrate_noise_multiplier`; the bound then holds if the fit is such an event.
        "gaussian" is short for ``GaussianDpEvent``.

    Returns
    -------
    float
        Lower bound on epsilon, in nats; 0 if no epsilon is excluded.

    Notes
    -----
    Let m be the number of canaries, r the number of guesses and v the number of correct guesses. For an (epsilon,
    delta)-private fit, v correct guesses have probability at most beta + 2 m delta alpha. Here B is binomial with r
    trials and success probability 1 / (1 + exp(-epsilon)), beta = P[B >= v], and alpha is the maximum over i of
    P[v - i <= B < v] / i (Steinke, Nasr & Jagielski 2023, corollary 5.4).

    For a trade-off function f, let g(x) = f(1 - x), which is Phi(Phi^-1(x) - mu) for the Gaussian mechanism. Define r_v
    = t v / m, h_v = t (r - v) / m, h_i = max(h_(i+1), g(r_(i+1))) and r_i = r_(i+1) + i / (r - i) (h_i - h_(i+1)). Then
    f is rejected at level t if r_0 + h_0 > r / m (Mahloujifar, Melis & Chaudhuri 2025, algorithm 3). The trade-off
    function of an event is a certified, symmetric lower bound. Two numbers of guesses are tried, 4 sqrt(m) and m / 4,
    each at half of the level. The first is near the optimum for Gaussian noise with epsilon from 1 to 8. The second
    detects small changes in the scores of all canaries.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.audit import one_run_epsilon
    >>> rng = np.random.default_rng(0)
    >>> included = rng.random(10_000) < 0.5
    >>> scores = included + rng.normal(scale=0.5, size=10_000)
    >>> round(one_run_epsilon(included, scores, 1e-5), 1)
    3.8
    """
    if not callable(trade_off):
        check_choice("trade_off", trade_off, ("any", "gaussian"))
    check_real("confidence", confidence, above=0, below=1, constraint="a number in (0, 1), such as 0.95")
    delta = check_real("delta", delta, above=0, below=1, constraint="a number in (0, 1), the claimed delta")
    coins, values = np.asarray(included).astype(bool).ravel(), np.asarray(scores, np.float64).ravel()
    if coins.shape != values.shape or len(coins) < _LEAST_CANARIES or np.isnan(values).any():
        raise ValueError(
            f"`included` and `scores` must have one entry per canary, without NaN, for at least {_LEAST_CANARIES} "
            "canaries."
        )
    # Few guesses that are sure, and many: of each number, how many are right.
    order, n, guesses = np.argsort(values, kind="stable"), len(coins), []
    for half in sorted({min(math.isqrt(4 * n), n // 2), n // 8}):
        guesses.append((2 * half, int(coins[order[n - half :]].sum() + (~coins[order[:half]]).sum())))
    level = (1.0 - confidence) / len(guesses)
    if trade_off == "any":
        return _largest(guesses, lambda r, v, epsilon: _p_value(n, r, v, epsilon, delta) < level, _MOST_EPSILON)
    event_at = trade_off if callable(trade_off) else accounting.GaussianDpEvent
    mu = _largest(guesses, lambda r, v, mu: _refuted(n, r, v, _found_at(event_at(1.0 / mu)), level), _MOST_MU)
    return accounting.get_epsilon_bounds(event_at(1.0 / mu), delta)[0] if mu else 0.0


def _largest(guesses: list[tuple[int, int]], refuted: Callable[[int, int, float], bool], most: float) -> float:
    """The largest value that some number of guesses refutes."""
    found = 0.0
    for r, v in guesses:
        low = max(found, 1e-3)
        if refuted(r, v, low):
            while (high := min(4.0 * low, most)) < most and refuted(r, v, high):
                low = high  # far values take long
            found = bisect(partial(refuted, r, v), low, high, relative=1e-3)[0]
    return found


def _p_value(m: int, r: int, v: int, epsilon: float, delta: float) -> float:
    """Probability that a fit of this epsilon and delta gives v right ones of r guesses, at most."""
    law = stats.binom(r, special.expit(epsilon))
    below = np.cumsum(law.pmf(np.arange(v - 1, -1, -1)))  # P[v - i <= B < v] for i = 1, 2, ..., v
    alpha = float((below / np.arange(1, v + 1)).max()) if v else 0.0
    return min(1.0, float(law.sf(v - 1)) + 2.0 * m * delta * alpha)


def _refuted(m: int, n_guesses: int, v: int, found_at: Callable[[float], float], level: float) -> bool:
    """Whether v right ones of these guesses are too many for what `_found_at` returns."""
    right, wrong = level * v / m, level * (n_guesses - v) / m
    for i in range(v - 1, -1, -1):
        more = found_at(right)
        if more <= wrong:
            break  # neither changes any more
        right, wrong = min(1.0, right + i / (n_guesses - i) * (more - wrong)), more
    return right + wrong > n_guesses / m


def _found_at(event: accounting.DpEvent) -> Callable[[float], float]:
    """Return x -> f(1 - x) for the trade-off function f of an event.

    That of a profile is a polygon, symmetric, and its corners are where neighboring lines meet.
    """
    if isinstance(event, accounting.GaussianDpEvent):
        mu = 1.0 / event.noise_multiplier
        return lambda x: float(special.ndtr(special.ndtri(x) - mu))
    profile = accounting.PrivacyProfile(event)
    slopes = np.exp(profile.epsilons[profile.epsilons < _MOST_EXPONENT])
    corners = -np.diff(profile.deltas[: len(slopes)]) / np.diff(slopes)
    errors = np.concatenate([[0.0], corners])
    others = np.asarray(profile.trade_off(errors))
    ends, values = np.concatenate([errors, others]), np.concatenate([others, errors])
    order = np.argsort(-ends)
    return partial(np.interp, xp=1.0 - ends[order], fp=values[order])


# --- one fit with canaries ---


class Likelihoods(Track):
    """A track that records the likelihood ratio of each released number for each canary, and no exact value."""

    total: Any = 0.0

    def __init__(self, forced: Track | None = None) -> None:
        super().__init__(forced)
        self.seen: Counter[tuple[float, float]] = Counter()  # rates and noise multipliers

    def release(self, mechanism: Any, exact: np.ndarray, noisy: np.ndarray) -> np.ndarray:
        lot = self._lot_of_release()
        rate = 1.0 if lot is None else lot.rate
        if np.size(noisy) > _CANARIES:  # a step, and not counts of the classes
            moved = -(noisy / mechanism.sensitivity + 0.5) / mechanism.noise_multiplier**2
            self.total = self.total + np.log1p(rate * np.expm1(np.minimum(moved, _MOST_EXPONENT)))
            self.seen[rate, mechanism.noise_multiplier] += 1
        return noisy

    def event_at(self, scale: float) -> accounting.DpEvent:
        """Return the event of the releases, with the noise times `scale`."""
        steps = []
        for (rate, noise), count in self.seen.items():
            step = accounting.PoissonSampledDpEvent(rate, accounting.GaussianDpEvent(noise * scale))
            steps.append(accounting.SelfComposedDpEvent(step, count))
        return accounting.compose(steps)

    def _record_lot(self, lot: RecordedLot) -> None:
        self._waiting.append(lot)


def one_run(estimator: Any, X: Any, y: Any, groups: Any, confidence: float, seed: int) -> Attack:
    """Fit once, with canaries that have one column each, and guess them from the releases and from `coef_`."""
    if groups is not None or not isinstance(estimator, DPLogisticRegression) or estimator.classes is None:
        raise ValueError(
            "method='one_run' supports only DPLogisticRegression(classes=[...]) without groups, got "
            f"{type(estimator).__name__}. Use method='replay'."
        )
    if X is not None:
        X = check_table(clone(estimator), X, reset=True, sparse=True)
        y = check_labels(y, X.shape[0], classes=estimator.classes)
    elif y is not None:
        raise ValueError("`y` requires X. Pass X, or remove `y` to use simulated data.")
    # Coins say which canaries are in the fit. Their number is private, so the others need the add/remove adjacency.
    stream = SecretStream.from_random_state(seed if X is None else None, "audit")
    coins = (stream.words(_CANARIES) & np.uint64(1)).astype(bool)
    rows, labels = _with_canaries(estimator, X, y)
    n_others = rows.shape[0] - _CANARIES
    kept = np.concatenate([np.ones(n_others, bool), coins])
    model, transcript = clone(estimator), Transcript(track_type=Likelihoods)
    if model.adjacency in (None, "zero_out"):
        model.set_params(adjacency=accounting.AddRemove(n_others + _CANARIES // 2))
    # What the releases, and what the coefficients say of each canary's own column.
    with running(transcript):
        model.fit(rows[kept], labels[kept])
    recorded = next(
        each for each in transcript.tracks if isinstance(each, Likelihoods) and np.size(each.total) > _CANARIES
    )
    columns = slice(rows.shape[1] - _CANARIES, rows.shape[1])
    seen = {"releases": np.ravel(recorded.total)[columns], "coef_": np.ravel(model.coef_)[columns]}
    return _read(model, coins, seen, recorded, confidence)


def _with_canaries(estimator: DPLogisticRegression, X: Any, y: Any) -> tuple[Any, np.ndarray]:
    """Rows and labels, those of the canaries at the end.

    Each canary has a column of its own, and a small part in a column that more rows of the other label share. What the
    model learns of these, which no noise hides, keeps it from learning a canary: its gradient is clipped in every step,
    so that it moves the sum of its column by nearly the whole clip, and no other row moves that at all.
    """
    labels = np.asarray(estimator.classes)[:2]
    width = (0 if X is None else X.shape[1]) + 1 + _CANARIES
    norm = math.sqrt(width) if estimator.data_norm is None else float(estimator.data_norm)
    n_others, shared = _OTHERS * _CANARIES, sp.csr_matrix(np.full((_CANARIES, 1), norm))
    canaries = sp.hstack([_SHARED * shared, math.sqrt(1.0 - _SHARED**2) * norm * sp.identity(_CANARIES)])
    others = sp.csr_matrix((np.full(n_others, _SHORT * norm), np.zeros(n_others, int), np.arange(n_others + 1)))
    others.resize(n_others, 1 + _CANARIES)
    rows, targets = sp.vstack([others, canaries], format="csr"), np.repeat(labels, [n_others, _CANARIES])
    if X is not None:
        rows, targets = sp.block_diag([sp.csr_matrix(X), rows], format="csr"), np.concatenate([y, targets])
    return rows, targets


def _read(
    model: Any, coins: np.ndarray, seen: dict[str, np.ndarray], recorded: Likelihoods, confidence: float
) -> Attack:
    """What releases and coefficients tell of the coins."""
    bound = partial(one_run_epsilon, coins, delta=model.delta_)
    laws: dict[str, Any] = {
        "nothing is assumed": "any",
        "noise is normal, and lots have the stated rate": recorded.event_at,
    }
    bounds = {
        f"{assumed} ({name})": bound(scores, confidence=confidence, trade_off=law)
        for assumed, law in laws.items()
        for name, scores in seen.items()
    }
    return Attack(model, bounds, bound(seen["releases"], confidence=1.0 - LEVEL), 1)
