"""A report as titles, paragraphs and tables, for any form that people read."""

from __future__ import annotations

from typing import Any, NamedTuple

from skdp.report import sentences as wording
from skdp.report.sentences import Facts, TableCells, figure, nist_rows, publication_rows

REFERENCES = (
    "Dwork, McSherry, Nissim & Smith (2006), Calibrating noise to sensitivity in private data analysis.",
    "Kairouz, Oh & Viswanath (2015), The composition theorem for differential privacy; theorem 2.1 bounds a guess.",
    "Ponomareva et al. (2023), How to DP-fy ML, section 5.3, arXiv:2303.00654.",
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
    made = [
        _summary(facts),
        _guarantee(facts),
        _accounting(facts),
        _noise(facts),
        _shares(facts),
        Section("tuning", "What tuning cost", [wording.tuned(facts)], [], []),
        _quality(facts),
        _effects(facts),
        _public(facts),
        _unpaid(facts),
        _notices(facts),
        _not_covered(facts),
        _checklists(facts),
        _versions(facts),
    ]
    return [each for each in made if each is not None]


def _summary(facts: Facts) -> Section:
    exceptions, adjacency = wording.exceptions(facts), facts["guarantee"]["adjacency"]
    rows: TableCells = [
        ("Epsilon", figure(facts["guarantee"]["epsilon"])),
        ("Delta", f"{facts['guarantee']['delta']:g}"),
        ("Right guess, by epsilon and delta", _percent(facts["guarantee"]["attacker_accuracy"])),
        ("Right guess, by the privacy profile", _percent(facts["guarantee"]["attacker_accuracy_by_profile"])),
        ("mu, down to errors of 1e-6", wording.known(facts, "mu")),
        ("Advantage: true less false positives", wording.known_percent(facts, "advantage")),
        ("Found at 1% false positives", wording.known_percent(facts, "tpr_at_1_percent_fpr")),
        ("Found at 0.1% false positives", wording.known_percent(facts, "tpr_at_01_percent_fpr")),
        ("Unit", wording.unit(facts)),
        ("Neighbours", f"{adjacency}: {_IN_SHORT[adjacency].format(unit=wording.word(facts))}"),
        ("Noise", wording.noise(facts)),
    ]
    notices = ["The guarantee holds with these exceptions.", *exceptions] if exceptions else []
    return Section(
        "summary", "Summary", [wording.layperson(facts)], [Listing("Key figures", ("figure", "value"), rows)], notices
    )


_IN_SHORT = {
    "zero_out": "one {unit} is replaced by a null {unit}",
    "add_remove": "one {unit} is added or removed",
    "replace_one": "one {unit} is replaced by another",
}


def _percent(probability: float | None) -> str:
    return "not known" if probability is None else f"at most {wording.percent(probability)}"


def _guarantee(facts: Facts) -> Section:
    words = [
        wording.formal(facts),
        wording.neighbours(facts),
        wording.tighter(facts),
        wording.people(facts),
        wording.delta_and_rows(facts),
        wording.outcome(facts),
        wording.partition(facts),
    ]
    words = [each for each in words if each]
    return Section("guarantee", "What is guaranteed", words, [], [])


def _accounting(facts: Facts) -> Section:
    words = [wording.method(facts), wording.certified(facts), wording.sampling(facts), wording.accesses(facts)]
    if facts["model"]["has_accountant"]:
        words.append("A ledger was given: what all charges cost together is written there, not here.")
    return Section("accounting", "How it was accounted", [*words, f"Releases: {facts['accounting']['event']}."], [], [])


def _noise(facts: Facts) -> Section:
    found = facts["mechanisms"]
    rows: TableCells = [
        (each["mechanism"], str(each["times"]), _optional(each["noise_multiplier"]), _rows_used(each), each["within"],
         each["note"])
        for each in found["rows"]
    ]  # fmt: skip
    if found["number"] > len(rows):
        rows.append((f"... and {found['number'] - len(rows)} more", "", "", "", "", ""))
    header = ("release", "times", "noise multiplier", "computed from", "within", "note")
    tables = [Listing("Releases with noise", header, rows)]
    for each in facts["constants"]:
        constants: TableCells = [(row["name"], _optional(row["value"]), row["meaning"]) for row in each["rows"]]
        if constants:
            of = f" of {each['part']}" if each["part"] else ""
            tables.append(Listing(f"Public constants{of}, last run", ("attribute", "value", "meaning"), constants))
    return Section("noise", "Noise and clip", [wording.noise(facts)], tables, [])


def _optional(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return str(value) if isinstance(value, int) else f"{value:.6g}"


def _rows_used(row: dict[str, Any]) -> str:
    if row["noise_multiplier"] is None:
        return ""
    return row["rows"] + ("" if row["sampling_rate"] == 1.0 else f", rate {row['sampling_rate']:.6g}")


def _shares(facts: Facts) -> Section | None:
    if not facts["fractions"]:
        return None
    rows: TableCells = [
        (e["part"], figure(e["epsilon_alone"]), f"{100 * e['fraction']:.1f}%") for e in facts["fractions"]
    ]
    words = (
        "The steps cost less together than one by one. The share of a step is its part of the sum of mu squared, where "
        "mu is that of the Gaussian mechanism of the same price."
    )
    return Section("fractions", "Budget of the steps", [words],
                   [Listing("Private steps", ("step", "epsilon alone", "fraction"), rows)], [])  # fmt: skip


def _quality(facts: Facts) -> Section | None:
    found = facts["quality"]
    if found is None:
        return None
    rows: TableCells = [
        (each["name"], *(f"{each[k]:.4g}" for k in ("value", "low", "high"))) for each in found["figures"]
    ]
    header = ("figure", "value", "at least", "at most")
    caption = f"Private figures, with {found['level']:.0%} intervals"
    return Section("quality", "Quality", [wording.quality(facts)], [Listing(caption, header, rows)], [])


def _effects(facts: Facts) -> Section | None:
    if not facts["effects"]:
        return None
    rows: TableCells = []
    for each in facts["effects"]:
        noise = "not known" if each["noise"] is None else f"{each['noise']:.2g}"
        rows.append((each["column"], each["low"], each["high"], f"{each['difference']:.3g}", noise))
    words = (
        f"Each column lets the score, in units of {facts['effects'][0]['unit']}, differ most between these two of its "
        "public values, on average over public values of the others. The noise is the standard deviation of that "
        "difference if rows added nothing, between two values that were chosen before: the largest of many differences "
        "is up to a few times that by noise alone. All of it follows from what was released."
    )
    header = ("column", "lowest at", "highest at", "difference", "noise")
    return Section("effects", "What the columns do", [words], [Listing("Effects of columns", header, rows)], [])


def _public(facts: Facts) -> Section:
    found = facts["public"]
    n, kind = facts["guarantee"]["n_units_public"], "which is public"
    if found["n_units"] == "private":
        kind = "a public stand-in; that of the table is private and not shown"
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
        Listing("Constructor parameters, as they are now", ("parameter", "value"), parameters),
    ]
    keys = ("name", "kind", "known", "source", "lost")
    columns: TableCells = [tuple(each[key] for key in keys) for each in found["columns"]]
    if columns:
        header = ("column", "kind", "what is public", "source", "cells that are lost")
        tables.insert(1, Listing("Columns of the table", header, columns))
    return Section("public", "What was public", ["Nothing of this is protected."], tables, [])


def _unpaid(facts: Facts) -> Section:
    reads = [each["text"] for each in facts["unaccounted"]["reads"]]
    words = reads or ["Nothing that the fit knew of."]
    if not facts["unaccounted"]["recorded"]:
        words = [*reads, "It was not, or not always, recorded."]
    return Section("unaccounted", "What was read without payment", words, [], [])


def _notices(facts: Facts) -> Section | None:
    if not facts["notices"]:
        return None
    return Section("notices", "What costs quality", [each[:1].upper() + each[1:] for each in facts["notices"]], [], [])


def _not_covered(facts: Facts) -> Section:
    table = Listing("Outside the guarantee", ("topic", "meaning"), [*wording.not_covered(facts)])
    return Section("not_covered", "What is not covered", [], [table], [])


def _checklists(facts: Facts) -> Section:
    tables = [
        Listing(
            "To state in a publication (How to DP-fy ML, section 5.3)", ("item", "answer"), publication_rows(facts)
        ),
        Listing("NIST SP 800-226, from the top of its pyramid", ("block", "status", "answer"), nist_rows(facts)),
    ]
    return Section("checklists", "Checklists", [], tables, [])


def _versions(facts: Facts) -> Section:
    rows: TableCells = [*facts["versions"].items()]
    return Section(
        "versions",
        "Versions and citation",
        [f"Cite: {citation(facts)}", *REFERENCES],
        [Listing("Versions that made this report", ("package", "version"), rows)],
        [],
    )


def citation(facts: Facts) -> str:
    """How to cite the library; CITATION.cff says the same."""
    version = facts["versions"]["skdp"]
    return f"The skdp developers, skdp: differentially private estimators for scikit-learn, version {version}."
