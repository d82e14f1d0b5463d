"""A ceiling that is stated as what an attacker may gain, turned into one that a filter holds.

*Plain Gaussian releases alone* (filter_family="gaussian", kept as "gdp"): a run in which the sum of mu^2 never passes B
is sqrt(B)-GDP however its releases were chosen (Smith & Thakurta 2022), and what it lets a test find is what the
Gaussian of that size does: B is that of the risk. The promise is about the whole curve, and a charge of any other kind,
the first one included, would leave it: it is refused, as is a raise of the ceiling.

*Anything else*: the filters of a ledger hold an epsilon at its delta. The largest epsilon is taken at which every
(epsilon, delta)-private release has the risk (`Risk.implied_by`). As a single number it forgets the shape of the noise,
so that far less may be charged.
"""

from __future__ import annotations

from typing import Any

from ..methods import check_delta
from ..targets import Risk
from .filters import GDP

__all__ = ["ceiling_of_risk"]

_DOWN = 1.0 - 1e-9  # covers the rounding of epsilon at mu, which is upwards


def ceiling_of_risk(risk: Any, epsilon: Any, delta: Any, family: str | None) -> tuple[float, str | None]:
    """The epsilon and the filters of a ledger whose ceiling is a risk.

    Parameters
    ----------
    risk : dict
        As for `calibrate_noise_multiplier`.
    epsilon : None
        The other way to state a ceiling.
    delta : float
        In (0, 1).
    family : str or None
        What was asked for as `filter_family`.

    Returns
    -------
    tuple of float and (str or None)

    Raises
    ------
    ValueError
        If no epsilon at this delta implies the risk.
    """
    target, delta = Risk.read(risk), check_delta(delta)
    if epsilon is not None:
        raise ValueError(f"epsilon={epsilon!r} and {target.words}: a ceiling is one of them; leave the other out.")
    if family in ("gaussian", GDP):
        found, family = target.of_size(target.mu * _DOWN).epsilon(delta), GDP
    else:
        found = target.implied_by(delta)
    if found <= 0.0:
        raise ValueError(f"{target.words} follows from no epsilon at delta={delta!r}; lower delta, or raise the risk.")
    return found, family
