"""Largest eigenvalues of a noisy matrix of second moments, and what they make of a noisy mean."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh, eigh_tridiagonal
from scipy.linalg.blas import dsymv

from skdp._threads import single_threaded_blas

FEW_COLUMNS = 1024
"""Up to them a decomposition takes a moment on one thread."""

_FEW_OF = 50  # up to a fiftieth of the eigenvectors are few
_STEPS, _STEPS_OF = 256, 16  # this many, and one for every 16th column, find some eigenvectors of noise alone
_ROUNDING = 2.0**-50


def about_mean(
    mean: np.ndarray, gram: np.ndarray, edge: float, k: int, *, and_above: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Project the mean on the leading eigenvectors of `gram`, and decompose ``gram - mean mean'``.

    Parameters
    ----------
    mean : ndarray of shape (d,)
        It is projected on the eigenvectors of eigenvalues above `edge`, and at least `k`; as it is if `k` is d.
    gram : ndarray of shape (d, d), C-ordered
        Lower triangle of a symmetric matrix; zeros above.
    edge : float
    k : int
        Number of eigenvalues.
    and_above : bool
        Whether all eigenvalues above `edge` are wanted where these are more.

    Returns
    -------
    mean : ndarray of shape (d,)
    values : ndarray of shape (at least k,)
        Largest eigenvalues, in decreasing order.
    vectors : ndarray of shape (d, at least k)
    """
    d = len(mean)
    if k == d:
        values, vectors = eigh(gram - np.outer(mean, mean), subset_by_index=(0, d - 1))
    elif not mean.any():
        values, vectors = leading(gram, k, edge if and_above else np.inf)
    else:
        mean, values, vectors = _leading_about_mean(mean, gram, edge, k)
        largest = np.argsort(values)[-max(k, int(np.count_nonzero(values > edge)) if and_above else 0) :]
        values, vectors = values[largest], vectors[:, largest]
    return mean, values[::-1], vectors[:, ::-1]


def _leading_about_mean(
    mean: np.ndarray, gram: np.ndarray, edge: float, k: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the projected mean, and eigenvalues with vectors, k of them and all above the edge among them.

    The projected mean m lies in the span S of leading eigenvectors V of `gram`. So ``gram - m m'`` has the eigenvectors
    of the small matrix ``V' gram V - (V'm)(V'm)'`` in S, and those of `gram` in its complement. If S has more than k
    dimensions, the k-th largest eigenvalue of the small matrix is at least the next one of `gram` in S, and exceeds all
    in the complement (interlacing; Golub & Van Loan 2013, theorem 8.1.8). If S has k, one eigenvalue may fall below the
    first in the complement, which is therefore computed too.
    """
    values, vectors = leading(gram, k + 1, edge)
    first = 0 if values[0] > edge else 1  # the signal is all but the next
    signal = vectors[:, first:]
    along = signal.T @ mean
    inner, turn = eigh(np.diag(values[first:]) - np.outer(along, along))
    values = np.append(values[:first], inner)
    return signal @ along, values, np.hstack([vectors[:, :first], signal @ turn])


def leading(gram: np.ndarray, least: int, above: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the `least` largest eigenvalues, in increasing order, or all above a number if more are; and vectors.

    LAPACK reduces the matrix to three diagonals, which takes as long for one eigenvector as for half of them. A few of
    a large matrix are found by Lanczos' method. Whether it ends in time is a function of the matrix, which is public.

    Parameters
    ----------
    gram : ndarray of shape (d, d), C-ordered
        Lower triangle of a symmetric matrix; zeros above.
    least : int
    above : float

    Returns
    -------
    values : ndarray of shape (at least `least`,)
    vectors : ndarray of shape (d, at least `least`)
    """
    d, n_known = len(gram), 0
    if d > FEW_COLUMNS and least <= d // _FEW_OF:
        # Hundreds of products, each as fast as memory is read; and what is next to nothing is none.
        with single_threaded_blas(), np.errstate(under="ignore"):
            found, n_known = _few_leading(gram, least, above)
        if found is not None:
            return found
    if n_known < least:
        values, vectors = eigh(gram, subset_by_index=(d - least, d - 1))
        if values[0] <= above:
            return values, vectors
    return eigh(gram, subset_by_value=(above, np.inf))


def _few_leading(gram: np.ndarray, least: int, above: float) -> tuple[tuple[np.ndarray, np.ndarray] | None, int]:
    """See `leading`: by Lanczos' method; None where they are too many for it, and how many are above at least.

    The basis is orthogonalized against all before, twice, so its values are those of the matrix, each once (Parlett
    1998, 6.9 and 13.8). Each found is an eigenvalue up to the length of what is left over (theorem 4.5.1).
    """
    d = len(gram)
    most, n_above, look = _STEPS + d // _STEPS_OF, 0, 16
    basis, diagonal, beside = np.empty((most + 1, d)), np.zeros(most), np.zeros(most)
    start = np.random.default_rng(0).random(d) - 0.5
    basis[0] = start / np.linalg.norm(start)
    for m in range(1, most + 1):
        rest = dsymv(1.0, gram.T, basis[m - 1])
        diagonal[m - 1] = basis[m - 1] @ rest
        for _ in range(2):
            rest -= (basis[:m] @ rest) @ basis[:m]
        beside[m - 1] = np.linalg.norm(rest)
        if m >= look or m == most:
            look = m + max(8, m // 8)
            values, turn = eigh_tridiagonal(diagonal[:m], beside[: m - 1])
            n_above = int(np.count_nonzero(values > above))
            n = max(least, n_above)
            if n < m and _are_found(values, beside[m - 1] * np.abs(turn[-1]), n, above):
                return (values[-n:], basis[:m].T @ turn[:, -n:]), n_above
        if not beside[m - 1] > 0.0:  # the span of the basis is closed, and tells nothing of the others
            break
        basis[m] = rest / beside[m - 1]
    return None, n_above


def _are_found(values: np.ndarray, left: np.ndarray, n: int, above: float) -> bool:
    """Whether the n largest values are exact but for rounding, and the next one, unless it is small, is on its side."""
    exact = left[-n:] <= _ROUNDING * np.abs(values).max()
    return bool(exact.all()) and (values[-n] <= above or values[-n - 1] + left[-n - 1] <= above)


__all__ = ["FEW_COLUMNS", "about_mean", "leading"]
