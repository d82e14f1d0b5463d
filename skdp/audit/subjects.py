"""Clones that an audit fits without an accountant, with recorded releases, and the result of an audit."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp
from narwhals.stable.v2.dependencies import is_into_dataframe
from sklearn.base import clone

from skdp._checks.parameters import is_private
from skdp.accounting import AddRemove, DpEvent, NoOpDpEvent, RepeatAndSelectDpEvent, WorstOfDpEvent, get_epsilon
from skdp.accounting.ledger.report import caption_of, escaped
from skdp.audit.checks import AuditFinding
from skdp.audit.worst_case import GivenRows, Neighbors, leaves
from skdp.base.estimator import JointPrivacyCost
from skdp.base.private_step import private_steps
from skdp.mechanisms.release_log import Track, Transcript, running


class AuditError(AssertionError):
    """An audit found that an estimator violates its privacy claim."""


class Attack(NamedTuple):
    """Result of an attack.

    Attributes
    ----------
    model : object
        A fitted clone with the claimed guarantee.
    bounds : dict of str to float
        Lower bounds on epsilon by their assumptions; the first is the reported bound.
    sure_epsilon : float
        Lower bound with confidence 1 - 1e-6, for the decision whether a claim is violated.
    n_fits : int
    findings : sequence of AuditFinding
    steps : mapping of str to (float, float)
        Bound and claim of the parts of a composition.
    event : DpEvent
        Event that the canary affected.
    """

    model: Any
    bounds: dict[str, float]
    sure_epsilon: float
    n_fits: int
    findings: Any = ()
    steps: Any = ()
    event: DpEvent = NoOpDpEvent()


@dataclass(frozen=True)
class AuditResult:
    """Result of a privacy audit. Another attack may find more.

    Parameters
    ----------
    estimator : str
        Class name of the estimator.
    method : {"replay", "one_run"}
        Attack that was used.
    epsilon_lower_bound : float
        Lower bound on epsilon at `delta`, in nats. It is not an estimate of epsilon.
    epsilon_claimed : float
        `epsilon_` of the fitted estimator.
    delta : float
        Delta of both values of epsilon.
    adjacency : str
        Neighboring relation.
    confidence : float
        Confidence level of `epsilon_lower_bound`.
    bounds : dict of str to float
        Lower bounds by their assumptions; `epsilon_lower_bound` is the first of them.
    findings : tuple of AuditFinding
        Violations of the claim. Empty for a correct estimator, except in one of 100,000 audits.
    steps : dict of str to (float, float)
        Lower bound and claimed epsilon of each private step of a pipeline.
    n_fits : int
        Number of fits that the audit made.
    claimed_event, event : DpEvent
        Event that was charged, and the part of it that the canary affected. `skdp.plotting.TradeOffDisplay.from_audit`
        plots both.
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
        """Raise an `AuditError` that lists all findings, if there are any."""
        if self.findings:
            raise AuditError(f"{self.estimator}: " + "; ".join(map(str, self.findings)))

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dictionary of plain values.

        Returns
        -------
        dict
            All attributes except the events.
        """
        left_out = ("claimed_event", "event", "findings", "steps")
        plain = {name: value for name, value in vars(self).items() if name not in left_out}
        steps = {name: {"bound": bound, "claimed": claimed} for name, (bound, claimed) in self.steps.items()}
        found = [{"kind": each.kind, "message": each.message} for each in self.findings]
        return {**plain, "steps": steps, "findings": found}

    def to_json(self) -> str:
        """Return the result as JSON.

        Returns
        -------
        str
            JSON object with the keys of `to_dict`.
        """
        return json.dumps(self.to_dict(), indent=2)

    def __str__(self) -> str:
        return "\n".join([self._headline(), *self._lines()])

    def _repr_html_(self) -> str:
        lines = "".join(f"<li>{escaped(line)}</li>" for line in self._lines())
        return f"{caption_of(self._headline(), warns=bool(self.findings))}<ul>{lines}</ul>"

    def _headline(self) -> str:
        return (
            f"{self.estimator}: the attack ({self.method}) shows epsilon >= {self.epsilon_lower_bound:.3g}; claimed "
            f"epsilon is {self.epsilon_claimed:.3g} at delta = {self.delta:.2g} ({self.adjacency})"
        )

    def _lines(self) -> list[str]:
        lines = [f"FOUND {finding}" for finding in self.findings] or ["no violation of the claims was found"]
        lines += [
            f"step {name}: epsilon >= {bound:.3g}, claimed {claimed:.3g}"
            for name, (bound, claimed) in self.steps.items()
        ]
        lines += [f"epsilon >= {bound:.3g}, where {text}" for text, bound in self.bounds.items()]
        return [*lines, f"{self.n_fits} fits, confidence {self.confidence:.6g}"]


class Claim(NamedTuple):
    """Releases with a claim, by the numbers of their tracks; `alone` states that each of them has it."""

    name: str
    tracks: tuple[int, ...]
    claimed: float
    delta: float
    alone: bool = False


class Claims(NamedTuple):
    """Parts of a fit, and the tracks of its whole claim."""

    parts: list[Claim]
    whole: tuple[int, ...]
    given: bool = False

    def tracks_of(self, name: str) -> tuple[int, ...]:
        """Return the tracks of a part, the whole for an empty name; none for an unknown part."""
        return self.whole if not name else next((each.tracks for each in self.parts if each.name == name), ())


def parts_of(fitted: AuditedFit) -> Claims:
    """Return the private steps of a pipeline, or trials, scores and refit of a search; otherwise nothing."""
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


class AuditedFit(NamedTuple):
    """A fitted clone, its recorded releases, and its messages."""

    model: Any
    transcript: Transcript
    messages: list[tuple[type, str]]

    @property
    def tracks(self) -> list[Track]:
        """Tracks with releases. Each score of a search is a release, although scores are drawn together."""
        tracks = [track for track in self.transcript.tracks if track.releases]
        if hasattr(self.model, "_fitted_tuning") and self.model._fitted_tuning:
            scores = Track()
            scores.releases = [
                each._replace(exact=each.exact[k : k + 1], noisy=each.noisy[k : k + 1])
                for each in tracks[0].releases
                for k in range(len(each.exact))
            ]
            tracks[0] = scores
        return tracks

    def is_finite(self) -> bool:
        """Whether all releases are finite, before and after the noise."""
        values = (value for track in self.tracks for each in track.releases for value in (each.exact, each.noisy))
        return all(np.isfinite(value).all() for value in values)

    def published(self) -> dict[str, Any]:
        """Return all results of the fit."""
        return dict(leaves(vars(self.model)))


class Subject:
    """An estimator and two neighboring tables."""

    def __init__(self, estimator: Any, tables: Neighbors) -> None:
        if not states_its_cost(estimator):
            raise TypeError(f"`estimator` must be an instance of a private estimator, got {type(estimator).__name__}.")
        self.tables, self.n_fits = tables, 0
        # Under add/remove the noise is that of the larger table.
        n_records = tables.X.shape[0] if tables.groups is None else len(np.unique(tables.groups))
        self._template = prepared(estimator, 1 + n_records)
        self._settle_merging()

    def fit(self, canary: GivenRows | None, seed: int | None, forced: Transcript | None = None) -> AuditedFit:
        """Fit a clone to the table with or without a canary; a `forced` transcript is that of an earlier fit."""
        table = GivenRows(*self.tables[:3])
        if canary is not None:
            pairs = zip(table, canary, strict=True)
            table = GivenRows(*(None if rows is None else stacked(rows, more) for rows, more in pairs))
        self.n_fits += 1
        return recorded_fit(clone(self._template), table, Transcript(seed, forced))

    def _settle_merging(self) -> None:
        """Merge equal rows in all fits or in none, as a fit does: one record may decide where that is left to them.

        The law of lots is the same, but lots of copies force no lots of rows.
        """
        paths = self._template.get_params(deep=True).items()
        left = [path for path, value in paths if path.rpartition("__")[2] == "merge_equal_rows" and value == "auto"]
        if left:
            tracks = self.fit(self.tables.canaries[0], 0).transcript.tracks
            is_merged = any(lot.copies is not None for track in tracks for lot in track.lots)
            self._template.set_params(**dict.fromkeys(left, is_merged))


def recorded_fit(model: Any, table: GivenRows, transcript: Transcript) -> AuditedFit:
    """Fit a model, and record its releases and messages."""
    with running(transcript), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(table.X, table.y, **table.given())
    return AuditedFit(model, transcript, [(each.category, str(each.message)) for each in caught])


def states_its_cost(estimator: Any) -> bool:
    """Return whether an object is a private estimator, or a pipeline or a search with one budget."""
    return is_private(estimator) or isinstance(estimator, JointPrivacyCost)


def prepared(estimator: Any, n_records: int | None = None) -> Any:
    """Return a clone without an accountant, whose public randomness is fixed."""
    model = clone(estimator)
    parameters = model.get_params(deep=True)
    settings: dict[str, Any] = {}
    for path, value in parameters.items():
        prefix, _, name = path.rpartition("__")
        owner = parameters[prefix] if prefix else model
        if name in ("accountant", "checkpoint", "n_jobs") and value is not None:
            settings[path] = None
        elif name == "adjacency" and n_records is not None and value in (None, "zero_out"):
            settings[path] = AddRemove(n_records)
        elif name == "random_state" and (states_its_cost(owner) or value is None):
            settings[path] = None if states_its_cost(owner) else 0  # the transcript has the seed of what is private
    return model.set_params(**settings)


def stacked(rows: Any, more: Any) -> Any:
    """Return rows of two tables of the same kind, one after the other."""
    if sp.issparse(rows):
        return sp.vstack([rows, more], format="csr")
    if is_into_dataframe(rows):
        return nw.concat([nw.from_native(rows), nw.from_native(more)]).to_native()
    return np.concatenate([rows, more])
