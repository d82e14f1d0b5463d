"""Samplers: the one that is charged is the one that runs (properties 10 and 12)."""

import numpy as np
import pytest
from combinations import over_rows
from keyed_streams import stream

from skdp.accounting import GaussianDpEvent, PoissonSampledDpEvent
from skdp.mechanisms.sampling import FullBatch, PoissonSampling, sampling_at

INNER = GaussianDpEvent(1.3)


@over_rows("rate", [1e-6, 0.01, 0.5, 0.999])
def test_event_and_rows_come_from_one_object(rate):
    sampling = PoissonSampling(rate)
    assert sampling.event(INNER) == PoissonSampledDpEvent(rate, INNER)
    np.testing.assert_array_equal(sampling.rows(1_000, stream()), stream().poisson_rows(1_000, rate))


def test_full_batch_is_the_plain_mechanism():
    """Property 12: every row, no amplification, no words of the stream."""
    source = stream()
    assert FullBatch().rows(5, source) is None
    assert FullBatch().rate == 1.0
    assert FullBatch().event(INNER) == INNER
    np.testing.assert_array_equal(source.words(4), stream().words(4))


def test_sampling_at_rate_one_is_the_full_batch():
    assert sampling_at(1.0) == FullBatch()
    assert sampling_at(1) == FullBatch()
    assert sampling_at(0.3) == PoissonSampling(0.3)
    below = np.nextafter(1.0, 0.0)
    assert sampling_at(below) == PoissonSampling(below)


@over_rows("rate", [1.0000001, 2.0, -0.1, float("nan")])
def test_a_rate_that_is_no_probability_has_no_price(rate):
    """Property 12: q > 1 is rejected, never capped."""
    with pytest.raises(ValueError, match="sampling_probability"):
        sampling_at(rate).event(INNER)
