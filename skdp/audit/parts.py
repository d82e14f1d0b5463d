"""Which tracks of a fit belong to which step or try, and what these claim."""

from __future__ import annotations

from typing import Any, NamedTuple

from skdp._fit.private_step import private_steps
from skdp.accounting import RepeatAndSelectDpEvent, WorstOfDpEvent, get_epsilon
from skdp.audit.subjects import AuditedFit


class Claim(NamedTuple):
    """Releases that have a claim, by the numbers of their tracks; `alone` says that each of them has it."""

    name: str
    tracks: tuple[int, ...]
    claimed: float
    delta: float
    alone: bool = False


class Claims(NamedTuple):
    """The parts of a fit, and the tracks on which its whole claim rests.

    `given` says whether a part sees the canary in some splits of the rows only, as in a search, or where a fit and what
    is counted of it are of disjoint rows.
    """

    parts: list[Claim]
    whole: tuple[int, ...]
    given: bool = False

    def tracks_of(self, name: str) -> tuple[int, ...]:
        """The tracks of a part, the whole for an empty name; none where there is no such part."""
        return self.whole if not name else next((each.tracks for each in self.parts if each.name == name), ())


def parts_of(fitted: AuditedFit) -> Claims:
    """The private steps of a pipeline; trials, scores and refit of a search; nothing for an estimator alone.

    Of a search that draws its number of trials, what is published of these is the best, and what this choice costs is a
    theorem that no attack of ours tests: its whole claim is set beside the refit alone.
    """
    model, everything = fitted.model, tuple(range(len(fitted.tracks)))
    if hasattr(model, "_fitted_tuning"):
        return _of_search(model, everything)
    if isinstance(model.privacy_event_, WorstOfDpEvent):
        return Claims([], everything, given=True)
    claims = getattr(model, "step_epsilons_", {})
    if len(claims) != len(everything):
        return Claims([], everything)
    steps = zip(claims.items(), everything, strict=True)
    return Claims([Claim(name, (k,), claim, model.named_steps[name].delta_) for (name, claim), k in steps], everything)


def _of_search(model: Any, tracks: tuple[int, ...]) -> Claims:
    tuning, delta, adjacency = model._fitted_tuning, model.delta_, model.adjacency_
    if not tuning:
        return Claims([], tracks)
    best = model.best_estimator_
    size = len(private_steps(best.steps)) if hasattr(best, "steps") else 1
    scores, fits = tracks[0], [tracks[at : at + size] for at in range(1, len(tracks), size)]
    choice, refits = tuning["choice"], fits[-1:] if model.refit else []
    trials = fits[: len(fits) - len(refits)]
    hidden = isinstance(choice, RepeatAndSelectDpEvent)
    claim = get_epsilon(choice.event if hidden else choice, delta, adjacency=adjacency)
    joint = trials if hidden else [sum(trials, ())]
    parts = [Claim(f"try {k + 1}" if hidden else "all trials", each, claim, delta) for k, each in enumerate(joint)]
    parts.append(Claim("scores", (scores,), claim, delta, alone=hidden))
    for each in refits:
        parts.append(Claim("refit", each, get_epsilon(tuning["refit"], delta, adjacency=adjacency), delta))
    return Claims(parts, (refits[0] if refits else trials[0]) if hidden else tracks, given=True)
