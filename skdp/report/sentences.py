"""The sentences of a report. Each follows from the facts alone, and is tested against the event and its price.

The last ones fill the forms that are published with a release, as NIST SP 800-226 asks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import NotFittedError

from skdp.accounting import DpEvent, PrivacyProfile, get_delta, get_epsilon, get_epsilon_bounds
from skdp.accounting.ledger.report import one_line as one_line
from skdp.accounting.ledger.report import to_digits
from skdp.accounting.methods import METHOD_NAMES, METHODS

_HIDDEN = {"accountant", "checkpoint", "memory", "n_jobs", "random_state", "seed", "verbose"}
_MOST_ENTRIES, _LONGEST = 20, 240
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def shown(value: Any) -> str:
    """Return a constructor parameter as text: of arrays and frames with many entries the shape alone."""
    text = one_line(_ADDRESS.sub("", _text_of(value)))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _text_of(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.size <= _MOST_ENTRIES:
        return _text_of(value.tolist())
    if hasattr(value, "shape") and not isinstance(value, np.generic):
        return f"{type(value).__name__} of shape {tuple(value.shape)}"
    if isinstance(value, np.generic):
        return repr(value.item())
    if isinstance(value, type):
        return value.__qualname__
    if hasattr(value, "get_params"):  # its parameters may hold a seed
        return type(value).__name__
    if isinstance(value, Mapping):
        return _entries("{}", [f"{_text_of(key)}: {_text_of(each)}" for key, each in _first(value.items())], len(value))
    if isinstance(value, list | tuple | set | frozenset):
        return _entries("()" if isinstance(value, tuple) else "[]", list(map(_text_of, _first(value))), len(value))
    if callable(value):
        return str(getattr(value, "__qualname__", type(value).__name__))
    try:
        return repr(value)
    except Exception:  # somebody's own class
        return type(value).__name__


def _first(values: Any) -> list[Any]:
    return [each for _, each in zip(range(_MOST_ENTRIES), values, strict=False)]


def _entries(brackets: str, texts: list[str], number: int) -> str:
    if number > len(texts):
        texts = [*texts, f"... ({number} in all)"]
    return brackets[0] + ", ".join(texts) + brackets[1]


def is_hidden(name: str) -> bool:
    """Whether a parameter is a seed, a path or of no matter to the result."""
    return name.rpartition("__")[2] in _HIDDEN


def number(value: Any) -> float | str:
    """Return a float that JSON can hold."""
    value = float(value)
    return value if math.isfinite(value) else "infinity" if value > 0 else "undefined"


class Priced(NamedTuple):
    """What a fitted state costs; `method` is None if no method gives `epsilon` today."""

    event: DpEvent
    epsilon: float
    delta: float
    adjacency: str
    method: str | None
    bounds: tuple[float, float] | None


def price_of(model: Any) -> Priced:
    """Read the price of a fitted private estimator, pipeline or search.

    Raises
    ------
    TypeError
        The object has no price of its own.
    NotFittedError
        It is not fitted.
    ValueError
        Its ``epsilon_`` is below what ``privacy_event_`` costs at least: it was not written by its fit.
    """
    if not hasattr(type(model), "_private_parts"):
        raise TypeError(
            f"model is a {type(model).__name__}, which has no privacy budget of its own: give a private estimator, "
            "a pipeline from skdp.allocate_budget or a private search."
        )
    if not {"privacy_event_", "_fitted_releases"} & model.__dict__.keys():
        raise NotFittedError(f"This {type(model).__name__} instance is not fitted yet: call fit first.")
    event, epsilon, delta, adjacency = model.privacy_event_, model.epsilon_, model.delta_, model.adjacency_
    bounds = bracket(event, delta, adjacency)
    if bounds is not None and epsilon < bounds[0]:
        raise ValueError(
            f"epsilon_={epsilon!r} is below the least that privacy_event_ costs at delta_={delta!r}: fit the model "
            "again."
        )
    return Priced(event, epsilon, delta, adjacency, _method_of(event, epsilon, delta, adjacency), bounds)


PURE = "pure"
"""How an epsilon at a delta of 0 was found."""

_TINY = 1e-300


def bracket(event: DpEvent, delta: float, adjacency: str) -> tuple[float, float] | None:
    """Certified bounds of epsilon; None if PLD cannot price the event. A delta of 0 is taken for a tiny one."""
    try:
        return get_epsilon_bounds(event, delta or _TINY, adjacency=adjacency)
    except (TypeError, ValueError):
        return None


def _method_of(event: DpEvent, epsilon: float, delta: float, adjacency: str) -> str | None:
    """The method that gives `epsilon`; the accountant may have been changed after the fit."""
    if delta == 0.0:
        bounds = bracket(event, delta, adjacency)
        return PURE if bounds is not None and epsilon <= bounds[1] else None
    for method in METHODS:
        try:
            if get_epsilon(event, delta, method=method, adjacency=adjacency) == epsilon:
                return method
        except (TypeError, ValueError):
            continue
    return None


def guess_at(epsilon: float, delta: float) -> float:
    """Largest probability with which a guess at even odds is right, under (`epsilon`, `delta`)-privacy.

    Let a test of "in" against "out" have the errors a and b, so that it is right with probability 1 - (a + b) / 2.
    Privacy gives a + e^epsilon b >= 1 - delta and b + e^epsilon a >= 1 - delta (Wasserman & Zhou 2010; Kairouz, Oh &
    Viswanath 2015, theorem 2.1). Their sum is (1 + e^epsilon) (a + b) >= 2 (1 - delta), so the test is right with
    probability at most 1 - (1 - delta) / (1 + e^epsilon) = (e^epsilon + delta) / (1 + e^epsilon).
    """
    return 1.0 - (1.0 - delta) * math.exp(-epsilon) / (1.0 + math.exp(-epsilon))


def attacker_accuracy_by_profile(priced: Priced) -> float | None:
    """The same, by all pairs (epsilon, delta) of the event; None if PLD cannot price it.

    At epsilon = 0 the bound is (1 + delta(0)) / 2. The best test against the worst pair of tables reaches it, as
    delta(0) is their total variation distance. Where the profile at 0 is loose, as for a choice among trials, a larger
    epsilon may give less. Each pair is a guarantee, so the least bound is one.
    """
    bound = guess_at(priced.epsilon, priced.delta)
    try:
        for share in (0.0, 0.25, 0.5, 0.75):
            epsilon = share * priced.epsilon if share else 0.0
            delta = get_delta(priced.event, epsilon, adjacency=priced.adjacency)
            bound = min(bound, guess_at(epsilon, delta))
            if share == 0.0 and bound < guess_at(priced.epsilon, priced.delta):
                break  # the profile at 0 is tight where it is not trivial
    except (TypeError, ValueError):
        return None
    return bound


def attack_figures(priced: Priced) -> dict[str, float | str | None]:
    """What an attacker gains, beside epsilon: mu, the advantage, and what is found at 1 % and .1 % of false positives.

    The advantage alone does not bound rare guesses that are certain. Each is None if PLD cannot price the event.
    """
    try:
        profile = PrivacyProfile(priced.event, adjacency=priced.adjacency)
    except (TypeError, ValueError):
        return dict.fromkeys(("mu", "advantage", "tpr_at_1_percent_fpr", "tpr_at_01_percent_fpr"))
    return {
        "mu": number(profile.mu()),
        "advantage": profile.advantage(),
        "tpr_at_1_percent_fpr": float(profile.true_positive_rate(0.01)),
        "tpr_at_01_percent_fpr": float(profile.true_positive_rate(0.001)),
    }


Facts = dict[str, Any]

NEIGHBOURS = {
    "zero_out": "Two tables are neighbours if one {unit} of one is replaced by a null {unit} in the other, which adds "
    "nothing to any sum. The number of {unit}s is public.",
    "add_remove": "Two tables are neighbours if one of them has one {unit} more. The number of {unit}s is private.",
    "replace_one": "Two tables are neighbours if one {unit} of one is replaced by another {unit} in the other. The "
    "number of {unit}s is public.",
}


def word(facts: Facts) -> str:
    """A row, or what all rows with one label are: by the unit of the ledger, or a group."""
    guarantee = facts["guarantee"]
    if guarantee["unit"] == "row":
        return "row"
    named = guarantee["accountant_unit"]
    return "group" if named in (None, "row") else str(named)


def neighbours(facts: Facts) -> str:
    """What neighbouring tables differ in."""
    said = NEIGHBOURS[facts["guarantee"]["adjacency"]].format(unit=word(facts))
    return said if facts["guarantee"]["unit"] == "row" else f"{said} How many rows each has is private."


def figure(value: Any, *, up: bool = True) -> str:
    """A figure in five digits, never rounded to the wrong side."""
    return value if isinstance(value, str) else to_digits(value, 5, up=up)


def percent(probability: float) -> str:
    """A probability, rounded up to a tenth of a per cent."""
    return f"{math.ceil(probability * 1000.0) / 10.0:.1f}%"


def price(facts: Facts) -> str:
    """Epsilon and delta in a few words."""
    guarantee = facts["guarantee"]
    return f"epsilon = {figure(guarantee['epsilon'])} at delta = {guarantee['delta']:g}"


def unit(facts: Facts) -> str:
    """What is protected."""
    if facts["guarantee"]["unit"] == "row":
        return "One row of the table. Several rows of one person are not protected together."
    groups = facts["guarantee"]["groups"]
    return f"One {word(facts)}: all rows with the same " + (f"`{groups}`." if groups else "label.")


def partition(facts: Facts) -> str:
    """Whose rows they are, where a ledger has partitions; "" where it has none."""
    found = facts["guarantee"]
    if found["partition"] is None:
        return ""
    return (
        f"The ledger is charged for the partition `{found['partition']}`, by the rule `{found['partition_rule']}`. "
        f"That each {word(facts)} is in one partition, whatever its record, is an assumption of the owner. Epsilon is "
        "that of all releases together, as if all had read the same partition."
    )


def layperson(facts: Facts) -> str:
    """What the guarantee means, in a sentence, by epsilon and delta alone."""
    guarantee = facts["guarantee"]
    seeded = "; those who know the seed of the noise may do better" if facts["noise"]["source"] == "seeded" else ""
    what = word(facts)
    which = f"which of two given {what}s was used" if guarantee["adjacency"] == "replace_one" else "whether it was used"
    return (
        f"Somebody who knows all other {what}s, knows the {what} in question and sees the whole model "
        f"guesses {which}: if a "
        f"fair coin decided that, the guess is right with probability at most "
        f"{percent(guarantee['attacker_accuracy'])}, where a blind guess is right with 50%{seeded}."
    )


def tighter(facts: Facts) -> str:
    """The same figure by the whole privacy profile."""
    simple, guess = facts["guarantee"]["attacker_accuracy"], facts["guarantee"]["attacker_accuracy_by_profile"]
    words = f"By epsilon and delta a guess at even odds is right with probability at most {percent(simple)}"
    if guess is None:
        return f"{words}. The privacy profile of the releases, which may give less, is not known."
    return f"{words}; by the whole privacy profile of the releases, with probability at most {percent(guess)}."


def known(facts: Facts, name: str) -> str:
    """A figure of the guarantee, if it is known."""
    found = facts["guarantee"][name]
    return "not known" if found is None else f"at most {figure(found)}"


def known_percent(facts: Facts, name: str) -> str:
    """A share of the guarantee in per cent, if it is known."""
    found = facts["guarantee"][name]
    return "not known" if found is None else f"at most {math.ceil(found * 1e5 - 1e-9) / 1e3:.3f}%"


def people(facts: Facts) -> str:
    """The same as numbers of people, at a share of false positives; "" if it is not known."""
    found, what = facts["guarantee"]["tpr_at_1_percent_fpr"], word(facts)
    if found is None:
        return ""
    which = "have the value asked about" if facts["guarantee"]["adjacency"] == "replace_one" else "were used"
    return (
        f"An attacker who accepts a false alarm for 10 of 1,000 {what}s finds at most "
        f"{math.ceil(found * 1e3 - 1e-9)} of 1,000 {what}s that {which}; without the model, 10. The advantage is an "
        "average and bounds no rare guess that is certain: the figures at small shares of false positives do."
    )


def formal(facts: Facts) -> str:
    """The definition, with its figures."""
    guarantee = facts["guarantee"]
    return (
        "For neighbouring tables D and D' and every set S of outcomes, P(fit(D) in S) <= e^epsilon P(fit(D') in S) + "
        f"delta, with epsilon = {figure(guarantee['epsilon'])} and delta = {guarantee['delta']:g}. The outcome is "
        "everything that the fitted object holds."
    )


def delta_and_rows(facts: Facts) -> str:
    """What delta is worth for this number of rows."""
    delta, n = facts["guarantee"]["delta"], facts["guarantee"]["n_units_public"]
    if n is None:
        return f"Delta should be well below one divided by the number of {word(facts)}s."
    remark = "which is too large: publishing one whole record would satisfy it" if delta * n >= 1 else "well below 1"
    if 0.1 < delta * n < 1:
        remark = "which should be well below 1"
    return f"Delta times the public number of {word(facts)}s ({n}) is {delta * n:.2g}, {remark}."


def noise(facts: Facts) -> str:
    """Whether the noise is secret."""
    return {
        "secret": "Secret: drawn with a key from the operating system, which was not kept.",
        "seeded": "Seeded: drawn from a given random_state. Those who know it can subtract the noise. If it was used "
        "for two fits of one class, the difference of their outputs is exact, and anyone can subtract the noise.",
        "not recorded": "Not recorded by the class that fitted this model.",
    }[facts["noise"]["source"]]


def method(facts: Facts) -> str:
    """How epsilon was computed."""
    name = facts["accounting"]["method"]
    if name is None:
        return "By an earlier version: no method gives the stored epsilon today."
    if name == PURE:
        return "By the largest ratio of two probabilities of one outcome: delta is 0."
    return f"By {METHOD_NAMES[name]}, an upper bound for the composition of all releases."


def certified(facts: Facts) -> str:
    """The bracket of the least epsilon."""
    low, high = facts["accounting"]["epsilon_at_least"], facts["accounting"]["epsilon_at_most"]
    if low is None:
        return "PLD cannot price these releases, so there is no certified bracket."
    if low == 0.0:
        return f"The least epsilon of these releases at this delta is at most {figure(high)}, an upper bound only."
    lower = figure(low, up=False)
    return f"The least epsilon of these releases at this delta lies between {lower} and {figure(high)}, both certified."


def sampling(facts: Facts) -> str:
    """Whether the assumptions of the accounting hold."""
    kinds = facts["accounting"]["sampling"]
    if "a Poisson sample" in kinds:
        return (
            f"The price assumes Poisson sampling, and the fit draws each {word(facts)} independently for each step: no "
            "shuffled pass stands in for it."
        )
    if "a sample of fixed size" in kinds:
        return "The price assumes samples of fixed size, drawn uniformly without replacement."
    return "No release is computed from a random sample: the price assumes no amplification by sampling."


def accesses(facts: Facts) -> str:
    """Which uses of the rows the price covers."""
    kind, tuning = facts["model"]["kind"], facts["tuning"]
    if tuning is not None:
        if tuning["candidates"] == 1:
            return "The fit of the only candidate. Nothing was chosen."
        return (
            "The whole search: all fits, all scores, the choice of the best candidate and, if there is one, its refit."
        )
    if kind == "estimator and table":
        return "The fit to one part of the rows, if there was one, and the table of scores of the other part."
    if kind == "pipeline":
        return "The fit of all private steps, as one adaptive composition. The other steps learn nothing from the rows."
    return "All fits that the present state depends on, earlier instalments included."


def outcome(facts: Facts) -> str:
    """Which outputs the price covers."""
    many = any(row["times"] > 1 and not row["within"] for row in facts["mechanisms"]["rows"])
    more = ", and the noisy result of every step, not of the last one alone" if many else ""
    return f"The price covers everything that the fitted object holds{more}."


def tuned(facts: Facts) -> str:
    """What the choice of parameters cost."""
    tuning = facts["tuning"]
    if tuning is None:
        return (
            "No choice of parameters is part of the price. If parameters were chosen by results on these rows, that "
            "choice is not covered."
        )
    if tuning["candidates"] == 1:
        return "One candidate: there was no choice to pay for."
    if tuning["candidates"] is None:
        return "This model was chosen among others by a private search, and the price is that of the whole search."
    if tuning["trials"] is None:
        how = f"Each of the {tuning['candidates']} candidates was tried once."
    else:
        how = (
            f"A secret number of trials, {tuning['trials_on_average']:.4g} on average ({tuning['trials']} law), each "
            f"of a candidate drawn at random among {tuning['candidates']}."
        )
    paid = [
        f"{what} epsilon = {figure(tuning[key])}"
        for what, key in (("the choice", "epsilon_of_choice"), ("the refit", "epsilon_of_refit"))
        if tuning[key]
    ]
    alone = f" Priced alone at the same delta, {' and '.join(paid)}; together {price(facts)}." if paid else ""
    return f"{how} Scores ({tuning['scoring']}) are noisy.{alone}"


def quality(facts: Facts) -> str:
    """What the figures of a model are of, and what they cost."""
    found = facts["quality"]
    if found["within"]:
        return (
            "Figures of the scores that the model follows from, before it does, by its noisy table: they are within "
            "the price. Intervals are for the noise and for the draw of the rows."
        )
    return (
        f"Figures of an evaluation on private rows, from one noisy table at epsilon = {figure(found['epsilon'])} and "
        f"delta = {found['delta']:g} for one {found['unit']} of those rows ({found['adjacency']}), which is not within "
        "the price above. Intervals are for the noise and for the draw of the rows."
    )


def exceptions(facts: Facts) -> list[str]:
    """What stands against the guarantee, to be read first."""
    found = []
    if facts["guarantee"]["epsilon"] == "infinity":
        found.append("Epsilon is infinite: there is no guarantee.")
    if facts["noise"]["source"] == "seeded":
        found.append(
            "The noise is seeded: the guarantee does not hold against those who know the seed, nor against anyone if "
            "the seed was used for two fits."
        )
    if not facts["unaccounted"]["recorded"]:
        found.append("What was read without payment was not, or not always, recorded.")
    found += [each["text"] for each in facts["unaccounted"]["reads"]]
    delta, n = facts["guarantee"]["delta"], facts["guarantee"]["n_units_public"]
    if n is not None and delta * n >= 1:
        found.append("Delta is too large: publishing one whole record would satisfy it.")
    if facts["accounting"]["method"] is None:
        found.append("The stored epsilon was computed by an earlier version; no method gives it today.")
    strangers = {each["class"]: each["package"] for each in _parts(facts) if each["package"] != "skdp"}
    found += [f"{name} is a class of {package}: its sensitivity rests on its author's proof."
              for name, package in strangers.items()]  # fmt: skip
    return found


def _parts(facts: Facts) -> list[dict[str, str]]:
    return facts["model"]["private_parts"]


def _time(facts: Facts) -> str:
    """What the time of a fit may tell."""
    chosen = [
        each["value"] for each in facts["public"]["parameters"] if each["name"].split("__")[-1] == "merge_equal_rows"
    ]
    if any(value != "False" for value in chosen):
        return (
            "Time and memory of a fit depend on rows: on how many of them differ, where equal ones are computed once "
            "(merge_equal_rows)."
        )
    return "How long a fit takes may depend on rows."


def not_covered(facts: Facts) -> list[tuple[str, str]]:
    """Topics that no price of this library covers, or that are the publisher's to decide."""
    public_rows = facts["guarantee"]["adjacency"] != "add_remove"
    listed = [
        ("Other uses of the rows", "Other fits, scores, statistics and choices made with the same rows. A shared "
         "PrivacyAccountant adds up all that is charged to it."),
        ("Several rows of one person", "The unit is one row. Rows of one person, household or firm add up."),
        ("Refusals that depend on data", "An error about unusable rows is a fact about them; publish no such message."),
        ("Time", _time(facts)),
        ("Floating point", "Noise lies on a public grid, so that low bits tell nothing (Mironov 2012), and has room "
         "for the rounding of sums of up to 2^20 rows; that of larger sums is not proved."),
        ("Names and types", "Names, number and types of columns are taken as public."),
        ("Predictions for private rows", "What the model gives for private rows depends on these rows, unpaid."),
        ("Parameters", "Constructor parameters are taken as public, however they were found."),
        ("Small groups", "Noise lowers the recall of small groups first, and no post-processing corrects it: see "
         "skdp.evaluate(..., by=...)."),
    ]  # fmt: skip
    if facts["guarantee"]["unit"] != "row":
        one = word(facts)
        listed[1] = ("Labels", f"That the rows of one {one}, and no others, have one label is the owner's claim.")
    elif public_rows:
        listed.insert(2, ("Number of rows", "It is taken as public. If it is secret, use skdp.AddRemove."))
    if facts["model"]["public_steps"]:
        listed.append(
            ("Public steps", "That a function marked by skdp.row_wise mixes no rows is its author's promise.")
        )
    return listed


TableCells = list[tuple[str, ...]]


def publication_rows(facts: Facts) -> TableCells:
    """What to state in a publication: Ponomareva et al. 2023, section 5.3."""
    return [
        ("Setting", "Central: whoever runs the fit holds all rows and adds the noise."),
        ("Data accesses covered", accesses(facts)),
        ("Final output", outcome(facts)),
        ("Unit of privacy", unit(facts)),
        ("Neighbours", neighbours(facts)),
        ("Type of accounting", method(facts)),
        ("Assumptions", sampling(facts)),
        ("Formal statement", formal(facts)),
        ("Tuning", tuned(facts)),
        ("Verification", f"Open source: skdp {facts['versions']['skdp']}; the releases are listed in this report."),
    ]


def nist_rows(facts: Facts) -> TableCells:
    """The blocks of the pyramid of NIST SP 800-226, from the top, and who answers them."""
    stated, yours = "stated here", "yours to answer"
    correct = "Noise and price come from one object; each sensitivity is proved and tested (docs/guarantees.md)."
    noise = "The standard deviations are listed under noise and clip. Measure the loss of accuracy on public rows."
    return [
        ("Privacy parameters", stated, price(facts) + "."),
        ("Unit of privacy", stated, unit(facts)),
        ("Other releases", yours, "Are other results of the same rows published, with or without noise?"),
        ("Algorithms and correctness", stated, " ".join([correct, *exceptions(facts)])),
        ("Utility", yours, noise),
        ("Bias", yours, "Noise and clip weigh most on small groups. Does the model serve them?"),
        ("Trust model", stated, "Central: whoever runs the fit sees all rows and must be trusted with them."),
        ("Side channels", stated, "Time is not covered, nor the rounding of sums of more than 2^20 rows."),
        ("Access control", yours, "Who can read the rows, the ledger, and the machine on which the fit runs?"),
        ("Data collection exposure", yours, "Are fewer rows and columns, kept for a shorter time, enough?"),
    ]
