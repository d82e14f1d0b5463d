"""Optimisers: post-processing of noisy gradients by public constants."""

import numpy as np
import pytest
import reference
from combinations import over_combinations, over_rows

from skdp._dpsgd.loop import adam, constant, cosine_decay, linear_decay


@over_rows(
    ("schedule", "steps", "rates"),
    [
        (constant(0.3), (0, 10**6), (0.3, 0.3)),
        (linear_decay(0.1, 0.052, 1000), (0, 250, 999, 1000, 10**6), (0.1, 0.088, 0.052048, 0.052, 0.052)),
        (linear_decay(1.0, 3.0, 4), (1, 4), (1.5, 3.0)),
        (cosine_decay(2.0, 0.5, 300), (0, 100, 150, 300, 301), (2.0, 1.625, 1.25, 0.5, 0.5)),
        (cosine_decay(2.0, 1.0, 0.25), (0, 1), (2.0, 1.0)),
    ],
)
def test_schedule_first_middle_last_beyond(schedule, steps, rates):
    """The linear one is that of Abadi et al. (2016), section 5.2: from 0.1 to 0.052 in 10 epochs, then 0.052."""
    assert [schedule(step) for step in steps] == pytest.approx(rates, rel=1e-14)


# --- Adam ---

ADAMS = {
    "Adam": {},
    "penalised": {"penalty": np.array([0.0, 1.0, 5.0])},
}


@over_combinations(dtype=[np.float32, np.float64], kind=ADAMS)
@over_rows(("beta_1", "beta_2"), [(0.9, 0.999), (0.0, 0.5), (0.5, 0.0)])
def test_adam_is_that_of_the_plain_formulas(beta_1, beta_2, kind, dtype):
    """Every iterate, with a schedule; in float32 to 40 steps of a few roundings of numbers below 10."""
    rng = np.random.default_rng(0)
    gradients, theta = rng.normal(size=(40, 3)), rng.normal(size=3).astype(dtype)
    schedule = linear_decay(0.1, 0.01, 30)
    options = {"beta_1": beta_1, "beta_2": beta_2, "adam_epsilon": 1e-3, **ADAMS[kind]}
    expected = reference.adam(theta.astype(float), gradients, [schedule(k) for k in range(40)], **options)
    optimizer = adam(schedule, *(options.pop(name) for name in ("beta_1", "beta_2", "adam_epsilon")), **options)
    state = optimizer.init(theta)
    for gradient, iterate in zip(gradients, expected, strict=True):
        theta, state = optimizer.update(gradient, state, theta)
        np.testing.assert_allclose(theta, iterate, rtol=0, atol=40 * 10 * float(np.finfo(dtype).eps))
