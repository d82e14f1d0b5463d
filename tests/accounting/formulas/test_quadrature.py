"""Quadrature over cells, which are divided where a density is steep."""

import math

import numpy as np
import pytest

from skdp.accounting.formulas.numeric import nodes


@pytest.mark.parametrize("slope", [1e-5, 0.01, 0.3, 3.0, 60.0, 700.0])
def test_mass_of_exponential_density_is_exact(slope):
    knots = np.array([0.0, 0.25, 1.0])
    place, weight = nodes(knots, np.array([slope, slope]))
    assert weight @ np.exp(-slope * place) == pytest.approx(-math.expm1(-slope) / slope, rel=3e-15)
