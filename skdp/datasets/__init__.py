"""Tables to try private estimators on: census people, real and made up, and MNIST.

Every loader returns, beside the rows, what a private estimator must be told and may not learn from them: public bounds,
categories and classes, all of them read from a code book.
"""

from __future__ import annotations

from skdp.datasets.census import fetch_acs_pums, load_pums, make_census, recode_acs
from skdp.datasets.mnist import load_mnist

__all__ = ["fetch_acs_pums", "load_mnist", "load_pums", "make_census", "recode_acs"]
