"""Numba kernels, the only place that imports numba.

Each file stands alone: Numba's cache watches only the file of the compiled function, so a kernel that called one in
another file could return stale results after a fix. None uses ``fastmath``, which would let NaN pass the guards that
bound a sensitivity.
"""
