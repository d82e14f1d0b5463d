"""Diagrams of private estimators, pipelines and searches, with the privacy cost of their present state above."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any, NoReturn, cast

from sklearn.exceptions import NotFittedError

from skdp._checks.leaks import SEED, UNKNOWN, leaks_of
from skdp.accounting.ledger.html import caption_of
from skdp.accounting.ledger.report import to_digits


class UseFunction:
    """Attribute that does not exist, whose error names the function to use."""

    def __init__(self, function: str) -> None:
        self._function = function

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type) -> NoReturn:
        raise AttributeError(f"{owner.__name__} has no method {self._name!r}: use {self._function}(model).")


class Diagram:
    """Mixin, to stand before ``BaseEstimator`` among the bases of a class."""

    privacy_report = UseFunction("skdp.privacy_report")
    to_onnx = UseFunction("skdp.export.to_onnx")

    @property
    def _repr_html_(self) -> Callable[[], str]:
        """Return a function for the diagram; an AttributeError says that no diagram is wanted."""
        diagram = cast("Callable[[], str]", cast(Any, super())._repr_html_)

        def draw() -> str:
            try:
                return epsilon_caption(self) + diagram()
            except ValueError:  # a diagram lists fitted attributes, and a joint epsilon may not exist
                return f"{epsilon_caption(self)}<pre>{html.escape(repr(self))}</pre>"

        return draw

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = {"text/plain": repr(self)}
        if hasattr(self, "_repr_html_"):
            bundle["text/html"] = self._repr_html_()
        return bundle


def epsilon_caption(model: Any) -> str:
    """Return the privacy cost of the present state in a line, nothing before a fit."""
    try:
        epsilon, delta, adjacency = model.epsilon_, model.delta_, model.adjacency_
    except (AttributeError, NotFittedError):
        return ""
    except (TypeError, ValueError):  # parts that have no joint epsilon
        return caption_of("The parts have no joint epsilon: fit the whole again.", warns=True)
    leaks = leaks_of(model)
    unit = getattr(model, "privacy_unit_", "row")
    text = f"\u03b5 = {to_digits(epsilon, 5, up=True)} at \u03b4 = {delta:g} for one {unit} ({adjacency})"
    if any(leak.kind == SEED for leak in leaks):
        text += "; not against those who know the seed"
    if any(leak.kind not in (SEED, UNKNOWN) for leak in leaks):
        text += "; something was read without payment, see skdp.privacy_report"
    return caption_of(text, warns=";" in text)


__all__ = ["Diagram", "epsilon_caption"]
