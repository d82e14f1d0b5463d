"""Events of other ways to sample, as frozen specifications.

`RandomAllocationDpEvent` is ours; the names, fields and meaning of the others are those of Google's dp-accounting.
"""

from __future__ import annotations

from dataclasses import dataclass

from .specifications import DpEvent, inner_event, own, real_field, refuse_field, set_noise, whole_field

__all__ = ["RandomAllocationDpEvent", "SampledWithReplacementDpEvent", "TruncatedSubsampledGaussianDpEvent"]

_LARGEST = 10**12


def _set_size(event: object, name: str, least: int, most: int = _LARGEST) -> None:
    value = getattr(event, name)
    remedy = f"give a whole number from {least} to {most}"
    number = whole_field(event, name, value, remedy)
    if not least <= number <= most:
        raise ValueError(refuse_field(event, name, value, remedy))
    object.__setattr__(event, name, number)


@own
@dataclass(frozen=True)
class SampledWithReplacementDpEvent(DpEvent):
    """An event applied to a sample of fixed size, each of whose places was drawn from all records.

    It has a price under `replace_one` alone. A record may be in the sample several times.

    Parameters
    ----------
    source_dataset_size : int
        Number of records, public; 1 or more.
    sample_size : int
        Number of places in the sample.
    event : DpEvent
        What was done to the sample: `GaussianDpEvent`, `LaplaceDpEvent` or integer noise.
    """

    source_dataset_size: int
    sample_size: int
    event: DpEvent

    def __post_init__(self) -> None:
        _set_size(self, "source_dataset_size", 1)
        _set_size(self, "sample_size", 0)
        object.__setattr__(self, "event", inner_event(self, self.event))


@own
@dataclass(frozen=True)
class TruncatedSubsampledGaussianDpEvent(DpEvent):
    """Gaussian noise was added to a sum over a Poisson sample, of which a random part is taken if it is too large.

    See Ganesh, McKenna, Steinke & Chua 2025 (arXiv:2508.15089).

    Parameters
    ----------
    dataset_size : int
        Number of records, public; 1 or more. Under `add_remove` of the larger of two neighbours.
    sampling_probability : float
        Probability in [0, 1] that a record is drawn.
    truncated_batch_size : int
        Most records that take part.
    noise_multiplier : float
        Standard deviation of the noise divided by the bound C on one record's contribution; above 0.
    """

    dataset_size: int
    sampling_probability: float
    truncated_batch_size: int
    noise_multiplier: float

    def __post_init__(self) -> None:
        _set_size(self, "dataset_size", 1)
        _set_size(self, "truncated_batch_size", 0)
        remedy = "give a probability between 0 and 1"
        share = real_field(self, "sampling_probability", self.sampling_probability, remedy)
        if not 0.0 <= share <= 1.0:
            raise ValueError(refuse_field(self, "sampling_probability", share, remedy))
        object.__setattr__(self, "sampling_probability", share)
        set_noise(self, self.noise_multiplier, "noise standard deviation / C")


@own
@dataclass(frozen=True)
class RandomAllocationDpEvent(DpEvent):
    """Gaussian noise was added to a sum in each of several steps; each record took part in some of them, drawn unseen.

    The steps of a record are a uniformly drawn set of `num_selected` of all `num_steps`, independent of those of others
    (Feldman & Shenfeld 2025, "Privacy amplification by random allocation"). It has a price under `zero_out` and
    `add_remove`, by Rényi divergences.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise of a step divided by the bound C on one record's contribution; above 0.
    num_steps : int
        Number of steps, 1 to 10^6.
    num_selected : int
        In how many of them a record takes part, at most `num_steps`.
    """

    noise_multiplier: float
    num_steps: int
    num_selected: int = 1

    def __post_init__(self) -> None:
        set_noise(self, self.noise_multiplier, "noise standard deviation / C")
        _set_size(self, "num_steps", 1, 10**6)
        _set_size(self, "num_selected", 0, self.num_steps)
