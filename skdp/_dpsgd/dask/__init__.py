"""Rows on many machines: Dask adds up clipped gradients where the rows lie, and noise is added here.

Dask is imported by this package alone, and this package only for rows that are a Dask collection.
"""
