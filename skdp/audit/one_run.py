"""One-run audits: guesses, from one fit, which of many canaries are in it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy import special, stats
from sklearn.base import clone

from skdp._checks.parameters import check_choice, check_real
from skdp._typing import Doubles
from skdp.accounting import GaussianDpEvent, get_epsilon
from skdp.accounting.formulas.numeric import bisect
from skdp.audit.attack import Attack
from skdp.audit.checks import LEVEL
from skdp.linear_model.logistic import DPLogisticRegression
from skdp.mechanisms.streams import SecretStream
from skdp.mechanisms.tape import Numbers, Tape, Track, running

_CANARIES = 100_000
_AGAINST = 3  # rows of each canary's column that contradict it, so that its gradient reaches the clip in all steps
_LEAST_CANARIES = 64
_MOST_EPSILON, _MOST_MU = 100.0, 30.0


def one_run_epsilon(
    included: Any, scores: Any, delta: float, *, confidence: float = 0.95, trade_off: str = "any"
) -> float:
    """Lower bound of epsilon from guesses which of many canaries were in one fit.

    Parameters
    ----------
    included : array-like of bool, shape (n_canaries,)
        Whether each canary was in the fit, by fair coins that nobody else has seen.
    scores : array-like of shape (n_canaries,)
        Any function of what was released. Guessed to be in are those with the highest scores, and to be out those with
        the lowest.
    delta : float
        In (0, 1).
    confidence : float, default=0.95
        Probability at which the bound holds.
    trade_off : {"any", "gaussian"}, default="any"
        ``"any"`` assumes nothing. ``"gaussian"`` asks which Gaussian mechanism could have been guessed that well, and
        is a bound where the claim is one of Gaussian noise.

    Returns
    -------
    float
        Epsilon, in nats; 0 if nothing is excluded.

    Notes
    -----
    With m canaries, of which r are guessed and v of these rightly, no (epsilon, delta)-private fit gives so many but
    with probability beta + 2 m delta alpha, beta = P[B >= v] and alpha = max over i of P[v - i <= B < v] / i, for B
    binomial of r and 1 / (1 + exp(-epsilon)) (Steinke, Nasr & Jagielski 2023, corollary 5.4). For a trade-off function
    let r_v = t v / m and h_v = t (r - v) / m, h_i = max(h_(i+1), g(r_(i+1))) and r_i = r_(i+1) + i / (r - i) (h_i -
    h_(i+1)), where g(x) = Phi(Phi^-1(x) - mu) for the Gaussian mechanism; it is refuted at level t if r_0 + h_0 > r / m
    (Mahloujifar, Melis & Chaudhuri 2025, algorithm 3). Two numbers of guesses are tried, 4 sqrt(m) and m / 4, each at
    half of the level: the first is near the best one for Gaussian noise that is priced at 1 to 8, the second finds
    what moves scores of all canaries a little.

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
    check_choice("trade_off", trade_off, ("any", "gaussian"))
    check_real("confidence", confidence, above=0, below=1, remedy="choose a probability such as 0.95")
    delta = check_real("delta", delta, above=0, below=1, remedy="give that of the claim")
    coins, values = np.asarray(included).astype(bool).ravel(), np.asarray(scores, np.float64).ravel()
    if coins.shape != values.shape or len(coins) < _LEAST_CANARIES or np.isnan(values).any():
        raise ValueError(
            f"included and scores need one entry for each of at least {_LEAST_CANARIES} canaries, and no NaN."
        )
    guesses = list(_guesses(coins, values))
    level = (1.0 - confidence) / len(guesses)
    if trade_off == "any":
        return _largest(
            guesses, lambda r, v, epsilon: _p_value(len(coins), r, v, epsilon, delta) < level, _MOST_EPSILON
        )
    mu = _largest(guesses, lambda r, v, mu: _refuted(len(coins), r, v, mu, level), _MOST_MU)
    return get_epsilon(GaussianDpEvent(1.0 / mu), delta) if mu else 0.0


def _guesses(coins: NDArray[np.bool_], scores: Doubles) -> Iterator[tuple[int, int]]:
    """How many guesses are made, and how many of them are right."""
    order, n = np.argsort(scores, kind="stable"), len(coins)
    for half in sorted({min(math.isqrt(4 * n), n // 2), n // 8}):
        yield 2 * half, int(coins[order[n - half :]].sum() + (~coins[order[:half]]).sum())


def _largest(guesses: list[tuple[int, int]], refuted: Callable[[int, int, float], bool], most: float) -> float:
    """The largest value that some number of guesses refutes."""
    found = 0.0
    for r, v in guesses:
        if refuted(r, v, max(found, 1e-3)):
            found = bisect(partial(refuted, r, v), max(found, 1e-3), most, relative=1e-4)[0]
    return found


def _p_value(m: int, r: int, v: int, epsilon: float, delta: float) -> float:
    """Probability that a fit of this epsilon and delta gives v right ones of r guesses, at most."""
    law = stats.binom(r, special.expit(epsilon))
    below = np.cumsum(law.pmf(np.arange(v - 1, -1, -1)))  # P[v - i <= B < v] for i = 1, 2, ..., v
    alpha = float((below / np.arange(1, v + 1)).max()) if v else 0.0
    return min(1.0, float(law.sf(v - 1)) + 2.0 * m * delta * alpha)


def _refuted(m: int, n_guesses: int, v: int, mu: float, level: float) -> bool:
    """Whether v right ones of these guesses are too many for a Gaussian mechanism of shift mu."""
    right, wrong = level * v / m, level * (n_guesses - v) / m
    for i in range(v - 1, -1, -1):
        more = float(special.ndtr(special.ndtri(right) - mu))
        if more <= wrong:
            break  # neither changes any more
        right, wrong = min(1.0, right + i / (n_guesses - i) * (more - wrong)), more
    return right + wrong > n_guesses / m


# --- one fit with canaries ---


class _Sums(Track):
    """A track that keeps the sum of what was released, each in units of its own variance, and nothing exact."""

    total: Any = 0.0

    def release(self, mechanism: Any, exact: Numbers, noisy: Numbers) -> Numbers:
        """See `Track`."""
        if np.ndim(self.total) == 0 or self.total.shape == noisy.shape:
            self.total = self.total + noisy / (mechanism.noise_multiplier * mechanism.sensitivity) ** 2
        return noisy


def one_run(estimator: Any, X: Any, y: Any, groups: Any, confidence: float, seed: int) -> Attack:
    """Fit once, with canaries that have a column each, and guess them from the releases and from `coef_`.

    The noise is secret and the fit is charged. Coins are seeded without `X`, and secret with it.
    """
    if groups is not None or not isinstance(estimator, DPLogisticRegression) or estimator.classes is None:
        raise ValueError(
            f"method='one_run' with {type(estimator).__name__}: it takes DPLogisticRegression(classes=[...]) without "
            "groups; use method='replay'."
        )
    stream = SecretStream.from_random_state(seed if X is None else None)
    coins = (stream.words(_CANARIES) & np.uint64(1)).astype(bool)
    rows, labels, signs = _with_canaries(estimator, X, y)
    n_others = rows.shape[0] - _CANARIES
    kept = np.concatenate([np.ones(n_others, bool), coins])
    model, tape = clone(estimator), Tape(track_type=_Sums)
    if model.n_samples_public is None:
        model.set_params(n_samples_public=n_others + _CANARIES // 2)
    with running(tape):
        model.fit(rows[kept], labels[kept])
    sums = [track.total for track in tape.tracks if isinstance(track, _Sums)]
    released = next(total for total in sums if np.size(total) > _CANARIES)
    columns = slice(rows.shape[1] - _CANARIES, rows.shape[1])
    white, black = -signs * np.ravel(released)[columns], signs * np.ravel(model.coef_)[columns]
    return _read(model, coins, white, black, confidence)


def _with_canaries(estimator: DPLogisticRegression, X: Any, y: Any) -> tuple[Any, NDArray[Any], Any]:
    """Rows and labels, those of the canaries at the end, and to which side the label of each canary pulls.

    Rows of the other label stand in the column of each canary, whoever is in: like those of `worst_case` they keep the
    model from learning it, so that it moves each sum by about the whole clip.
    """
    labels, numbers = np.asarray(estimator.classes)[:2], np.arange(_CANARIES) % 2
    width = (0 if X is None else X.shape[1]) + _CANARIES
    norm = math.sqrt(width) if estimator.data_norm is None else float(estimator.data_norm)
    rows = sp.vstack([sp.identity(_CANARIES, format="csr") * norm] * (_AGAINST + 1), format="csr")
    targets = np.concatenate([*[labels[1 - numbers]] * _AGAINST, labels[numbers]])
    if X is not None:
        rows, targets = sp.block_diag([sp.csr_matrix(X), rows], format="csr"), np.concatenate([np.asarray(y), targets])
    return rows, targets, 2.0 * numbers - 1.0


def _read(model: Any, coins: NDArray[np.bool_], white: Doubles, black: Doubles, confidence: float) -> Attack:
    """What releases and coefficients tell of the coins."""
    bound = partial(one_run_epsilon, coins, delta=model.delta_)
    seen = {"releases": white, "coef_": black}
    bounds = {
        f"{'nothing is assumed' if law == 'any' else 'the trade-off is Gaussian'} ({name})": bound(
            scores, confidence=confidence, trade_off=law
        )
        for law in ("any", "gaussian")
        for name, scores in seen.items()
    }
    return Attack(model, bounds, bound(white, confidence=1.0 - LEVEL), 1)


__all__ = ["one_run", "one_run_epsilon"]
