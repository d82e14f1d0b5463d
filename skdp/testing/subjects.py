"""An estimator as the checks fit it: clones with a ledger, whose releases are heard on a tape."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

from sklearn.base import clone

from skdp.accounting import PrivacyAccountant
from skdp.audit.published import leaves
from skdp.audit.replay import change
from skdp.audit.subjects import AuditedFit, prepared, states_its_price
from skdp.audit.worst_case import take
from skdp.exceptions import PrivacyLeakWarning
from skdp.mechanisms.tape import Tape, Track, running
from skdp.testing.tables import GivenRows, made_up, other_than


class CheckedEstimator:
    """An estimator under test, and the tables that it is fitted to.

    Parameters
    ----------
    estimator : object
        It is cloned, and neither fitted nor charged to its own accountant.
    X, y : array-like or None, default=None
        Rows and targets that it takes, public or made up. None makes some up.
    """

    def __init__(self, estimator: Any, X: Any = None, y: Any = None) -> None:
        if isinstance(estimator, type) or not states_its_price(estimator):
            raise TypeError(
                f"estimator={estimator!r} is no private estimator: give an instance that states its epsilon."
            )
        self.name = type(estimator).__name__
        self.table = made_up(estimator) if X is None else GivenRows(X, y)
        self.other = made_up(estimator, seed=1) if X is None else other_than(self.table)
        self._template = prepared(estimator)

    def make(self, ledger: PrivacyAccountant | None = None, **parameters: Any) -> Any:
        """A clone that charges a ledger, with other values of some of its own parameters."""
        model = clone(self._template).set_params(**parameters)
        return model if ledger is None else model.set_params(**dict.fromkeys(self.places("accountant"), ledger))

    def places(self, name: str) -> list[str]:
        """Where a parameter can be set: on the estimator itself, or else on the private parts of it."""
        own = self._template.get_params(deep=False)
        if name in own:
            return [name]
        everything = self._template.get_params(deep=True)
        return [
            path for path in everything
            if path.endswith(f"__{name}") and states_its_price(everything[path.rpartition("__")[0]])
        ]  # fmt: skip

    def takes(self, name: str) -> bool:
        """Whether ``fit`` has an argument of this name."""
        return name in inspect.signature(self._template.fit).parameters

    def fit(self, table: GivenRows, /, forced: AuditedFit | None = None, **parameters: Any) -> AuditedFit:
        """Fit a clone under a known seed; all releases of a `forced` fit take the place of its own."""
        return heard_fit(self.make(**parameters), table, Tape(0, None if forced is None else forced.tape))


def heard_fit(model: Any, table: GivenRows, tape: Tape) -> AuditedFit:
    """Fit a model, with its releases on a tape and what it says kept."""
    with running(tape), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(table.X, table.y, **table.given())
    return AuditedFit(model, tape, [(each.category, str(each.message)) for each in caught])


def tape_that_calls(hook: Callable[[], None]) -> Tape:
    """A tape that calls a function whenever something is to be released; its noise is secret."""

    class Calling(Track):
        def release(self, mechanism: Any, exact: Any, noisy: Any) -> Any:
            hook()
            return super().release(mechanism, exact, noisy)

    return Tape(track_type=Calling)


def learned(model: Any) -> dict[str, Any]:
    """Everything that a fit has published on a model, by attribute, but for the schema of the rows and for ledgers."""
    names = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    names -= {"n_features_in_", "feature_names_in_", *model.get_params(deep=False)}
    return {
        name: {place: leaf for place, leaf in leaves(vars(model)[name]) if "['accountant']" not in place}
        for name in sorted(names)
    }


def answers(model: Any, X: Any) -> dict[str, Any]:
    """What the methods of a fitted model make of rows, by the name of the method."""
    methods = ("predict", "predict_proba", "decision_function", "transform")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: getattr(model, name)(take(X, slice(0, 9))) for name in methods if hasattr(model, name)}


def refusal(act: Callable[[], Any]) -> Exception | None:
    """The error by which something is refused; None if it is not. Leaks are warned of, and that is for other checks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        try:
            act()
        except Exception as error:
            return error
    return None


def said_by(error: BaseException | None) -> str:
    """All words of an error, and of those that it was raised from or beside."""
    words: list[str] = []
    while error is not None:
        words += [*map(str, error.args), str(error), *getattr(error, "__notes__", ())]
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return " ".join(words)


def moves(one: AuditedFit, other: AuditedFit) -> list[float]:
    """How far each release is from that of the other fit, in times of its sensitivity."""
    pairs = zip(
        (each for track in one.tape.tracks for each in track.releases),
        (each for track in other.tape.tracks for each in track.releases),
        strict=True,
    )
    return [change(*pair) for pair in pairs]
