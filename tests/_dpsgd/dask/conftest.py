"""What tests of rows on many machines share."""

import pytest

from skdp.mechanisms import GaussianMechanism


@pytest.fixture
def noised(monkeypatch):
    """Values to which noise was added."""
    values, add = [], GaussianMechanism._add_noise

    def noted(mechanism, value, stream):
        values.append(value.copy())
        return add(mechanism, value, stream)

    monkeypatch.setattr(GaussianMechanism, "_add_noise", noted)
    return values
