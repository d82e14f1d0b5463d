"""Rényi divergences of events other than the (Poisson-sampled) Gaussian: Laplace, pure, fixed-size samples, selection.

A moment A = E[e^{(alpha - 1) loss}] is computed as 1 plus non-negative terms, based on phi(x) = e^x - 1 - x, so that
small divergences keep their relative accuracy.

*From a pair* (`dominating`): log E_Q[(P / Q)^alpha] over its weighted losses, the larger of both directions. A pair
that dominates in every hockey-stick divergence also dominates in every Rényi divergence, because its moments are
mixtures of hockey-stick divergences. Unbounded losses are covered up to 14 standard deviations beyond the peak of the
integrand; the remainder is below e^-90 of the total.

*Discrete Gaussian*: alpha shift^2 / (2 s^2), as of the continuous one (Canonne, Kamath & Steinke 2020; restated and
proved here). For a shift of d, E_Q[(P/Q)^alpha] is e^{alpha (alpha-1) d^2 / (2 s^2)} times the sum of e^{-(x - alpha
d)^2 / (2 s^2)} over whole x, by that of e^{-x^2 / (2 s^2)}. The latter is the larger: as a function of the center the
sum is a Fourier series with coefficients above 0 (Poisson), largest at integers.

*Poisson-sampled Gaussian*, for records that are added, removed or replaced.

In units of the noise, with q the sampling probability and m = 1 / noise multiplier, the pairs (of `pld.pairs`) are

    remove    P = (1-q) N(0,1) + q N(m,1)   Q = N(0,1)
    replace   P = (1-q) N(0,1) + q N(m,1)   Q = (1-q) N(0,1) + q N(-m,1)

and with v = log(P / Q) the log moment is log A(alpha), A = E_Q[e^{alpha v}]; the divergence is log A / (alpha - 1).
The other direction of `remove` costs less (Mironov, Talwar & Zhang 2019), that of `replace` the same, as z -> -z
exchanges P and Q. As E_Q[e^v - 1] = 0,

    A - 1 = E_Q[e^{alpha v} - 1 - alpha (e^v - 1)],

a mean of non-negative terms, so small divergences are accurate. The proof that the pairs dominate is in `pld.pairs`.

The integrand is e^{-z^2 / 2} times a function that is analytic for |Im z| < pi / m, so the trapezoid rule converges
geometrically. On the log of P^alpha Q^{1-alpha} the slope lies between -z and c - z, where c = alpha m (remove) or
(2 alpha - 1) m (replace): what is cut off 12 beyond 0, -m and c is below e^-70 of the whole.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import gammaln

from skdp.accounting.events.kinds import name_of, sampled_form
from skdp.accounting.events.specifications import DiscreteGaussianDpEvent, DpEvent, EpsilonDeltaDpEvent
from skdp.accounting.formulas.dominating import LAWS, LossAtoms, dominating, pair_rejection
from skdp.accounting.formulas.gaussian import mixture_loss
from skdp.accounting.formulas.numeric import log_sum

_MAX_NODES = 1 << 16


def _phi(x: float) -> float:
    """e^x - 1 - x, to full relative accuracy."""
    if abs(x) > 0.5:
        return math.expm1(x) - x
    term, total = 0.5 * x * x, 0.0
    for k in range(3, 20):
        total += term
        term *= x / k
    return total


def log_factorial_rounding(order: float) -> float:
    """Bound on the rounding of log binomial coefficients of `order`, and of a sum over them: 16 units of log order!."""
    return 4e-15 * (order + 1.0) * (1.0 + math.log(order + 1.0))


def laplace_rdp(alpha: float, epsilon: float) -> float:
    """Rényi divergence of the Laplace mechanism (Mironov 2017, Proposition 6).

    Parameters
    ----------
    alpha : float
        Order, above 1.
    epsilon : float
        Sensitivity divided by the scale of the noise, above 0.

    Returns
    -------
    float
        log(alpha/(2 alpha - 1) e^{(alpha-1) epsilon} + (alpha-1)/(2 alpha - 1) e^{-alpha epsilon}) / (alpha - 1).
    """
    a = alpha - 1.0
    up, down = alpha / (2.0 * alpha - 1.0), a / (2.0 * alpha - 1.0)
    if a * epsilon > 30.0:
        return epsilon + math.log(up + down * math.exp(-(2.0 * alpha - 1.0) * epsilon)) / a
    # the two linear terms cancel: up (alpha - 1) = down alpha
    return math.log1p(up * _phi(a * epsilon) + down * _phi(-alpha * epsilon)) / a


def pure_rdp(alpha: float, epsilon: float) -> float:
    """Largest Rényi divergence of any epsilon-private mechanism: randomized response's.

    Its divergence is the bound of Bun & Steinke 2016, Proposition 3.3, before it is rounded to alpha epsilon^2 / 2.
    Restated and proved here: under Q the ratio of densities has mean 1 and lies from e^-epsilon to e^epsilon. Its
    power alpha is convex, so that its mean is largest if the ratio takes the two ends alone: randomized response.

    Parameters
    ----------
    alpha : float
        Order, above 1.
    epsilon : float
        At least 0.

    Returns
    -------
    float
        log(p e^{(alpha-1) epsilon} + (1-p) e^{-(alpha-1) epsilon}) / (alpha - 1), p = 1 / (1 + e^{-epsilon}).
    """
    x = (alpha - 1.0) * epsilon
    p = 1.0 / (1.0 + math.exp(-epsilon))
    if x > 30.0:
        return epsilon + math.log(p + (1.0 - p) * math.exp(-2.0 * x)) / (alpha - 1.0)
    return math.log1p(p * _phi(x) + (1.0 - p) * _phi(-x) + math.tanh(0.5 * epsilon) * x) / (alpha - 1.0)


@lru_cache(maxsize=1 << 13)
def _log_difference(order: int, mu: float) -> float:
    """log E_Q[(P/Q - 1)^order] for P = N(mu, 1), Q = N(0, 1) and an even order.

    The forward difference of Wang et al. 2019, Theorem 27, as the integral of a non-negative function
    instead of an alternating sum.
    """
    step = min(1.0 / 16.0, 0.4 / mu, 0.5 / math.sqrt(order))
    z = np.arange(-14.0, order * mu + 14.0, step)
    y = mu * z - 0.5 * mu * mu
    with np.errstate(divide="ignore", over="ignore"):
        log_size = np.where(y > 30.0, y, np.log(np.abs(np.expm1(np.minimum(y, 30.0)))))
    return log_sum(order * log_size - 0.5 * z * z, step) - 0.5 * math.log(2.0 * math.pi)


@lru_cache(maxsize=1 << 13)
def _log_moment_without_replacement(alpha: int, share: float, mu: float) -> float:
    """log A of a whole order, rounded up: Theorem 27 of Wang et al. 2019; its terms 0 and 1 are 1 and 0.

    Power by power the smaller of both bounds: those of high powers are needed for few of the records alone.
    """
    if alpha <= 1:
        return 0.0
    j = np.arange(2, alpha + 1)
    choose = gammaln(alpha + 1.0) - gammaln(j + 1.0) - gammaln(alpha - j + 1.0)
    bounds = math.log(2.0) + 0.5 * j * (j - 1.0) * mu * mu
    # differences up to the power 512, as the work grows as its square; the simpler bound beyond
    last = min(alpha, 512, int((_MAX_NODES / max(16.0, 2.5 * mu) - 28.0) / mu))
    if last >= 2:
        even = [_log_difference(2 * k, mu) for k in range(1, (last + 1) // 2 + 1)]
        pairs = [math.log(4.0) + 0.5 * (even[n // 2 - 1] + even[(n + 1) // 2 - 1]) for n in range(2, last + 1)]
        bounds[: last - 1] = np.minimum(bounds[: last - 1], pairs)
    return log1p_exp(log_sum(choose + j * math.log(share) + bounds) + log_factorial_rounding(alpha))


def without_replacement_rdp(alpha: float, share: float, mu: float) -> float:
    """Rényi divergence of a Gaussian on a sample of fixed size, one record replaced (Wang et al. 2019, Theorem 27).

    Parameters
    ----------
    alpha : float
        Order, above 1. Between whole orders the log moment is interpolated, which is an upper bound as it is
        convex (Corollary 10 there).
    share : float
        Sample size / source size, in (0, 1).
    mu : float
        Shift between neighbors in units of the noise; of *replaced* records, so 2 / noise_multiplier.

    Returns
    -------
    float
        In nats; never above that of the unsampled Gaussian.
    """
    unsampled = 0.5 * alpha * mu * mu
    if alpha > 1 << 16:  # too many terms
        return unsampled
    low, high = math.floor(alpha), math.ceil(alpha)
    value = _log_moment_without_replacement(high, share, mu)
    if low != high:
        below = _log_moment_without_replacement(low, share, mu)
        value = (high - alpha) * below + (alpha - low) * value
    return min(unsampled, value / (alpha - 1.0))


def log_poisson_delta(alpha: float, orders: np.ndarray, values: np.ndarray) -> float:
    """log delta of one run at epsilon = log(1 + 1 / (alpha - 1)), for Theorem 6 of Papernot & Steinke 2022.

    Parameters
    ----------
    alpha : float
        Order of the selection, above 1.
    orders, values : ndarray
        Orders, and the Rényi divergences of one run there.

    Returns
    -------
    float
        The best of the orders, and of total variation <= sqrt(1 - e^-KL) (Bretagnolle & Huber).
    """
    at = (orders - 1.0) * (values - math.log1p(1.0 / (alpha - 1.0)) + np.log1p(-1.0 / orders)) - np.log(orders)
    by_kl = 0.5 * math.log(-math.expm1(-max(float(values[0]), 1e-300)))
    return min(0.0, float(at.min()), by_kl)


def other_rejection(event: DpEvent) -> Exception | None:
    """Return why an event has no Rényi divergence for any adjacency, without a remedy; None if it has one."""
    inner = sampled_form(event)[2]
    if isinstance(inner, EpsilonDeltaDpEvent) and inner.delta > 0.0:
        return TypeError(f"event={name_of(event)} with delta > 0 has no Rényi divergence")
    wide = None if isinstance(event, DiscreteGaussianDpEvent) else pair_rejection(event)
    if wide is None and LAWS[type(inner)].order_shift(inner) == math.inf:
        wide = ""
    return None if wide is None else TypeError(f"event={name_of(event)}{wide} is not supported by Rényi accounting")


def _log_moment_of(atoms: LossAtoms, alpha: float) -> float:
    """log E_Q[(P / Q)^alpha]: E - 1 is the mean under Q of non-negative terms."""
    logs = log_excess(alpha, atoms.loss) + (atoms.log_weight - atoms.loss)
    total = log_sum(logs) if logs.max(initial=-math.inf) > -math.inf else -math.inf
    if atoms.missing > 0.0:  # where P has nothing the term is alpha - 1
        total = float(np.logaddexp(total, math.log(atoms.missing) + math.log(alpha - 1.0)))
    return log1p_exp(total)


@lru_cache(maxsize=1 << 13)
def _by_pair(event: DpEvent, alpha: float, replace_one: bool) -> float:
    inner = sampled_form(event)[2]
    shift, order = LAWS[type(inner)].order_shift(inner), 1.0
    if shift > 0.0:
        if (alpha - 1.0) * shift > 128.0:  # standard deviations
            return math.inf
        order = max(2.0, 1.0 + 2.0 ** math.ceil(math.log2(alpha - 1.0)))  # so that few grids are laid
    pairs = dominating(event, replace_one, order)
    # infinite loss has no divergence; mass of unbounded noise so far out that it was omitted does not count
    if max(pair.infinite for pair in pairs) > (1.001e-300 if shift > 0.0 else 0.0):
        return math.inf
    return max(_log_moment_of(pair, alpha) for pair in pairs) / (alpha - 1.0)


def other_rdp(event: DpEvent, alpha: float, replace_one: bool) -> float:
    """Rényi divergence of one release.

    Parameters
    ----------
    event : DpEvent
        In its simplest equal form, with a Rényi divergence.
    alpha : float
        Order, above 1.
    replace_one : bool
        Whether neighbors replace a record.

    Returns
    -------
    float
        In nats, rounded up; inf where the order is too large for it to be computed.
    """
    if isinstance(event, DiscreteGaussianDpEvent):
        shift = (2.0 if replace_one else 1.0) * event.sensitivity / event.standard_deviation
        return 0.5 * alpha * shift * shift
    return _by_pair(event, alpha, replace_one) * (1.0 + 1e-10)  # covers rounding


def log_excess(alpha: float, v: np.ndarray) -> np.ndarray:
    """Log of e^{alpha v} - 1 - alpha (e^v - 1), elementwise, -inf where it is 0."""
    w = alpha * v
    series, term = np.zeros_like(v), np.ones_like(v)
    small = np.abs(np.clip(v, -1.0, 1.0)) * alpha < 0.1
    vs = np.where(small, v, 0.0)
    for k in range(2, 11):
        term = vs ** (k - 2) / math.factorial(k)
        series = series + alpha * (alpha ** (k - 1) - 1.0) * term
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        log_small = 2.0 * np.log(np.abs(vs)) + np.log(series)
        direct = np.expm1(np.minimum(w, 600.0)) - alpha * np.expm1(np.minimum(v, 600.0))
        log_mid = np.log(np.maximum(direct, 0.0))
        ratio = np.exp(np.minimum(v - w, 0.0)) * alpha
        log_big = w + np.log1p(-np.minimum(ratio, 0.5))
    return np.where(small, log_small, np.where(w > 500.0, log_big, log_mid))


def log1p_exp(x: float) -> float:
    """log(1 + e^x)."""
    return x + math.log1p(math.exp(-x)) if x > 0.0 else math.log1p(math.exp(x))


def _last(alpha: float, m: float, replace_one: bool) -> float:
    """Beyond this z the integrand falls as a Gaussian does."""
    return (2.0 * alpha - 1.0) * m if replace_one else alpha * m


def _log_moment_integer(alpha: int, q: float, m: float) -> float:
    """log A for a whole order by the binomial series, rounded up; terms 0 and 1 drop out of A - 1."""
    k = np.arange(2, alpha + 1, dtype=float)
    exponent = 0.5 * k * (k - 1.0) * m * m
    log_grown = np.where(exponent < 30.0, np.log(np.expm1(np.minimum(exponent, 30.0))), exponent)
    choose = gammaln(alpha + 1.0) - gammaln(k + 1.0) - gammaln(alpha - k + 1.0)
    logs = choose + (alpha - k) * math.log1p(-q) + k * math.log(q) + log_grown
    return log1p_exp(log_sum(logs) + log_factorial_rounding(alpha))


def _log_moment_quadrature(alpha: float, q: float, m: float, replace_one: bool) -> float:
    """log A by the trapezoid rule."""
    step = min(1.0 / 16.0, 0.4 / m)
    z = np.arange(-12.0 - m * replace_one, _last(alpha, m, replace_one) + 12.0, step)
    loss, log_q = mixture_loss(q, m, z), -0.5 * z * z
    if replace_one:
        mirrored = mixture_loss(q, m, -z)
        loss, log_q = loss - mirrored, log_q + mirrored
    logs = log_excess(alpha, loss) + log_q
    if (top := float(logs.max())) == -math.inf:
        return 0.0
    return log1p_exp(top + (log_sum(logs - top, step) - 0.5 * math.log(2.0 * math.pi)))


def _by_removal(alpha: float, q: float, noise_multiplier: float) -> float:
    """Upper bound of log A of `replace`: Q >= (1 - q) N(0, 1); and sampling never costs (joint convexity)."""
    m = 2.0 / noise_multiplier
    removed = log_moment(alpha, q, noise_multiplier) - (alpha - 1.0) * math.log1p(-q)
    return min(removed, 0.5 * alpha * (alpha - 1.0) * m * m)


@lru_cache(maxsize=1 << 14)
def log_moment(alpha: float, q: float, noise_multiplier: float, *, replace_one: bool = False) -> float:
    """log A(alpha) of the Poisson-sampled Gaussian, the larger of its two directions.

    Parameters
    ----------
    alpha : float
        Order, above 1.
    q : float
        Sampling probability in (0, 1].
    noise_multiplier : float
        Above 0; standard deviation of the noise divided by the bound on one record's contribution.
    replace_one : bool
        Whether neighbors replace a record.

    Returns
    -------
    float
        In nats; an upper bound where the order is too large for the integral, inf where it has none.
    """
    m = 1.0 / noise_multiplier
    if q == 1.0:
        shift = 2.0 * m if replace_one else m
        return 0.5 * alpha * (alpha - 1.0) * shift * shift
    if (_last(alpha, m, replace_one) + m * replace_one + 24.0) * max(16.0, 2.5 * m) <= _MAX_NODES:
        return _log_moment_quadrature(alpha, q, m, replace_one)
    if replace_one:
        return _by_removal(alpha, q, noise_multiplier)
    if alpha > _MAX_NODES:
        return math.inf
    # log A is convex in the order: the chord between whole orders lies above it, and log A(1) = 0.
    low, high = math.floor(alpha), math.ceil(alpha)
    at_high = _log_moment_integer(high, q, m)
    if low == high:
        return at_high
    at_low = 0.0 if low == 1 else _log_moment_integer(low, q, m)
    return (high - alpha) * at_low + (alpha - low) * at_high
