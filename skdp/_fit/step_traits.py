"""What a pipeline asks of a step before it is fitted: one public value, in the manner of scikit-learn's tags."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["StepTraits", "traits_of"]


def _no_fault(before: Any) -> str:
    return ""


@dataclass(frozen=True)
class StepTraits:
    """What constructor parameters alone say of a step, returned by its method ``__step_traits__``.

    Attributes
    ----------
    width_is_public : bool, default=True
        Whether the number of columns of a transformed table is known before the fit.
    sets_width : bool, default=False
        Whether that number does not depend on the number of columns of the rows.
    gives_sparse_rows : bool, default=False
        Whether a transformed table may be sparse.
    gives_codes : bool, default=False
        Whether transformed rows are codes of columns that carry their public schema.
    gives_norms : bool, default=False
        Whether transformed rows carry a bound on their norm, as no frame does.
    takes_codes : bool, default=False
        Whether rows have to be such codes, with NaN for gaps. NaN and infinity are set to zero for all other steps
        behind a private one.
    fault_behind : callable
        ``fault_behind(before)`` says why rows of the step `before` might be refused, which would be after the charge;
        "" if they are not. The pipeline is refused by that line.
    row_form : callable or None, default=None
        ``row_form(n_features)`` returns the public form of transformed rows of a table of `n_features` columns, or
        None.
    note_whole : callable or None, default=None
        ``note_whole(n_public, epsilon)`` is called before the fit with the public number of rows and the price of the
        whole pipeline, for a rule in them.
    fraction : float or None, default=None
        Part of the budget's mu**2 that a transformer gets if nothing is said, None for that of most of them.
    """

    width_is_public: bool = True
    sets_width: bool = False
    gives_sparse_rows: bool = False
    gives_codes: bool = False
    gives_norms: bool = False
    takes_codes: bool = False
    fault_behind: Callable[[Any], str] = _no_fault
    row_form: Callable[[int], Any] | None = None
    note_whole: Callable[[int, float], None] | None = None
    fraction: float | None = None


def traits_of(step: Any) -> StepTraits:
    """Return the traits of a step, or the defaults if it does not define any."""
    tell = getattr(step, "__step_traits__", None)
    return tell() if callable(tell) else StepTraits()
