"""Gauss-Legendre quadrature of densities, with a proven bound on its relative error.

*One cell.* Let f be e^g on a cell of half width r, with g(x + r t) = g(x) + b t - c t^2 / 2 for t from -1 to 1, |b| <=
s and 0 <= c <= (s / 3)^2. With k nodes the error is at most 64 M rho^{-2k} / (15 (1 - rho^-2)) for every rho > 1, M
the maximum of |f| over the ellipse with foci -1 and 1 and semiaxes A = (rho + 1/rho) / 2 and B = (rho - 1/rho) / 2
(Trefethen 2019, *Approximation Theory and Approximation Practice*, Theorem 19.3). There log |f| <= g(x) + s A + c B^2
/ 2, and by Jensen's inequality the integral over t is at least 2 e^{g(x) - c/6}. So the relative error is at most

    (32 / 15) rho^{-2k} / (1 - rho^-2) exp(s A + (s / 3)^2 (B^2 / 2 + 1 / 6)).

`MOST` holds, for numbers of nodes k, the largest s at which the best rho makes that `ERROR` or less. A normal density
with its centre at a distance of up to d from the cell has s = r (d + 3), as c = r^2; an exponential e^{a x} has s = r
a.

*Mixtures.* The error of a sum of such densities with positive weights is bounded as that of each.

*A pair.* Let P and Q have densities p and q of which the loss log(p / q) rises, with cells that end at every loss
where H(tau) = sup over events of P - tau Q is asked for. By quadrature, the mass of P above log tau, and that of Q,
have relative errors of at most u = `ERROR`, so H is too low by at most u (P + tau Q)(above) = u (H + 2 tau Q(above)).
Masses that are larger by the factor 1 + u, with losses that are larger by 2 u, make up for it: to raise all losses by
v raises H by v tau Q(above). A pair of a Poisson sample is itself a mixture of which a share is common to both, and
errs in the rest alone: with sampling probability q, P = (1-q) Q + q P1,

    P - tau Q = q P1 - (tau - 1 + q) Q,

which errs by at most 2 u q P1(above) = 2 u (H + (tau - 1 + q) Q(above)). As tau - 1 + q <= tau (1 - (1-q) / tau) <=
tau (q + |log tau|), losses l that are larger by 2 u min(1, q + |l|) make up for it; likewise in the other direction
(with the share of what is sampled in Q), and where a record is replaced (with the larger of both shares). The rounding
of a loss is in proportion to the same, as d l / d (log P1 / Q) is that share. So `lifted` serves both.
"""

from __future__ import annotations

import numpy as np

ERROR = 1e-15
"""Relative error of the quadrature, at most."""

MOST = {2: 3.6e-4, 3: 9.8e-3, 5: 0.158, 8: 0.855, 16: 4.25, 32: 11.7}
"""For numbers of nodes: the largest steepness s."""

UNIT = 1.2e-16
"""Above the relative rounding of one operation."""

_RULES = {k: np.polynomial.legendre.leggauss(k) for k in MOST}
_IN_CELLS = (2, 3, 5, 8)


def number_of_nodes(steepness: float) -> int:
    """Fewest nodes that suffice for cells that are as steep as that; the most there are if none do."""
    return next((k for k, most in MOST.items() if steepness <= most), max(MOST))


def _split(knots: np.ndarray, slope: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Middles, half widths and steepness of cells, of which those that are too steep are divided."""
    half = 0.5 * np.diff(knots)
    steepness = half * slope
    parts = np.maximum(1, np.ceil(steepness / MOST[_IN_CELLS[-1]])).astype(np.int64)
    if parts.max(initial=1) == 1:
        return knots[:-1] + half, half, steepness
    place = np.arange(parts.sum()) - np.repeat(np.cumsum(parts) - parts, parts)
    half = np.repeat(half / parts, parts)
    return np.repeat(knots[:-1], parts) + half * (2.0 * place + 1.0), half, np.repeat(steepness / parts, parts)


def nodes(knots: np.ndarray, slope: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places and weights of a quadrature over cells, in no order.

    Parameters
    ----------
    knots : array of shape (n + 1,)
        Ends of the cells, rising.
    slope : array of shape (n,)
        For each cell the most by which the log of a density may change per unit of place, and 3 for a normal one.

    Returns
    -------
    place, weight : array
    """
    middle, half, steepness = _split(knots, slope)
    number = np.searchsorted([MOST[k] for k in _IN_CELLS[:-1]], steepness)
    places, weights = [], []
    for at, k in enumerate(_IN_CELLS):
        kept = number == at
        node, weight = _RULES[k]
        places.append((middle[kept, None] + half[kept, None] * node).ravel())
        weights.append((half[kept, None] * weight).ravel())
    return np.concatenate(places), np.concatenate(weights)


def rule(k: int) -> tuple[np.ndarray, np.ndarray]:
    """The nodes and weights on the interval from -1 to 1."""
    return _RULES[k]


def rounding(least: float, loss: float, size: float = 0.0) -> float:
    """Bound on the rounding of masses, relative, and of losses, per `min(1, q + |loss|)`.

    Parameters
    ----------
    least : float
        The least log of a mass.
    loss : float
        The largest size of a loss.
    size : float
        Largest number of which the difference of two was taken to find them.

    Returns
    -------
    float
    """
    return UNIT * (8.0 * (abs(least) + loss + size) + 64.0)


def lifted(loss: np.ndarray, room: float, rate: float) -> np.ndarray:
    """Losses, larger by as much as makes up for an error of masses and of losses.

    Parameters
    ----------
    loss : array
    room : float
        Twice the relative error of masses and that of losses, per `min(1, rate + |loss|)`.
    rate : float
        Sampling probability; 1 where nothing is known of the pair.

    Returns
    -------
    array
    """
    return loss + room * np.minimum(1.0, rate + np.abs(loss))
