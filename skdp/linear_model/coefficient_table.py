"""Regression summary tables, as text, HTML, LaTeX and frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from sklearn.utils.validation import check_is_fitted

from skdp._checks.groups import estimand_of
from skdp._checks.parameters import check_real, show, without_removed
from skdp.accounting.ledger.report import escaped, one_line
from skdp.linear_model.inference import Inference

_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        **{each: f"\\{each}" for each in "&%$#_{}"},
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
    }
)


class CoefficientTable:
    """Regression summary: coefficients with standard errors, confidence intervals and tests.

    The ``summary`` method of an estimator returns it. It is post-processing of the fit: no row is read, and no budget
    is consumed. If a coefficient has no valid interval, its row states the reason.

    Parameters
    ----------
    fitted : estimator
        Fitted estimator.
    names : list of str
        Names of the coefficients.
    inference : Inference
        Estimates and their standard errors.
    title : str, default="Private least squares"
        Name of the model in the heading.
    meaning : str, default=""
        Quantity that the coefficients are slopes of, if it is not the target.
    level : float, default=0.95
        Confidence level of the intervals.
    simultaneous : bool, default=False
        Whether the level holds for all intervals jointly (Bonferroni).

    See Also
    --------
    skdp.DPLinearRegression : Linear regression, with notes on the standard errors.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLinearRegression
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(20_000, 3))
    >>> y = X @ [3.0, -2.0, 1.0] + np.random.default_rng(1).normal(size=20_000) + 4.0
    >>> model = DPLinearRegression((-10, 10), data_norm=3**0.5, inference=True).fit(X, y)
    >>> table = model.summary().to_frame()
    >>> table["coef"].round()
    x0             3.0
    x1            -2.0
    x2             1.0
    (intercept)    4.0
    Name: coef, dtype: float64
    """

    def __init__(
        self, fitted: Any, names: list[str], inference: Inference, *, title: str = "Private linear regression",
        meaning: str = "", level: float = 0.95, simultaneous: bool = False,
    ) -> None:  # fmt: skip
        self.level = check_real("level", level, above=0, below=1, constraint="a number in (0, 1), such as 0.95")
        self.simultaneous = bool(simultaneous)
        self._names, self._inference = [one_line(each) for each in names], inference
        unit = "row" if fitted.privacy_unit_ == "row" else "group"
        limit = getattr(fitted, "rows_per_group", None)
        rows = "one row" if limit in (None, 1) else f"{limit} rows"
        self._estimand = estimand_of(fitted.privacy_unit_, f"{rows} of the largest norm")
        # Facts that a reader needs to judge the table, all of them public or released.
        cut, noise = inference.cut
        cuts = f"rows clipped to norm {fitted.data_norm_:.6g}"
        if hasattr(fitted, "y_bounds_"):
            low, high = fitted.y_bounds_
            cuts += f", targets to [{low:.6g}, {high:.6g}]"
        self._title = f"{title}: {type(fitted).__name__}"
        self._facts = [
            f"epsilon={fitted.epsilon_:.4g}, delta={fitted.delta_:g}, privacy unit: one {unit} ({fitted.adjacency_})",
            f"{inference.n} {unit}s (public number); {cuts}",
            f"clipped {unit}s: {100 * max(cut, 0.0):.2g}% (noisy estimate, standard deviation {100 * noise:.2g}%)",
            f"{100 * self.level:.6g}% confidence intervals{', simultaneous' if self.simultaneous else ''}; share: "
            "fraction of the variance due to the privacy noise",
        ]
        if self._estimand:
            self._facts.append(self._estimand)
        if meaning:
            self._facts.append(f"coefficients are slopes of {one_line(meaning)}")
        if all(inference.doubts) and fitted._fitted_row_norm is not None:
            self._facts.append(
                "no intervals: the vectorizer encodes all categories of a column, which are collinear. Use "
                "skdp.preprocessing.formula_rows, which omits a reference category"
            )

    def to_frame(self) -> Any:
        """Return the table as a frame.

        Returns
        -------
        frame : pandas.DataFrame
            One row per coefficient. The columns are ``coef``, ``std_err``, its parts ``sampling`` and ``noise``, the
            ``noise_fraction`` of the variance, ``z``, ``p``, ``low``, ``high``, and ``doubt``, the reason if there is
            no interval. Without an interval, all numbers except ``coef`` are NaN. The rest of ``std_err`` is due to
            worst cases (see ``docs/inference.md``). With `groups`, ``frame.attrs["estimand"]`` states the weight of a
            group.
        """
        import pandas as pd

        found = self._inference
        holds = np.array([not each for each in found.doubts])
        error = found.error
        tails = (1.0 - self.level) / (len(holds) if self.simultaneous else 1)
        reach = stats.norm.isf(tails / 2.0) * error
        z = found.estimate / error
        figures = {
            "std_err": error, "sampling": found.sampling, "noise": found.noise,
            "noise_fraction": (found.noise / error) ** 2, "z": z, "p": 2.0 * stats.norm.sf(np.abs(z)),
            "low": found.estimate - reach, "high": found.estimate + reach,
        }  # fmt: skip
        # Where there is a doubt, the coefficient stands alone.
        shown = {name: np.where(holds, values, np.nan) for name, values in figures.items()}
        frame = pd.DataFrame({"coef": found.estimate, **shown, "doubt": found.doubts}, index=self._names)
        frame.attrs |= {"estimand": self._estimand} if self._estimand else {}
        return frame

    def _lines(self) -> list[tuple[str, list[str], str]]:
        """Name, cells and doubt of each line; a line has cells or a doubt, but for its coefficient."""
        lines = []
        for name, row in zip(self._names, self.to_frame().itertuples(index=False), strict=True):
            cells = [f"{row.coef:.4g}", *(f"{each:.3g}" for each in row[1:4]), f"{row.noise_fraction:.0%}"]
            cells += [f"{row.z:.2f}", f"{row.p:.3f}", f"{row.low:.4g}", f"{row.high:.4g}"]
            lines.append((name, cells[:1] if row.doubt else cells, str(row.doubt)))
        return lines

    @property
    def _header(self) -> list[str]:
        tail = (1.0 - self.level) / 2.0
        names = ("coef", "std err", "sampling", "noise", "share", "z", "P>|z|")
        return [*names, f"[{tail:.4g}", f"{1.0 - tail:.4g}]"]

    def __str__(self) -> str:
        lines, header = self._lines(), self._header
        first = max([len(name) for name, _, _ in lines] + [11])
        columns = [[head, *(cells[k] for _, cells, _ in lines if len(cells) > k)] for k, head in enumerate(header)]
        widths = [max(map(len, column)) for column in columns]

        def line(name: str, cells: list[str], doubt: str = "") -> str:
            row = "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=False))
            return f"{name.ljust(first)}  {row}" + (f"  no interval: {doubt}" if doubt else "")

        head = line("", header)
        rule = len(head)
        above = [self._title.center(rule).rstrip(), "=" * rule, *self._facts, "-" * rule, head, "-" * rule]
        return "\n".join([*above, *(line(*each) for each in lines), "=" * rule])

    __repr__ = __str__

    def to_html(self) -> str:
        """Return the table as HTML.

        Returns
        -------
        html : str
            HTML element without scripts, links or styles.
        """
        heads = "".join(f"<th>{escaped(each)}</th>" for each in ["", *self._header])
        body = ""
        for name, cells, doubt in self._lines():
            rest = f'<td colspan="{len(self._header) - 1}">no interval: {escaped(doubt)}</td>' if doubt else ""
            body += f"<tr><th>{escaped(name)}</th>{''.join(f'<td>{escaped(each)}</td>' for each in cells)}{rest}</tr>"
        facts = "<br>".join(escaped(each) for each in self._facts)
        return (
            f"<table><caption>{escaped(self._title)}<br><small>{facts}</small></caption><thead><tr>{heads}</tr></thead>"
            f"<tbody>{body}</tbody></table>"
        )

    _repr_html_ = to_html

    def to_latex(self) -> str:
        """Return the table as LaTeX that requires no package.

        Returns
        -------
        text : str
            A ``tabular`` environment, with the privacy cost in preceding comments.
        """

        def row(cells: list[str]) -> str:
            return " & ".join(cells) + r" \\"

        rows = []
        for name, cells, doubt in self._lines():
            span = len(self._header) - 1
            rest = [rf"\multicolumn{{{span}}}{{l}}{{no interval: {doubt.translate(_LATEX)}}}"] if doubt else []
            rows.append(row([name.translate(_LATEX), *(each.translate(_LATEX) for each in cells), *rest]))
        comments = [f"% {each}" for each in [self._title, *self._facts]]
        columns = "l" + "r" * len(self._header)
        head = row(["", *(f"{{{each.translate(_LATEX)}}}" for each in self._header)])
        above = [*comments, rf"\begin{{tabular}}{{{columns}}}", r"\hline", head, r"\hline"]
        return "\n".join([*above, *rows, r"\hline", r"\end{tabular}"])


class HasCoefficientTable:
    """Mixin for estimators with a regression summary."""

    _fitted_inference: Inference | None = None
    _table_title: ClassVar[str]
    _table_meaning: ClassVar[str] = ""
    n_features_in_: int

    def _table_heads(self) -> tuple[str, str, Sequence[str]]:
        """Title of the table, what coefficients are of where that is not the target, and names of several lines."""
        return self._table_title, self._table_meaning, ()

    def _names_of_constants(self, count: int) -> list[str]:
        """Names of the constants after the coefficients of the columns: one intercept, or none."""
        return ["(intercept)"] * count

    @without_removed
    def summary(
        self, *, level: float = 0.95, simultaneous: bool = False, names: Sequence[str] | None = None,
        scales: ArrayLike | None = None,
    ) -> CoefficientTable:  # fmt: skip
        """Return the regression summary: coefficients, standard errors, confidence intervals and tests.

        It is post-processing of the releases of ``fit``. `DPLinearRegression`, `DPRidge` and `DPLogisticRegression`
        require ``inference=True``.

        Parameters
        ----------
        level : float, default=0.95
            Confidence level of the intervals.
        simultaneous : bool, default=False
            Whether the level holds for all intervals jointly (Bonferroni).
        names : sequence of str or None, default=None
            Public names of the columns. After a vectorizer, pass ``pipeline[:-1].get_feature_names_out()``. None uses
            `feature_names_in_`, or x0, x1 and so on.
        scales : array-like of shape (n_features,) or None, default=None
            Public numbers by which columns were divided before the fit, such as half the width of their bounds.
            Coefficients then refer to the original columns. The intercept refers to columns that are all 0 in the fit.

        Returns
        -------
        table : CoefficientTable
            Table that prints as text and in notebooks, with methods ``to_frame`` and ``to_latex``. With more than two
            classes, it has one block of rows per class.
        """
        check_is_fitted(self)
        found = self._fitted_inference
        if found is None:
            raise ValueError(
                "summary is not available for these coefficients. Fit with inference=True, and call summary before "
                "make_monotonic."
            )
        count = self.n_features_in_
        if names is None:
            names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(count)])
        if isinstance(names, str) or not hasattr(names, "__len__") or len(names) != count:
            raise ValueError(f"`names` must be a list of {count} names, one per column, got {show(names)}.")
        if scales is not None:
            try:
                given = np.asarray(scales, np.float64)
            except (TypeError, ValueError):
                given = np.empty(0)
            if given.shape != (count,) or not ((given > 0.0) & (given < np.inf)).all():
                raise ValueError(
                    f"`scales` must be a list of {count} positive numbers, one per column, got {show(scales)}."
                )
            found = found.unscaled(given)
        # One intercept or several constants follow the columns; with several classes, each has a line of its own.
        title, meaning, lines = self._table_heads()
        each = [*map(str, names), *self._names_of_constants(len(found.estimate) // found.n_lines - count)]
        if found.n_lines > 1:
            each = [f"{line}: {name}" for line in lines for name in each]
        heads = {"title": title, "meaning": meaning}
        return CoefficientTable(self, each, found, **heads, level=level, simultaneous=simultaneous)
