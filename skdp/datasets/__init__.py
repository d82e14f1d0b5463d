"""Data sets for private estimators: real and simulated census records, and MNIST.

Every loader returns the rows, and the public bounds, categories and classes that a private estimator requires and must
not learn from the rows. They come from a code book. `skdp.rehearse` simulates a table of any schema.
"""

from __future__ import annotations

from skdp._checks.sources import TableRows
from skdp.datasets.census import load_pums, make_census
from skdp.datasets.mnist import load_mnist

__all__ = ["TableRows", "load_mnist", "load_pums", "make_census"]
