"""`PrivacyReport`: the facts about a fitted model, as text, HTML and JSON."""

from __future__ import annotations

import copy
import importlib.resources
import json
import os
import textwrap
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

from skdp.accounting.ledger.report import escaped, html_table, without_empty_columns
from skdp.report import sentences as wording
from skdp.report.report_data import SCHEMA, SCHEMA_VERSION, gather
from skdp.report.sentences import Facts, TableCells, figure, one_line, percent

REFERENCES = (
    "Dwork, McSherry, Nissim & Smith (2006), Calibrating noise to sensitivity in private data analysis.",
    "Kairouz, Oh & Viswanath (2015), The composition theorem for differential privacy, theorem 2.1.",
    "Ponomareva et al. (2023), How to DP-fy ML, section 5.3, arXiv:2303.00654.",
    "Article 29 Working Party (2014), Opinion 05/2014 on anonymisation techniques, WP216.",
    "Bun & Steinke (2016), Concentrated differential privacy: simplifications, extensions, and lower bounds.",
    "Near, Darais, Lefkovitz & Howarth (2025), Guidelines for evaluating differential privacy guarantees, NIST SP "
    "800-226, doi:10.6028/NIST.SP.800-226.",
)


class Listing(NamedTuple):
    """A table; the first cell of a row is its header."""

    caption: str
    header: tuple[str, ...]
    rows: TableCells


class Section(NamedTuple):
    """A section; `notices` are paragraphs to be read first."""

    key: str
    title: str
    paragraphs: list[str]
    tables: list[Listing]
    notices: list[str]


def title(facts: Facts) -> str:
    """Title of the document."""
    return f"Privacy report: {facts['model']['class']}"


def sections(facts: Facts) -> list[Section]:
    """All sections, in order."""
    tuning = Section("tuning", "Privacy cost of tuning", [wording.tuned(facts)], [], [])
    asked = Listing("Bounds for each question", ("question", "bounded", "not bounded"), wording.opinion_rows(facts))
    opinion = Section("opinion", "Singling out, linking and inference", wording.opinion(facts), [asked], [])
    made = [_summary(facts), _guarantee(facts), opinion, _accounting(facts), _noise(facts), _shares(facts), tuning]
    made += [_quality(facts), _effects(facts), _public(facts), _unaccounted(facts)]
    if facts["notices"]:
        notices = [each[:1].upper() + each[1:] for each in facts["notices"]]
        made.append(Section("notices", "Quality diagnostics", notices, [], []))
    outside = Listing("Topics", ("topic", "meaning"), [*wording.not_covered(facts)])
    made += [Section("not_covered", "Outside the guarantee", [], [outside], []), _checklists(facts), _versions(facts)]
    return [each for each in made if each is not None]


def _summary(facts: Facts) -> Section:
    exceptions, adjacency = wording.exceptions(facts), facts["guarantee"]["adjacency"]
    rows: TableCells = [
        ("Epsilon", figure(facts["guarantee"]["epsilon"])),
        ("Delta", f"{facts['guarantee']['delta']:g}"),
        ("Attacker's accuracy, by epsilon and delta", wording.known(facts, "attacker_accuracy", percent)),
        ("Attacker's accuracy, by the privacy profile", wording.known(facts, "attacker_accuracy_by_profile", percent)),
        (
            "mu of Gaussian DP" + ("" if facts["guarantee"]["rho"] else ", for error rates of at least 1e-6"),
            wording.known(facts, "mu"),
        ),
        ("rho of zero-concentrated DP, mu^2 / 2", wording.known(facts, "rho")),
        ("Membership inference advantage (TPR - FPR)", wording.known(facts, "advantage", wording.exact_percent)),
        ("TPR at 1% FPR", wording.known(facts, "tpr_at_1_percent_fpr", wording.exact_percent)),
        ("TPR at 0.1% FPR", wording.known(facts, "tpr_at_01_percent_fpr", wording.exact_percent)),
        ("Privacy unit", wording.unit(facts)),
        ("Neighboring relation", f"{adjacency}: {_IN_SHORT[adjacency].format(unit=wording.word(facts))}"),
        ("Noise", wording.noise(facts)),
    ]
    notices = ["The guarantee holds with these exceptions.", *exceptions] if exceptions else []
    figures = Listing(
        "Key values", ("quantity", "value"), [row for row in rows if row[0][:3] != "rho" or facts["guarantee"]["rho"]]
    )
    return Section("summary", "Summary", [wording.layperson(facts)], [figures], notices)


_IN_SHORT = {
    "zero_out": "one {unit} is replaced by a zeroed-out {unit}",
    "add_remove": "one {unit} is added or removed",
    "replace_one": "one {unit} is replaced by another",
}


def _guarantee(facts: Facts) -> Section:
    words = [wording.formal(facts), wording.neighbors(facts), wording.tighter(facts), wording.people(facts)]
    words += [wording.delta_and_rows(facts), wording.outcome(facts), wording.partition(facts)]
    return Section("guarantee", "Guarantee", [each for each in words if each], [], [])


def _accounting(facts: Facts) -> Section:
    words = [wording.method(facts), wording.certified(facts), wording.sampling(facts)]
    words.append(f"Data accesses covered: {wording.accesses(facts)}")
    if facts["model"]["has_accountant"]:
        words.append(
            "The accountant records the total privacy cost of all charges. This report states that of the model."
        )
    return Section("accounting", "Accounting", [*words, f"Releases: {facts['accounting']['event']}."], [], [])


def _noise(facts: Facts) -> Section:
    found = facts["mechanisms"]
    rows: TableCells = []
    for each in found["rows"]:
        rate, used = each["sampling_rate"], ""
        if each["noise_multiplier"] is not None:
            used = each["rows"] + ("" if rate == 1.0 else f", rate {rate:.6g}")
        cells = (each["mechanism"], str(each["times"]), _optional(each["noise_multiplier"]), used)
        rows.append((*cells, each["within"], each["note"]))
    if found["number"] > len(rows):
        rows.append((f"... and {found['number'] - len(rows)} more", "", "", "", "", ""))
    header = ("release", "times", "noise multiplier", "computed from", "within", "note")
    tables = [Listing("Releases with noise", header, rows)]
    for each in facts["constants"]:
        constants: TableCells = [(row["name"], _optional(row["value"]), row["meaning"]) for row in each["rows"]]
        if constants:
            of = f" of {each['part']}" if each["part"] else ""
            tables.append(Listing(f"Public constants{of}, last run", ("attribute", "value", "meaning"), constants))
    return Section("noise", "Noise and clipping", [wording.noise(facts)], tables, [])


def _optional(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return str(value) if isinstance(value, int) else f"{value:.6g}"


def _shares(facts: Facts) -> Section | None:
    if not facts["fractions"]:
        return None
    rows: TableCells = [
        (e["part"], figure(e["epsilon_alone"]), f"{100 * e['fraction']:.1f}%") for e in facts["fractions"]
    ]
    words = (
        "The epsilon of all steps is less than the sum over the steps. The fraction of a step is its part of the sum "
        "of mu squared, where mu is that of the Gaussian mechanism with the same epsilon."
    )
    table = Listing("Private steps", ("step", "epsilon alone", "fraction"), rows)
    return Section("fractions", "Budget per step", [words], [table], [])


def _quality(facts: Facts) -> Section | None:
    found = facts["quality"]
    if found is None:
        return None
    rows: TableCells = [
        (each["name"], *(f"{each[k]:.4g}" for k in ("value", "low", "high"))) for each in found["figures"]
    ]
    header = ("metric", "value", "low", "high")
    caption = f"Private metrics, with {found['level']:.0%} intervals"
    return Section("quality", "Quality", [wording.quality(facts)], [Listing(caption, header, rows)], [])


def _effects(facts: Facts) -> Section | None:
    if not facts["effects"]:
        return None
    rows: TableCells = []
    for each in facts["effects"]:
        noise = "not available" if each["noise"] is None else f"{each['noise']:.2g}"
        rows.append((each["column"], each["low"], each["high"], f"{each['difference']:.3g}", noise))
    words = (
        f"The table lists the two public values of each column between which the mean score, in units of "
        f"{facts['effects'][0]['unit']}, differs most. The mean is over public values of the other columns. The noise "
        "is the standard deviation of the difference between two fixed values if no row had an effect. The largest of "
        "many differences can be a few times as large by noise alone. These values have no additional privacy cost."
    )
    header = ("column", "lowest at", "highest at", "difference", "noise")
    return Section("effects", "Effects of the columns", [words], [Listing("Effects of columns", header, rows)], [])


def _public(facts: Facts) -> Section:
    found = facts["public"]
    n, kind = facts["guarantee"]["n_units_public"], "which is public"
    if found["n_units"] == "private":
        kind = "a public estimate; the number in the table is private and not shown"
    rows: TableCells = [(f"number of {wording.word(facts)}s", kind if n is None else f"{n}, {kind}")]
    if found["n_features"] is not None:
        rows.append(("number of columns", str(found["n_features"])))
    if found["feature_names"] is not None:
        more = (found["n_features"] or 0) - len(found["feature_names"])
        names = ", ".join(found["feature_names"]) + (f" and {more} more" if more > 0 else "")
        rows.append(("names of columns", names))
    if found["classes"] is not None:
        rows.append(("classes", ", ".join(found["classes"])))
    rows += [("step " + each["part"], each["class"]) for each in facts["model"]["public_steps"]]
    parameters: TableCells = [(each["name"], each["value"]) for each in found["parameters"]]
    tables = [
        Listing("Schema", ("item", "value"), rows),
        Listing("Current constructor parameters", ("parameter", "value"), parameters),
    ]
    keys = ("name", "kind", "known", "source", "lost")
    columns: TableCells = [tuple(each[key] for key in keys) for each in found["columns"]]
    if columns:
        header = ("column", "type", "public values", "source", "cells without information")
        tables.insert(1, Listing("Columns of the table", header, columns))
    return Section("public", "Public information", ["The guarantee does not protect this information."], tables, [])


def _unaccounted(facts: Facts) -> Section:
    reads = [each["text"] for each in facts["unaccounted"]["reads"]]
    words = reads or ["None was detected during the fit."]
    if not facts["unaccounted"]["recorded"]:
        words = [*reads, "They were not recorded, or not always."]
    return Section("unaccounted", "Unaccounted reads of the data", words, [], [])


def _checklists(facts: Facts) -> Section:
    stated = "Items to state in a publication (How to DP-fy ML, section 5.3)"
    publication = Listing(stated, ("item", "answer"), wording.publication_rows(facts))
    pyramid = "Blocks of the pyramid of NIST SP 800-226, from the top"
    nist = Listing(pyramid, ("block", "status", "answer"), wording.nist_rows(facts))
    return Section("checklists", "Checklists", [], [publication, nist], [])


def _versions(facts: Facts) -> Section:
    table = Listing("Versions", ("package", "version"), [*facts["versions"].items()])
    return Section("versions", "Versions and citation", [f"Cite: {citation(facts)}", *REFERENCES], [table], [])


def citation(facts: Facts) -> str:
    """How to cite the library, as in CITATION.cff."""
    version = facts["versions"]["skdp"]
    return f"The skdp developers, skdp: differentially private estimators for scikit-learn, version {version}."


_WIDTH, _LEAST = 100, 8


def text_of(facts: Facts) -> str:
    """All sections, one line feed between lines; names hold none."""
    head = one_line(title(facts))
    lines = [head, "=" * len(head)]
    for section in sections(facts):
        lines += ["", *_text_section(section)]
    return "\n".join(lines) + "\n"


def _text_section(section: Section) -> Iterator[str]:
    yield from (section.title, "-" * len(section.title))
    for notice in section.notices:
        yield from textwrap.wrap(one_line(notice), _WIDTH, initial_indent="! ", subsequent_indent="  ")
    for number, paragraph in enumerate(section.paragraphs):
        yield from ([""] if number or section.notices else [])
        yield from textwrap.wrap(one_line(paragraph), _WIDTH)
    for table in section.tables:
        yield from ("", f"{one_line(table.caption)}:", *_text_table(table))


def _text_table(table: Listing) -> Iterator[str]:
    rows = [[one_line(cell) for cell in row] for row in without_empty_columns(table.header, table.rows)]
    widths = _widths([max(map(len, column)) for column in zip(*rows, strict=True)])
    for row in rows:
        cells = [textwrap.wrap(cell, width) or [""] for cell, width in zip(row, widths, strict=True)]
        for k in range(max(map(len, cells))):
            parts = [(cell[k] if k < len(cell) else "").ljust(width) for cell, width in zip(cells, widths, strict=True)]
            yield ("  " + "  ".join(parts)).rstrip()


def _widths(wanted: list[int]) -> list[int]:
    """Widths of columns that fit in a line; the widest columns are narrowed."""
    widths = list(wanted)
    while widths and sum(widths) + 2 * len(widths) > _WIDTH and max(widths) > _LEAST:
        widths[widths.index(max(widths))] -= 1
    return widths


_STYLE = "\n" + importlib.resources.files("skdp.report").joinpath("report.css").read_text("utf-8")


def fragment_of(facts: Facts) -> str:
    """The report as one element with its style, for a notebook."""
    body = "".join(_html_section(each) for each in sections(facts))
    return (
        f'<div class="skdp-report"><style>{_STYLE}</style><main><header><h1>{escaped(title(facts))}</h1></header>'
        f"{body}</main></div>"
    )


def document_of(facts: Facts) -> str:
    """The report as a document."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escaped(title(facts))}</title>\n"
        "<style>body { margin: 0; } @media (prefers-color-scheme: dark) { body { background: #14171b; } } "
        "@media print { body { background: #ffffff; } }</style>\n"
        f"</head>\n<body>\n{fragment_of(facts)}\n</body>\n</html>\n"
    )


def _html_section(section: Section) -> str:
    name = f"skdp-{escaped(section.key)}"
    notices = "".join(f"<p>{escaped(each)}</p>" for each in section.notices)
    parts = [f'<div class="skdp-notice" role="note">{notices}</div>' if notices else ""]
    parts += [f"<p>{escaped(each)}</p>" for each in section.paragraphs]
    parts += [_html_table(each) for each in section.tables]
    return (
        f'<section aria-labelledby="{name}"><h2 id="{name}">{escaped(section.title)}</h2>{"".join(parts)}</section>\n'
    )


def _html_table(table: Listing) -> str:
    head, *rows = without_empty_columns(table.header, table.rows)
    shown = html_table(head, rows, table.caption)
    return f'<div class="skdp-wide" role="region" aria-label="{escaped(table.caption)}" tabindex="0">{shown}</div>\n'


class PrivacyReport:
    """Privacy report of a fitted model: its guarantee, the accounting, and the limits.

    Use `privacy_report` to create one. A report is a copy and does not change with the model. It contains no private
    value, seed or path.

    Parameters
    ----------
    facts : dict
        Contents of the report, as returned by `to_dict`.

    Raises
    ------
    ValueError
        `facts` is not a report of this version of the schema.

    See Also
    --------
    privacy_report : Create the report of a fitted model.

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
                f"`facts` must be a {SCHEMA} of version {SCHEMA_VERSION}. Pass the result of to_dict or to_json."
            )
        self._facts = copy.deepcopy(facts)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a report from JSON.

        Parameters
        ----------
        text : str
            Result of `to_json`.

        Returns
        -------
        PrivacyReport
            The same report.

        Raises
        ------
        ValueError
            `text` is not a complete report.
        """
        try:
            report = cls(json.loads(text))
            str(report), report.to_html()  # both read all facts, so an incomplete report fails here
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            told = f"{type(error).__name__}: {error}" if isinstance(error, ValueError) else type(error).__name__
            raise ValueError(f"`text` must be the result of to_json ({told[:200]}).") from None
        return report

    def to_dict(self) -> dict[str, Any]:
        """Return the contents of the report as a dictionary.

        Returns
        -------
        dict
            Copy of the contents. All models have the same keys for one ``schema_version``.
        """
        return copy.deepcopy(self._facts)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the contents of the report as JSON.

        Parameters
        ----------
        path : str, path-like or None, default=None
            File to which the text is also written.

        Returns
        -------
        str
            JSON in ASCII, without "<", ">" and "&", so that it can be embedded in HTML.
        """
        text = json.dumps(self._facts, indent=2, allow_nan=False)
        for each in "<>&":
            text = text.replace(each, f"\\u{ord(each):04x}")
        return _written(text + "\n", path)

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the report as a self-contained HTML document.

        Parameters
        ----------
        path : str, path-like or None, default=None
            File to which the text is also written.

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
    """Create a privacy report of a fitted model, for publication or review.

    The report states epsilon and delta with their meaning, membership-inference risk, accounting, noise and clipping,
    public information, unaccounted reads, limits, and the privacy cost of tuning. One section answers the questions of
    the European data protection authorities on singling out, linking and inference (Opinion 05/2014). The report
    also lists the items to state in a publication (Ponomareva et al. 2023, section 5.3) and a checklist by NIST SP
    800-226. See ``docs/privacy_report.md``.

    Parameters
    ----------
    model : object
        Fitted private estimator, pipeline from `allocate_budget`, or private search.
    evaluation : PrivateEvaluation, MulticlassEvaluation or RegressionEvaluation, default=None
        Result of `skdp.evaluate` for the model, for a section on quality. If None, the metrics of a
        `skdp.DPCalibratedClassifier` or `skdp.DPThresholdClassifier` are used, if `model` is one.

    Returns
    -------
    PrivacyReport
        Print it for text. `PrivacyReport.to_html` and `PrivacyReport.to_json` return other formats.

    Raises
    ------
    TypeError
        `model` has no privacy budget of its own, such as an estimator of scikit-learn, or `evaluation` has a wrong
        type.
    sklearn.exceptions.NotFittedError
        `model` is not fitted.
    ValueError
        The ``epsilon_`` of `model` is below the epsilon of its ``privacy_event_``.

    See Also
    --------
    skdp.PrivacyAccountant : Track the privacy cost of several fits.

    Notes
    -----
    **Guarantees.**

    - The report states ``epsilon_`` and ``delta_`` of the model, and bounds computed from its ``privacy_event_``. Text
      and HTML round them up.
    - A report reads no rows. Fits to neighboring tables with the same noise have equal reports, if `classes` are set.
    - The attacker's accuracy is at most (e^epsilon + delta) / (1 + e^epsilon), and at most (1 + delta(0)) / 2 by the
      privacy profile delta(epsilon).
    - If the releases are Gaussian mechanisms alone, the report states rho = mu^2 / 2 of zero-concentrated differential
      privacy (zCDP).
    - Unaccounted reads and seeded noise are reported as they were at the fit, without labels and without the seed.

    The report does not state that a model is anonymous in the legal sense. Constructor parameters are the current ones.

    References
    ----------
    Ponomareva et al. (2023), "How to DP-fy ML: a practical guide to machine learning with differential privacy".

    Near, Darais, Lefkovitz & Howarth (2025), "Guidelines for evaluating differential privacy guarantees", NIST SP
    800-226.

    Kairouz, Oh & Viswanath (2015), "The composition theorem for differential privacy".

    Article 29 Data Protection Working Party (2014), "Opinion 05/2014 on anonymisation techniques", WP216.

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
