"""`PrivacyReport`: the facts about a fitted model, and their forms."""

from __future__ import annotations

import copy
import json
import os
from typing import Any, Self

from skdp.report.as_html import document_of, fragment_of
from skdp.report.as_text import text_of
from skdp.report.report_data import SCHEMA, SCHEMA_VERSION, gather


class PrivacyReport:
    """What a fitted model guarantees, how that was accounted, and what is not covered.

    Use `privacy_report` to make one. A report is a copy: it does not change with the model. It holds no value of the
    data, no seed and no path. Two fits to neighbouring tables give the same report, as it is a function of constructor
    parameters and of the public schema.

    Parameters
    ----------
    facts : dict
        Facts, as `to_dict` returns them.

    Raises
    ------
    ValueError
        `facts` are not those of a report of this version of the schema.

    See Also
    --------
    privacy_report : Make the report of a fitted model.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPPCA, privacy_report
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(20_000, 5))
    >>> report = privacy_report(DPPCA(2, epsilon=1.0, delta=1e-6).fit(X))
    >>> print(str(report).splitlines()[0])
    Privacy report: DPPCA
    >>> report.to_dict()["guarantee"]["delta"]
    1e-06
    """

    def __init__(self, facts: dict[str, Any]) -> None:
        held = (facts.get("schema"), facts.get("schema_version")) if isinstance(facts, dict) else (None, None)
        if held != (SCHEMA, SCHEMA_VERSION):
            raise ValueError(
                f"facts are not those of a {SCHEMA} of version {SCHEMA_VERSION}: give what to_dict or to_json returned."
            )
        self._facts = copy.deepcopy(facts)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a report.

        Parameters
        ----------
        text : str
            What `to_json` returned.

        Returns
        -------
        PrivacyReport
            The same report.

        Raises
        ------
        ValueError
            The text is no report, or lacks facts that one has.
        """
        try:
            report = cls(json.loads(text))
            str(report), report.to_html()  # what cannot be written is none: these read all facts
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            told = f"{type(error).__name__}: {error}" if isinstance(error, ValueError) else type(error).__name__
            raise ValueError(f"text is no report ({told[:200]}): give what to_json returned.") from None
        return report

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as plain data.

        Returns
        -------
        dict
            Copy of the facts. Keys are the same for all models of one ``schema_version``.
        """
        return copy.deepcopy(self._facts)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the facts as JSON.

        Parameters
        ----------
        path : str, path-like or None, default=None
            File to write as well.

        Returns
        -------
        str
            JSON in ASCII, without "<", ">" and "&", so that it can stand in a page.
        """
        text = json.dumps(self._facts, indent=2, allow_nan=False)
        for each in "<>&":
            text = text.replace(each, f"\\u{ord(each):04x}")
        return _written(text + "\n", path)

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the report as an HTML document, which needs no other file.

        Parameters
        ----------
        path : str, path-like or None, default=None
            File to write as well.

        Returns
        -------
        str
            HTML document.
        """
        return _written(document_of(self._facts), path)

    def __str__(self) -> str:
        return text_of(self._facts)

    def __repr__(self) -> str:
        guarantee = self._facts["guarantee"]
        return f"<PrivacyReport of epsilon={guarantee['epsilon']!r} at delta={guarantee['delta']!r}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PrivacyReport) and self._facts == other._facts

    def __hash__(self) -> int:
        return hash(self.to_json())

    def _repr_html_(self) -> str:
        return fragment_of(self._facts)


def privacy_report(model: Any, *, evaluation: Any = None) -> PrivacyReport:
    """Report what a fitted model guarantees, in a form that can be handed on.

    The report states epsilon and delta with their meaning, how they were accounted, all noise and clips, what was
    public, what was read without payment, what is not covered, and what tuning cost. It has the items that a
    publication should state (Ponomareva et al. 2023, section 5.3) and a checklist by NIST SP 800-226.

    Parameters
    ----------
    model : object
        Fitted private estimator, pipeline from `allocate_budget`, or private search.
    evaluation : PrivateEvaluation, MulticlassEvaluation or RegressionEvaluation, default=None
        What `skdp.evaluate` says of the model, for a section on quality. None takes the table that a
        `skdp.DPCalibratedClassifier` or `skdp.DPThresholdClassifier` follows from, if the model is one.

    Returns
    -------
    PrivacyReport
        Print it for text; `PrivacyReport.to_html` and `PrivacyReport.to_json` give other forms.

    Raises
    ------
    TypeError
        `model` has no privacy budget of its own, like an estimator of scikit-learn; `evaluation` is none.
    sklearn.exceptions.NotFittedError
        `model` is not fitted.
    ValueError
        The ``epsilon_`` of `model` is below what its ``privacy_event_`` costs.

    See Also
    --------
    skdp.PrivacyAccountant : Ledger that adds up several fits.

    Notes
    -----
    **Guarantees.**

    - Figures are ``epsilon_`` and ``delta_`` of the model, and prices of its ``privacy_event_``. As text and HTML they
      are never below the exact ones.
    - A report reads no row: fits to neighbouring tables with the same noise have equal reports, if classes are named.
    - The probability of a right guess is at most (e^epsilon + delta) / (1 + e^epsilon), and at most (1 + delta(0)) / 2
      by the privacy profile delta(epsilon).
    - What the fit read without payment, and whether its noise was seeded, is reported as it was at the fit, without a
      label and without the seed.

    The bounds on a guess are proved in `skdp.report.price`. Constructor parameters are those that the model has now.

    References
    ----------
    Ponomareva et al. (2023), "How to DP-fy ML: a practical guide to machine learning with differential privacy".

    Near, Darais, Lefkovitz & Howarth (2025), "Guidelines for evaluating differential privacy guarantees", NIST SP
    800-226.

    Kairouz, Oh & Viswanath (2015), "The composition theorem for differential privacy".

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLogisticRegression, privacy_report
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(20_000, 5))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> model = DPLogisticRegression(epsilon=1.0, delta=1e-6, classes=[0, 1]).fit(X, y)
    >>> facts = privacy_report(model).to_dict()
    >>> facts["noise"], facts["unaccounted"]["reads"]
    ({'source': 'secret'}, [])
    """
    return PrivacyReport(gather(model, evaluation))


def _written(text: str, path: str | os.PathLike[str] | None) -> str:
    if path is not None:
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
    return text
