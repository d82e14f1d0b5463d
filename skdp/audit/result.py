"""`AuditResult`: what an attack found, beside what the estimator claims."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from skdp.accounting import DpEvent, NoOpDpEvent
from skdp.accounting.ledger.html import caption_of, escaped
from skdp.audit.checks import AuditFinding


class AuditError(AssertionError):
    """An audit found that an estimator releases more than it claims, or otherwise than it claims."""


class Attack(NamedTuple):
    """What an attack found, whichever it was.

    Attributes
    ----------
    model : object
        A fitted clone, which states what is claimed.
    bounds : dict of str to float
        Lower bounds of epsilon, by what they assume; the first is the one that counts.
    sure_epsilon : float
        The same at a confidence of 1 - 1e-6, above which a claim is wrong.
    n_fits : int
    findings : sequence of AuditFinding
    steps : mapping of str to (float, float)
        Bound and claim of the parts of a composition.
    event : DpEvent
        What the canary saw.
    """

    model: Any
    bounds: dict[str, float]
    sure_epsilon: float
    n_fits: int
    findings: Sequence[AuditFinding] = ()
    steps: Mapping[str, tuple[float, float]] = {}
    event: DpEvent = NoOpDpEvent()


@dataclass(frozen=True)
class AuditResult:
    """What an attack found; another one may find more.

    Parameters
    ----------
    estimator : str
        Name of the class.
    method : {"replay", "one_run"}
        The attack.
    epsilon_lower_bound : float
        Largest epsilon that the attack excludes, in nats at `delta`. Not an estimate of epsilon.
    epsilon_claimed : float
        What the fitted estimator states.
    delta : float
        That of both figures.
    adjacency : str
        What neighbours differ in.
    confidence : float
        Probability at which `epsilon_lower_bound` holds.
    bounds : dict of str to float
        Lower bounds by what they assume; `epsilon_lower_bound` is the first of them.
    findings : tuple of AuditFinding
        What is not as the price assumes; empty for an honest estimator, but for one audit in a hundred thousand.
    steps : dict of str to (float, float)
        Bound and claim of each private step of a pipeline.
    n_fits : int
        Fits that the audit made.
    claimed_event, event : DpEvent
        What was charged, and what the canary saw of it; `skdp.plotting.TradeOffDisplay.from_audit` draws both.
    """

    estimator: str
    method: str
    epsilon_lower_bound: float
    epsilon_claimed: float
    delta: float
    adjacency: str
    confidence: float
    bounds: dict[str, float]
    findings: tuple[AuditFinding, ...]
    steps: dict[str, tuple[float, float]] = field(default_factory=dict)
    n_fits: int = 0
    claimed_event: DpEvent = field(default_factory=NoOpDpEvent, repr=False)
    event: DpEvent = field(default_factory=NoOpDpEvent, repr=False)

    def raise_if_violated(self) -> None:
        """Raise an `AuditError` that names all findings, if there are any."""
        if self.findings:
            raise AuditError(f"{self.estimator}: " + "; ".join(map(str, self.findings)))

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as numbers, texts and lists.

        Returns
        -------
        dict
            Without the events.
        """
        left_out = ("claimed_event", "event", "findings", "steps")
        plain = {name: value for name, value in vars(self).items() if name not in left_out}
        steps = {name: {"bound": bound, "claimed": claimed} for name, (bound, claimed) in self.steps.items()}
        found = [{"kind": each.kind, "message": each.message} for each in self.findings]
        return {**plain, "steps": steps, "findings": found}

    def to_json(self) -> str:
        """Return the figures as JSON.

        Returns
        -------
        str
            An object with the keys of `to_dict`.
        """
        return json.dumps(self.to_dict(), indent=2)

    def __str__(self) -> str:
        return "\n".join([self._headline(), *self._lines()])

    def _repr_html_(self) -> str:
        lines = "".join(f"<li>{escaped(line)}</li>" for line in self._lines())
        return f"{caption_of(self._headline(), warns=bool(self.findings))}<ul>{lines}</ul>"

    def _headline(self) -> str:
        return (
            f"{self.estimator}: this attack ({self.method}) found epsilon >= {self.epsilon_lower_bound:.3g}, and "
            f"{self.epsilon_claimed:.3g} is claimed, at delta = {self.delta:.2g} ({self.adjacency})"
        )

    def _lines(self) -> list[str]:
        lines = [f"FOUND {finding}" for finding in self.findings] or ["nothing was found that is not as claimed"]
        lines += [f"step {name}: {bound:.3g} of {claimed:.3g}" for name, (bound, claimed) in self.steps.items()]
        lines += [f"epsilon >= {bound:.3g}, where {text}" for text, bound in self.bounds.items()]
        return [*lines, f"{self.n_fits} fits, confidence {self.confidence:.6g}"]
