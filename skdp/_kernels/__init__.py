"""Numba kernels, the only place that imports numba.

Numba's cache only checks the file of the compiled function. Therefore kernels call only kernels of the same file;
otherwise they could return stale results after a fix. The exceptions are `spans` and `sums`, whose cache keys include
the texts of the other files (`caching.text_of`). ``fastmath`` is never used, because NaN could then pass the guards
that bound a sensitivity.

- `caching`: Numba's `njit` with a disk cache that only the user can write to, also for read-only installations
- `threads`: number of threads of BLAS and of a fit, and a thread pool
- `bits`: normal numbers, Poisson samples of rows and binomial counts from secret 64-bit words
- `critic`: passes over a chunk of rows between the matrix products of a critic with a gradient penalty
- `dense`: passes over a chunk of rows between the matrix products of a dense network
- `fixed_features`: passes of the scattering transform
- `grouping`: grouping of identical rows by a keyed hash
- `linear`: clipped gradient sums of linear classifiers, without per-row gradients in memory
- `linear_layouts`: norms and clipping factors of the rows of linear models, and products of sparse rows
- `losses`: derivatives of the losses, and gradient clipping for linear models
- `tiles`: matrix products of a dense network, in register tiles
- `one_hot`: scores and gradient sums of linear models over one-hot rows, by table lookups
- `spans`: clipped gradient factors of several rows of a dense network in one compiled call
- `sums`: bounded sums of rows, Gram matrices and groups, and optimizer steps
"""
