"""Numba kernels, the only place that imports numba.

Files stand alone: Numba's cache watches only the file of the compiled function, so a kernel that called one in another
file could return stale results after a fix. `spans` and `sums` call others, and hold their texts (`caching.text_of`).
None uses ``fastmath``, which would let NaN pass the guards that bound a sensitivity.

- `caching`: Numba's `njit` with a disk cache that works on a read-only install too, in a folder that nobody else can
  write to
- `threads`: the number of threads of BLAS and of a fit, and a pool of threads that share the tasks of a step
- `bits`: normal numbers, Poisson row samples and binomial counts from secret 64-bit words
- `critic`: the passes over a chunk of rows that a critic with a gradient penalty needs between its matrix products
- `dense`: the passes over a chunk of rows that a dense network needs between its matrix products
- `fixed_features`: passes of the scattering transform: products of spectra and filters, folded, and moduli
- `grouping`: rows that are equal in every bit, found in one pass by a keyed hash
- `linear`: clipped gradient sums of linear classifiers, in one pass over the rows, without ever holding a row's
  gradient
- `linear_layouts`: norms and clipping factors of the rows of linear models, and products of sparse rows
- `losses`: the losses: their derivatives by the scores, which are what is clipped, and the clip itself for linear
  models
- `tiles`: matrix products of a dense network, in tiles that stay in registers
- `one_hot`: scores and sums of linear models over one-hot rows, by lookups in small tables
- `spans`: a span of rows of a dense network, from the table to both factors of their clipped gradients, in one
  compiled call
- `sums`: bounded sums of rows, Gram matrices and groups, and the steps of optimizers
"""
