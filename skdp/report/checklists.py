"""A report in the form that a publication should have, and the questions of NIST SP 800-226."""

from __future__ import annotations

from skdp.report import sentences as wording
from skdp.report.sentences import Facts

TableCells = list[tuple[str, ...]]


def publication_rows(facts: Facts) -> TableCells:
    """What to state in a publication: Ponomareva et al. 2023, section 5.3."""
    return [
        ("Setting", "Central: whoever runs the fit holds all rows and adds the noise."),
        ("Data accesses covered", wording.accesses(facts)),
        ("Final output", wording.outcome(facts)),
        ("Unit of privacy", wording.unit(facts)),
        ("Neighbours", wording.NEIGHBOURS[facts["guarantee"]["adjacency"]]),
        ("Type of accounting", wording.method(facts)),
        ("Assumptions", wording.sampling(facts)),
        ("Formal statement", wording.formal(facts)),
        ("Tuning", wording.tuned(facts)),
        ("Verification", f"Open source: skdp {facts['versions']['skdp']}; the releases are listed in this report."),
    ]


def nist_rows(facts: Facts) -> TableCells:
    """The blocks of the pyramid of NIST SP 800-226, from the top, and who answers them."""
    stated, yours = "stated here", "yours to answer"
    exceptions = wording.exceptions(facts)
    correct = "Noise and price come from one object; each sensitivity is proved and tested (docs/guarantees.md)."
    noise = "The standard deviations are listed under noise and clip. Measure the loss of accuracy on public rows."
    return [
        ("Privacy parameters", stated, wording.price(facts) + "."),
        ("Unit of privacy", stated, wording.unit(facts)),
        ("Other releases", yours, "Are other results of the same rows published, with or without noise?"),
        ("Algorithms and correctness", stated, " ".join([correct, *exceptions])),
        ("Utility", yours, noise),
        ("Bias", yours, "Noise and clip weigh most on small groups. Does the model serve them?"),
        ("Trust model", stated, "Central: whoever runs the fit sees all rows and must be trusted with them."),
        ("Side channels", stated, "Time and floating point are not covered; see what is not covered."),
        ("Access control", yours, "Who can read the rows, the ledger, and the machine on which the fit runs?"),
        ("Data collection exposure", yours, "Are fewer rows and columns, kept for a shorter time, enough?"),
    ]


__all__ = ["TableCells", "nist_rows", "publication_rows"]
