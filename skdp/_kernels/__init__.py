"""Numba kernels, the only place that imports numba.

Files stand alone: Numba's cache watches only the file of the compiled function, so a kernel that called one in another
file could return stale results after a fix. `spans` and `sums` call others, and hold their texts (`caching.text_of`).
None uses ``fastmath``, which would let NaN pass the guards that bound a sensitivity.
"""
