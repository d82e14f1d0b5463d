"""Numba kernels, the only place that imports numba.

Each file stands alone: Numba's cache watches only the file of the compiled function, so a kernel that called one in
another file could go on giving the old answer after a mend. None uses ``fastmath``, which would let NaN past the
guards that bound a sensitivity.
"""
