"""What private estimators, pipelines and searches inherit: their report, and epsilon above their diagram."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any, cast

from sklearn.exceptions import NotFittedError

from skdp._checks.leaks import SEED, UNKNOWN, leaks_of
from skdp.report.as_html import caption_of
from skdp.report.document import PrivacyReport, privacy_report
from skdp.report.sentences import figure


class Reported:
    """Mixin, to stand before ``BaseEstimator`` among the bases of a class."""

    def privacy_report(self, *, evaluation: Any = None) -> PrivacyReport:
        """Report what the fitted model guarantees. See `skdp.privacy_report`.

        Parameters
        ----------
        evaluation : PrivateEvaluation, MulticlassEvaluation or RegressionEvaluation, default=None
            What `skdp.evaluate` says of the model, for a section on quality.

        Returns
        -------
        PrivacyReport
            Report that can be printed, or written as HTML or JSON.
        """
        return privacy_report(self, evaluation=evaluation)

    @property
    def _repr_html_(self) -> Callable[[], str]:
        """Return a function for the diagram with its price; an AttributeError says that no diagram is wanted."""
        diagram = cast("Callable[[], str]", cast(Any, super())._repr_html_)

        def draw() -> str:
            try:
                return price_caption(self) + diagram()
            except ValueError:  # a diagram lists fitted attributes, and a joint price may not exist
                return f"{price_caption(self)}<pre>{html.escape(repr(self))}</pre>"

        return draw

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = {"text/plain": repr(self)}
        if hasattr(self, "_repr_html_"):
            bundle["text/html"] = self._repr_html_()
        return bundle


def price_caption(model: Any) -> str:
    """The price of the present state in a line, nothing before a fit."""
    try:
        epsilon, delta, adjacency = model.epsilon_, model.delta_, model.adjacency_
    except (AttributeError, NotFittedError):
        return ""
    except (TypeError, ValueError):  # parts that have no joint price
        return caption_of("The parts have no joint epsilon: fit the whole again.", warns=True)
    leaks = leaks_of(model)
    unit = getattr(model, "privacy_unit_", "row")
    text = f"\u03b5 = {figure(epsilon)} at \u03b4 = {delta:g} for one {unit} ({adjacency})"
    if any(leak.kind == SEED for leak in leaks):
        text += "; not against those who know the seed"
    if any(leak.kind not in (SEED, UNKNOWN) for leak in leaks):
        text += "; something was read without payment, see privacy_report()"
    return caption_of(text, warns=";" in text)


__all__ = ["Reported", "price_caption"]
