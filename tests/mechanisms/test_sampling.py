"""Samplers: the one that is priced is the one that runs (properties 10 and 12)."""

from __future__ import annotations

import dataclasses
import hashlib

import numpy as np
import pytest
from combinations import over_rows
from scipy.stats import binom

from skdp.accounting import GaussianDpEvent, PoissonSampledDpEvent
from skdp.mechanisms.sampling import FullBatch, PoissonSampling, sampling_at
from skdp.mechanisms.streams import SecretStream

FALSE_ALARM = 1e-6

INNER = GaussianDpEvent(1.3)


def stream(name="sampling"):
    return SecretStream(hashlib.sha256(name.encode()).digest())


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
    """Property 12: q > 1 is refused, never capped."""
    with pytest.raises(ValueError, match="sampling_probability"):
        sampling_at(rate).event(INNER)


def test_samplers_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        PoissonSampling(0.1).rate = 0.2


@pytest.mark.parametrize("rate", [0.05, 0.4])
def test_rows_are_in_at_the_rate_of_the_event_and_independently(rate):
    """Exact binomial tests of every row's and every pair's frequency, and a lot's size is not fixed."""
    sampling, n, lots, source = PoissonSampling(rate), 30, 20_000, stream(f"rows {rate}")
    q = sampling.event(INNER).sampling_probability
    member = np.zeros((lots, n))
    for lot in member:
        lot[sampling.rows(n, source)] = 1.0
    together = member.T @ member
    for counts, probability in ((np.diag(together), q), (together[np.triu_indices(n, 1)], q * q)):
        law = binom(lots, probability)
        assert law.cdf(counts.min()) > FALSE_ALARM / 2 / len(counts)
        assert law.sf(counts.max() - 1) > FALSE_ALARM / 2 / len(counts)
    sizes = member.sum(axis=1)
    spread = sizes.var() / (n * q * (1 - q))  # of variance (2 + excess) / lots with |excess| < 1 here
    assert abs(spread - 1) < 5 * np.sqrt(3 / lots)


def test_lots_may_be_empty():
    source = stream()
    sizes = [len(PoissonSampling(1e-3).rows(100, source)) for _ in range(200)]
    assert 0 in sizes
    assert len(PoissonSampling(0.5).rows(0, source)) == 0
