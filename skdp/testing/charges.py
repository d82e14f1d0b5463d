"""Checks of charges: asked before a row is read, made before a release, kept whatever happens."""

from __future__ import annotations

import numpy as np

from skdp.accounting import AddRemove, PrivacyAccountant, get_epsilon
from skdp.audit.parts import parts_of
from skdp.audit.replay import LEAST_DELTA, event_of, least_epsilon
from skdp.exceptions import BudgetExceededError
from skdp.mechanisms.tape import Tape, running
from skdp.testing.demands import RELATIVE_ERROR, Inapplicable, demand
from skdp.testing.subjects import (
    CheckedEstimator,
    heard_fit,
    learned,
    refusal,
    tape_that_calls,
)
from skdp.testing.tables import Sealed


def check_ceiling_is_asked_before_rows_are_read(subject: CheckedEstimator) -> None:
    """A fit above the budget is refused without a look at a cell, and publishes and releases nothing."""
    ledger = PrivacyAccountant(1e-9, 1e-30)
    model, tape = subject.make(ledger), Tape()
    X, y = Sealed(subject.table.X), None if subject.table.y is None else Sealed(np.asarray(subject.table.y))
    with running(tape):
        error = refusal(lambda: model.fit(X, y))
    mend = "Plan from the shape of X, and ask the accountant before anything reads X or y"
    demand(
        not X.was_read and not (y is not None and y.was_read), "fit reads before the accountant has admitted it", mend
    )
    demand(isinstance(error, BudgetExceededError), f"a fit above the budget ends with {type(error).__name__}", mend)
    demand(not ledger.history, "a fit that was refused is charged", mend)
    demand(not any(track.releases for track in tape.tracks), "a fit that was refused releases something", mend)
    demand(not learned(model), "a fit that was refused publishes something", mend)


def check_charge_precedes_releases(subject: CheckedEstimator) -> None:
    """One charge, of all that the fit costs, stands when the first value is released."""
    ledger, found = PrivacyAccountant(), []
    model = subject.make(ledger)
    heard_fit(model, subject.table, tape_that_calls(lambda: found.append(len(ledger.history))))
    mend = "Draw all noise by mechanisms with the stream of the fit, after one charge of the whole"
    if model.epsilon_ == 0.0 and not found:
        raise Inapplicable("it buys nothing as it is set")
    demand(bool(found), "no release passes a mechanism", mend)
    demand(set(found) == {1}, f"{min(found)} charges stand at a release, and {max(found)} at another", mend)
    demand(len(ledger.history) == 1, f"a fit makes {len(ledger.history)} charges", mend)
    charge = ledger.history[0]
    demand(charge.event == model.privacy_event_, "what is charged is not privacy_event_", "Charge what is published")
    demand(charge.adjacency == model.adjacency_, "the charge is for other neighbours", "Charge under adjacency_")


def check_price_is_that_of_the_event(subject: CheckedEstimator) -> None:
    """`epsilon_` is the price of `privacy_event_`, and no more than the parameter `epsilon`."""
    model = subject.fit(subject.table).model
    delta = max(model.delta_, LEAST_DELTA)
    price = get_epsilon(model.privacy_event_, delta, adjacency=model.adjacency_)
    demand(
        abs(price - model.epsilon_) <= (1e-9 if delta == model.delta_ else RELATIVE_ERROR) * price,
        f"epsilon_={model.epsilon_!r} and privacy_event_ costs {price!r}",
        "Publish the price by the fit object, which states that of its plan",
    )
    asked = getattr(model, "epsilon", None)
    is_met = not isinstance(asked, float | int) or model.epsilon_ <= asked
    demand(is_met, f"epsilon_={model.epsilon_!r} exceeds epsilon", "Add more noise")


def check_releases_cost_what_is_charged(subject: CheckedEstimator) -> None:
    """All that was heard, priced as it was released, costs no more than `epsilon_`."""
    for adjacency in ("zero_out", "replace_one", AddRemove(subject.table.X.shape[0])):
        fitted = subject.fit(subject.table, None, **dict.fromkeys(subject.places("adjacency"), adjacency))
        parts = parts_of(fitted)
        if parts.given:
            raise Inapplicable("what a choice among trials costs is a theorem")
        ones = [np.ones(len(track.releases)) for track in fitted.tracks]
        event = event_of(fitted, parts.whole, ones, 1.0)
        cost = least_epsilon(event, fitted.model.delta_, fitted.model.adjacency_)
        demand(
            cost <= fitted.model.epsilon_ * (1.0 + RELATIVE_ERROR),
            f"what was released costs {cost:.6g} under {adjacency!r}, and epsilon_ is {fitted.model.epsilon_:.6g}",
            "Release with the mechanism whose event is charged, charge all releases, and price them under adjacency",
        )


def check_charge_survives_failures(subject: CheckedEstimator) -> None:
    """After an error in the middle the charge stands, nothing new is published, and an earlier fit is whole."""
    mend = "Set attributes by publish of the fit object, and charge before a release"
    for error in (MemoryError, KeyboardInterrupt):
        for fitted_before in (False, True):
            ledger = PrivacyAccountant()
            model = subject.make(ledger)
            if fitted_before:
                heard_fit(model, subject.table, Tape())
            before, charges, failed = learned(model), len(ledger.history), False

            def fail(error: type[BaseException] = error) -> None:
                raise error("planted")

            try:
                heard_fit(model, subject.table, tape_that_calls(fail))
            except error:
                failed = True
            if not failed and learned(model) == before:
                raise Inapplicable("it releases nothing as it is set")
            demand(
                len(ledger.history) == charges + 1, f"{error.__name__} in the middle of a fit undoes its charge", mend
            )
            if failed:
                now = learned(model)
                changed = [name for name in {**before, **now} if before.get(name) != now.get(name)]
                demand(not changed, f"{error.__name__} in the middle of a fit changes {', '.join(changed)}", mend)
            else:
                demand("epsilon_" in learned(model), "an interrupted fit states no epsilon_", mend)
