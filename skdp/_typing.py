"""Arrays as type annotations name them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
Vector = NDArray[np.floating]
"""Parameters of a model, in the dtype in which it is trained."""
