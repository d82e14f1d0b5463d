"""What all private estimators share: the budget's parameters, the charge, and what is published."""

from __future__ import annotations

import contextlib
import sys
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from skdp._config import report_leak
from skdp._random import SecretStream
from skdp._sampling import Sampling, sampling_at
from skdp._validation import check_choice, check_count, check_real
from skdp.accounting import ADJACENCIES, METHODS, DpEvent, PrivacyAccountant, compose, get_epsilon


class Budget(NamedTuple):
    """The privacy parameters of an estimator, checked. Exactly one of epsilon and noise_multiplier is None."""

    epsilon: float | None
    noise_multiplier: float | None
    delta: float


class Price(NamedTuple):
    """An event and its epsilon at delta."""

    event: DpEvent
    epsilon: float
    delta: float


class StepPlan(NamedTuple):
    """What a fit will cost as a function of its noise multiplier, and the parameters that make it cost just that."""

    event_at: Callable[[float], DpEvent]
    parameters: dict[str, Any]


class PrivateEstimator(BaseEstimator):
    """Base class of private estimators.

    Subclasses have the constructor parameters ``epsilon, delta, noise_multiplier, adjacency, accounting, accountant,
    random_state, n_samples_public``. Constructor parameters are public, arguments of ``fit`` are private.

    Notes
    -----
    **Guarantees.**

    - The accountant is charged before training reads a row. A fit that fails or is interrupted later keeps its charge.
    - `epsilon_` prices jointly every event on which the fitted state depends, `privacy_event_`, at `delta_`.
    - What ``fit`` publishes beside noisy parameters is a function of constructor parameters, of public shape and names
      (the number of rows included, but for ``add_remove``) and of the classes.
    """

    def _plan_step(self, n_samples: int, n_features: int) -> StepPlan:
        """The plan of a fit to a table of this shape, for whoever chooses its noise (`skdp.pipeline`)."""
        raise NotImplementedError

    def _check_budget(self) -> Budget:
        if (self.epsilon is None) == (self.noise_multiplier is None):
            raise ValueError(
                f"epsilon={self.epsilon!r} and noise_multiplier={self.noise_multiplier!r}: set exactly one of them "
                "(epsilon=None frees noise_multiplier)."
            )
        check_choice("adjacency", self.adjacency, ADJACENCIES)
        check_choice("accounting", self.accounting, METHODS)
        if self.accountant is not None and not isinstance(self.accountant, PrivacyAccountant):
            raise ValueError(
                f"accountant={self.accountant!r} is not a PrivacyAccountant: pass skdp.PrivacyAccountant() or None."
            )
        delta = check_real("delta", self.delta, above=0, below=1, remedy="choose a number in (0, 1), well below 1/n")
        epsilon, noise = self.epsilon, self.noise_multiplier
        if epsilon is not None:
            epsilon = check_real("epsilon", epsilon, above=0, remedy="choose a number above 0, such as 1.0")
        if noise is not None:
            noise = check_real(
                "noise_multiplier", noise, at_least=1e-3, at_most=1e9, remedy="choose a number from 1e-3 to 1e9"
            )
        return Budget(epsilon, noise, delta)

    def _public_n_samples(self, n_samples: int) -> int:
        """The number of rows that rules may use: under add_remove the data's own is private."""
        if self.n_samples_public is not None:
            return check_count("n_samples_public", self.n_samples_public, remedy="give a whole number above 0")
        if self.adjacency == "add_remove":
            raise ValueError(
                "n_samples_public=None with adjacency='add_remove': the number of rows is private there, so give "
                "n_samples_public, a round number near it, or use adjacency='zero_out'."
            )
        return n_samples

    def _chosen_sampling(self, n: int) -> Sampling | None:
        """The sampling that the user's lot_size or sampling_rate asks for, None where neither is set."""
        if self.lot_size is not None and self.sampling_rate is not None:
            raise ValueError(
                f"lot_size={self.lot_size!r} and sampling_rate={self.sampling_rate!r}: set at most one of them."
            )
        if self.sampling_rate is not None:
            remedy = "choose a probability from 1e-9 to 1; 1 is the full batch"
            return sampling_at(check_real("sampling_rate", self.sampling_rate, at_least=1e-9, at_most=1, remedy=remedy))
        if self.lot_size is not None:
            remedy = f"choose the expected number of rows of a step, from 1 to the {n} rows there are"
            return sampling_at(check_real("lot_size", self.lot_size, at_least=1, at_most=n, remedy=remedy) / n)
        return None

    def _warn_of_weak_delta(self, delta: float, n: int) -> None:
        if delta * n >= 1:
            warnings.warn(
                f"delta={delta!r} is at least 1/n for n={n} rows: publishing one whole record would satisfy it; "
                f"choose a delta well below {1 / n:.1g}.",
                UserWarning,
                stacklevel=5,
            )

    def _root_stream(self) -> SecretStream:
        root = SecretStream.from_random_state(self.random_state)
        if self.random_state is not None:
            report_leak(
                f"random_state={self.random_state!r} makes the noise reproducible, so the guarantee does not hold "
                "against whoever knows it: use random_state=None for a result that leaves your hands.",
                stacklevel=6,
            )
        return root

    def _charge(self, event: DpEvent, note: str = "") -> None:
        """Draw `event` on the shared accountant, if there is one, before the rows are read."""
        report_unpaid_scores()
        if self.accountant is not None:
            parameters = self._public_parameters()
            self.accountant.spend(
                event, type(self).__name__, adjacency=self.adjacency, parameters=parameters, note=note
            )  # fmt: skip

    def _public_parameters(self) -> dict[str, Any]:
        """The parameters that matter to the result, without the seed, which is a secret."""
        left_out = ("accountant", "checkpoint", "n_jobs", "random_state", "verbose")
        return {name: value for name, value in self.get_params(deep=False).items() if name not in left_out}

    def _price(self, event: DpEvent, earlier: DpEvent | None, delta: float) -> Price:
        """What the fitted state will have cost, from public parameters alone."""
        whole = event if earlier is None else compose([earlier, event])
        return Price(whole, get_epsilon(whole, delta, method=self.accounting, adjacency=self.adjacency), delta)

    def _publish_price(self, price: Price) -> None:
        self.privacy_event_, self.epsilon_, self.delta_ = price
        self.adjacency_ = self.adjacency

    @contextlib.contextmanager
    def _schema_kept_on_failure(self) -> Iterator[None]:
        """Validation writes the new table's schema at once; after a refusal the fitted model keeps its own."""
        names = "n_features_in_", "feature_names_in_"
        before = {name: self.__dict__[name] for name in names if name in self.__dict__}
        try:
            yield
        except BaseException:
            if hasattr(self, "privacy_event_"):
                for name in names:
                    self.__dict__.pop(name, None)
                self.__dict__.update(before)
            raise


_DEEPEST = 40  # frames between a fit and the search that calls it: pipelines in pipelines have some eight each
_told: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def report_unpaid_scores() -> None:
    """Say, once a search or cross-validation, that scikit-learn scores its folds on private rows for nothing.

    Such a fit is called by scikit-learn's ``_fit_and_score``. All folds share a scorer, made for them alone (but in
    worker processes, each of which has copies), so that tells one search from the next.
    """
    frame = sys._getframe(1)
    for _ in range(_DEEPEST):
        if frame.f_code.co_name == "_fit_and_score":
            module = frame.f_globals.get("__name__", "")
            if module.startswith("sklearn.model_selection."):
                return _report_once(frame.f_locals.get("scorer"))
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return None


def _report_once(scorer: Any) -> None:
    if _told.get(id(scorer)) is scorer is not None:
        return
    report_leak(
        "the scores of this search or cross-validation are computed on private rows and are not paid for, nor is a "
        "choice by them: use skdp.DPGridSearchCV, or score on public rows and ignore this warning.",
        stacklevel=4,
    )
    with contextlib.suppress(TypeError):  # what cannot be referred to weakly is told of each time
        _told[id(scorer)] = scorer


def encode_labels(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    """Positions of the labels `y` in the sorted `classes`; a label that is not among them is refused."""
    try:
        codes = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
        known = classes[codes] == y
    except TypeError:
        known = np.zeros(1, bool)
    if not np.all(known):
        raise ValueError(
            f"y contains labels that are not in classes={classes.tolist()!r}: list every class that can occur, "
            "in the type that y has."
        )
    return codes


def distinct_classes(name: str, classes: Any) -> NDArray[Any]:
    """`classes`, any sequence, as a sorted array of at least two distinct values."""
    if not isinstance(classes, Iterable) or isinstance(classes, str | bytes):
        raise ValueError(f"{name}={classes!r} is no sequence of classes: list every class that can occur.")
    try:
        distinct = np.unique(np.asarray(list(classes)))
    except TypeError:
        raise ValueError(f"{name}={classes!r} has classes of several types: give all of one type.") from None
    if len(distinct) < 2:
        raise ValueError(f"{name}={classes!r} names fewer than two classes: list every class that can occur.")
    return distinct


__all__ = ["Budget", "PrivateEstimator", "StepPlan", "distinct_classes", "encode_labels", "report_unpaid_scores"]
