"""What an attack found, whichever it was."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from skdp.accounting import DpEvent, NoOpDpEvent
from skdp.audit.checks import AuditFinding


@dataclass(frozen=True)
class Attack:
    """What an attack found.

    Attributes
    ----------
    model : object
        A fitted clone, which states what is claimed.
    bounds : dict of str to float
        Lower bounds of epsilon, by what they assume; the first is the one that counts.
    sure_epsilon : float
        The same at a confidence of 1 - 1e-6, above which a claim is wrong.
    n_fits : int
    findings : list of AuditFinding
    steps : dict of str to (float, float)
        Bound and claim of the parts of a composition.
    event : DpEvent
        What the canary saw.
    """

    model: Any
    bounds: dict[str, float]
    sure_epsilon: float
    n_fits: int
    findings: list[AuditFinding] = field(default_factory=list)
    steps: dict[str, tuple[float, float]] = field(default_factory=dict)
    event: DpEvent = field(default_factory=NoOpDpEvent)

    @property
    def epsilon(self) -> float:
        """The bound that counts."""
        return next(iter(self.bounds.values()))
