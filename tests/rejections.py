"""What every rejection of a fit is: one line without a private value, before any charge; and no model is left."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

from skdp import PrivacyAccountant


def assert_rejected(
    make: Callable[..., Any],
    parameters: Mapping[str, Any],
    given: Mapping[str, Any],
    words: Iterable[str],
    hidden: Iterable[str] = (),
    *,
    method: str = "fit",
    errors: tuple[type[Exception], ...] = (ValueError, TypeError),
) -> None:
    """A model of these parameters rejects what it is given by a message that has all words, and nothing hidden."""
    accountant = PrivacyAccountant()
    model = make(**{"accountant": accountant, **parameters})
    with pytest.raises(errors) as rejection:
        getattr(model, method)(**given)
    message = str(rejection.value)
    assert "\n" not in message
    assert all(word in message for word in words), message
    assert not any(value in message for value in hidden)
    assert rejection.value.__context__ is None
    assert accountant.history == ()
    assert not hasattr(model, "epsilon_")
