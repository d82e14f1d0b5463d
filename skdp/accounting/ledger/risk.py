"""Turn a budget that is stated as a risk into the epsilon that an accountant keeps."""

from __future__ import annotations

from typing import Any

from ..methods import check_delta
from ..targets import Risk, RiskTarget
from .filters import GAUSSIAN

_DOWN = 1.0 - 1e-9  # covers the rounding of epsilon at mu, which is upwards


def epsilon_of_risk(risk: Risk, delta: Any, family: str | None) -> float:
    """Return the largest epsilon at which the filters of a family hold a risk.

    Plain Gaussian releases, however they are chosen, are sqrt(B)-GDP if the sum of their mu^2 never passes B (Smith &
    Thakurta 2022). So under the Gaussian filter, which admits nothing else, epsilon is that of the mu of the risk.
    Other filters hold an epsilon at its delta for any shape of the noise: epsilon is the largest one at which every
    (epsilon, delta)-private release has the risk (`RiskTarget.implied_by`), which is far less.

    Parameters
    ----------
    risk : Risk
    delta : float or None
        In (0, 1); None is rejected.
    family : str or None
        The `filter_family` of the accountant.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If there is no delta, or no epsilon at this delta implies the risk.
    """
    if delta is None:
        raise ValueError(
            f"PrivacyAccountant: delta must be set with epsilon={risk!r}, as it keeps an epsilon at a delta. Pass a "
            "number well below 1/n, for example delta=1e-6."
        )
    target, delta = RiskTarget.of(risk), check_delta(delta)
    found = target.of_size(target.mu * _DOWN).epsilon(delta) if family == GAUSSIAN else target.implied_by(delta)
    if found <= 0.0:
        raise ValueError(f"{target.words} follows from no epsilon at delta={delta!r}; lower delta, or raise the risk.")
    return found
