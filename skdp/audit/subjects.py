"""An estimator as an audit fits it, again and again: clones without a ledger, with a tape."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from skdp._checks.protocols import is_private
from skdp.accounting import AddRemove
from skdp.audit.published import leaves
from skdp.audit.worst_case import Canary, Neighbours
from skdp.base import JointPrivacyCost
from skdp.mechanisms.tape import Tape, Track, running


class AuditedFit(NamedTuple):
    """A fitted clone, what was heard of its fit, and what the fit said."""

    model: Any
    tape: Tape
    messages: list[tuple[type, str]]

    @property
    def tracks(self) -> list[Track]:
        """Those on which something was released. Each score of a search is a release, drawn together as they are."""
        tracks = [track for track in self.tape.tracks if track.releases]
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
        """Whether all releases are, before and after the noise."""
        values = (value for track in self.tracks for each in track.releases for value in (each.exact, each.noisy))
        return all(np.isfinite(value).all() for value in values)

    def published(self) -> dict[str, Any]:
        """All that the fit left behind."""
        return dict(leaves(vars(self.model)))


class Subject:
    """An estimator and two neighbouring tables.

    Parameters
    ----------
    estimator : object
    tables : Neighbours
    """

    def __init__(self, estimator: Any, tables: Neighbours) -> None:
        if not states_its_price(estimator):
            raise TypeError(f"{type(estimator).__name__} is no private estimator: give one that states its epsilon.")
        self.tables, self._n_fits = tables, 0
        self._template = prepared(estimator, _n_records(tables))
        self._settle_merging()

    @property
    def n_fits(self) -> int:
        """Fits so far."""
        return self._n_fits

    def fit(self, canary: Canary | None, seed: int | None, forced: Tape | None = None) -> AuditedFit:
        """Fit a clone to the table with a canary, or to the one without; a `forced` tape is that of an earlier fit."""
        X, y, groups, _ = self.tables
        if canary is not None:
            X, y, groups = (
                None if rows is None else stacked(rows, more) for rows, more in zip((X, y, groups), canary, strict=True)
            )
        model, tape = clone(self._template), Tape(seed, forced)
        given = {} if groups is None else {"groups": groups}
        with running(tape), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X, y, **given)
        self._n_fits += 1
        return AuditedFit(model, tape, [(each.category, str(each.message)) for each in caught])

    def _settle_merging(self) -> None:
        """Merge equal rows in all fits or in none, as a fit does: one record may decide where that is left to them.

        The law of lots is the same, but lots of copies force no lots of rows.
        """
        parameters = self._template.get_params(deep=True).items()
        left = [
            path for path, value in parameters if path.rpartition("__")[2] == "merge_equal_rows" and value == "auto"
        ]
        if left:
            tracks = self.fit(self.tables.canaries[0], 0).tape.tracks
            is_merged = any(lot.copies is not None for track in tracks for lot in track.lots)
            self._template.set_params(**dict.fromkeys(left, is_merged))


def states_its_price(estimator: Any) -> bool:
    """Whether it is a private estimator, or a pipeline or a search with one budget."""
    return is_private(estimator) or isinstance(estimator, JointPrivacyCost)


def prepared(estimator: Any, n_records: int | None = None) -> Any:
    """A clone that charges nobody, and whose public randomness is fixed.

    With `n_records`, what is private under zero-out is fitted under add/remove, which costs the same: a record leaves.
    """
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
        elif name == "random_state" and (states_its_price(owner) or value is None):
            settings[path] = None if states_its_price(owner) else 0  # the tape has the seed of what is private
    return model.set_params(**settings)


def _n_records(tables: Neighbours) -> int:
    """Records of the larger table."""
    return 1 + (tables.X.shape[0] if tables.groups is None else len(np.unique(tables.groups)))


def stacked(rows: Any, more: Any) -> Any:
    """Rows of any kind of table, and then others of the same kind."""
    if sp.issparse(rows):
        return sp.vstack([rows, more], format="csr")
    if hasattr(rows, "iloc"):
        import pandas as pd

        return pd.concat([rows, more], ignore_index=True)
    if hasattr(rows, "vstack"):
        return rows.vstack(more)
    return np.concatenate([rows, more])
