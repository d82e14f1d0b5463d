"""The sentences of a report. Each follows from the facts alone, and is tested against the event.

The last functions fill the checklists that are published with a release, such as that of NIST SP 800-226.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from sklearn.exceptions import NotFittedError

from skdp.accounting import (
    DpEvent,
    GaussianDpEvent,
    PrivacyProfile,
    flatten,
    get_delta,
    get_epsilon,
    get_epsilon_bounds,
)
from skdp.accounting.ledger.report import one_line as one_line
from skdp.accounting.ledger.report import to_digits
from skdp.accounting.methods import METHOD_NAMES, METHODS


def number(value: Any) -> float | str:
    """Return a float that JSON can hold."""
    value = float(value)
    return value if math.isfinite(value) else "infinity" if value > 0 else "undefined"


class StatedGuarantee(NamedTuple):
    """The guarantee of a fitted state; `method` is None if no method gives `epsilon` today."""

    event: DpEvent
    epsilon: float
    delta: float
    adjacency: str
    method: str | None
    bounds: tuple[float, float] | None


def guarantee_of(model: Any) -> StatedGuarantee:
    """Read the guarantee of a fitted private estimator, pipeline or search.

    Raises
    ------
    TypeError
        The object has no privacy budget of its own.
    NotFittedError
        The object is not fitted.
    ValueError
        Its ``epsilon_`` is below the smallest epsilon of ``privacy_event_``, so it was changed after the fit.
    """
    if not hasattr(type(model), "_private_parts"):
        raise TypeError(
            f"`model` must be a private estimator, a pipeline from skdp.allocate_budget or a private search, got "
            f"{type(model).__name__}, which has no privacy budget of its own."
        )
    if not {"privacy_event_", "_fitted_releases"} & model.__dict__.keys():
        raise NotFittedError(f"This {type(model).__name__} instance is not fitted yet. Call fit first.")
    event, epsilon, delta, adjacency = model.privacy_event_, model.epsilon_, model.delta_, model.adjacency_
    bounds = bracket(event, delta, adjacency)
    if bounds is not None and epsilon < bounds[0]:
        raise ValueError(
            f"`epsilon_` must be at least the epsilon of privacy_event_ at delta_={delta!r}, got {epsilon!r}. Fit the "
            "model again."
        )
    return StatedGuarantee(event, epsilon, delta, adjacency, _method_of(event, epsilon, delta, adjacency), bounds)


PURE = "pure"
"""The accounting method of an epsilon at a delta of 0."""

_TINY = 1e-300


def bracket(event: DpEvent, delta: float, adjacency: str) -> tuple[float, float] | None:
    """Certified bounds of epsilon; None if PLD does not support the event. A delta of 0 is replaced by a tiny one."""
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
    """Largest accuracy of an attacker at even prior odds, under (`epsilon`, `delta`)-differential privacy.

    Let a test of "in" against "out" have the errors a and b, so that it is right with probability 1 - (a + b) / 2.
    Privacy gives a + e^epsilon b >= 1 - delta and b + e^epsilon a >= 1 - delta (Wasserman & Zhou 2010; Kairouz, Oh &
    Viswanath 2015, theorem 2.1). Their sum is (1 + e^epsilon) (a + b) >= 2 (1 - delta), so the test is right with
    probability at most 1 - (1 - delta) / (1 + e^epsilon) = (e^epsilon + delta) / (1 + e^epsilon).
    """
    return 1.0 - (1.0 - delta) * math.exp(-epsilon) / (1.0 + math.exp(-epsilon))


def attacker_accuracy_by_profile(guarantee: StatedGuarantee) -> float | None:
    """The same bound, by all pairs (epsilon, delta) of the event; None if PLD does not support it.

    At epsilon = 0 the bound is (1 + delta(0)) / 2. The best test against the worst pair of tables reaches it, as
    delta(0) is their total variation distance. The profile at 0 is loose for a selection among trials, for
    example; a larger epsilon may then give a smaller bound. Each pair is a guarantee, so the smallest bound holds.
    """
    bound = guess_at(guarantee.epsilon, guarantee.delta)
    try:
        for share in (0.0, 0.25, 0.5, 0.75):
            epsilon = share * guarantee.epsilon if share else 0.0
            delta = get_delta(guarantee.event, epsilon, adjacency=guarantee.adjacency)
            bound = min(bound, guess_at(epsilon, delta))
            if share == 0.0 and bound < guess_at(guarantee.epsilon, guarantee.delta):
                break  # the profile at 0 is tight where it is not trivial
    except (TypeError, ValueError):
        return None
    return bound


def attack_risks(guarantee: StatedGuarantee) -> dict[str, float | str | None]:
    """Membership-inference risk: mu, rho, the advantage, and the TPR at an FPR of 1% and 0.1%.

    Each is None if PLD does not support the event. A composition of Gaussian mechanisms alone, of which mu bounds the
    trade-off at every error, is also rho-zCDP with rho = mu^2 / 2 (Bun & Steinke 2016); rho is None for any other.
    """
    try:
        profile = PrivacyProfile(guarantee.event, adjacency=guarantee.adjacency)
    except (TypeError, ValueError):
        return dict.fromkeys(("mu", "rho", "advantage", "tpr_at_1_percent_fpr", "tpr_at_01_percent_fpr"))
    mu, gaussian = profile.mu(), all(isinstance(each, GaussianDpEvent) for each in flatten(guarantee.event))
    return {
        "mu": number(mu),
        "rho": number(mu**2 / 2.0) if gaussian and math.isfinite(mu) else None,
        "advantage": profile.advantage(),
        "tpr_at_1_percent_fpr": float(profile.true_positive_rate(0.01)),
        "tpr_at_01_percent_fpr": float(profile.true_positive_rate(0.001)),
    }


Facts = dict[str, Any]
TableCells = list[tuple[str, ...]]

NEIGHBORS = {
    "zero_out": "Two tables are neighbors if one {unit} of the first is replaced by a zeroed-out {unit} in the second, "
    "which contributes nothing to any sum. The number of {unit}s is public.",
    "add_remove": "Two tables are neighbors if one of them contains one additional {unit}. The number of {unit}s is "
    "private.",
    "replace_one": "Two tables are neighbors if one {unit} of the first is replaced by a different {unit} in the "
    "second. The number of {unit}s is public.",
}


def word(facts: Facts) -> str:
    """Name of the privacy unit: "row", or the unit of the accountant, or "group"."""
    guarantee = facts["guarantee"]
    if guarantee["unit"] == "row":
        return "row"
    named = guarantee["accountant_unit"]
    return "group" if named in (None, "row") else str(named)


def neighbors(facts: Facts) -> str:
    """The neighboring relation."""
    said = NEIGHBORS[facts["guarantee"]["adjacency"]].format(unit=word(facts))
    return (
        said if facts["guarantee"]["unit"] == "row" else f"{said} The number of rows of each {word(facts)} is private."
    )


def figure(value: Any, *, up: bool = True) -> str:
    """A number with five digits, never rounded to the wrong side."""
    return value if isinstance(value, str) else to_digits(value, 5, up=up)


def percent(probability: float) -> str:
    """A probability, rounded up to a tenth of a percent."""
    return f"{math.ceil(probability * 1000.0) / 10.0:.1f}%"


def composed_cost(facts: Facts) -> str:
    """Epsilon and delta as text."""
    guarantee = facts["guarantee"]
    return f"epsilon = {figure(guarantee['epsilon'])} at delta = {guarantee['delta']:g}"


def unit(facts: Facts) -> str:
    """The privacy unit."""
    if facts["guarantee"]["unit"] == "row":
        return "One row of the table. Several rows of the same person are not protected jointly."
    groups = facts["guarantee"]["groups"]
    return f"One {word(facts)}: all rows with the same " + (f"`{groups}`." if groups else "group identifier.")


def partition(facts: Facts) -> str:
    """The partition of the accountant whose units were fitted; "" without partitions."""
    found = facts["guarantee"]
    if found["partition"] is None:
        return ""
    return (
        f"The accountant is charged for the partition `{found['partition']}`, by the rule `{found['partition_rule']}`. "
        f"The rule must assign each {word(facts)} to one partition independently of the data; this is an assumption "
        "of the data owner. The stated epsilon is that of all releases together, as if all had read the same partition."
    )


def layperson(facts: Facts) -> str:
    """The meaning of the guarantee in plain language, by epsilon and delta alone."""
    guarantee = facts["guarantee"]
    seeded = (
        " An attacker who knows the seed of the noise can do better." if facts["noise"]["source"] == "seeded" else ""
    )
    what = word(facts)
    is_pair = guarantee["adjacency"] == "replace_one"
    which = f"which of two given {what}s was used" if is_pair else f"whether this {what} was used"
    return (
        f"Consider an attacker who knows one {what}, knows all other {what}s, and sees the whole model. The attacker "
        f"guesses {which} to fit the model. If both answers were equally likely before, the guess is right with "
        f"probability at most {percent(guarantee['attacker_accuracy'])}. A guess without the model is right with "
        f"probability 50%.{seeded}"
    )


def tighter(facts: Facts) -> str:
    """The accuracy of the attacker by the whole privacy profile."""
    simple, guess = facts["guarantee"]["attacker_accuracy"], facts["guarantee"]["attacker_accuracy_by_profile"]
    words = f"Epsilon and delta alone bound the attacker's accuracy by {percent(simple)}"
    if guess is None:
        return f"{words}. The privacy profile of the releases, which may give a smaller bound, is not available."
    return f"{words}; the whole privacy profile of the releases bounds it by {percent(guess)}."


def known(facts: Facts, name: str, form: Callable[[Any], str] = figure) -> str:
    """A number of the guarantee in this form, if it is available."""
    found = facts["guarantee"][name]
    return "not available" if found is None else f"at most {form(found)}"


def exact_percent(probability: float) -> str:
    """A probability, rounded up to a thousandth of a percent."""
    return f"{_thousandths(probability)}%"


def _thousandths(probability: float) -> str:
    return f"{math.ceil(probability * 1e5 - 1e-9) / 1e3:.3f}"


def people(facts: Facts) -> str:
    """The true positive rate as a number of records; "" if it is not available."""
    found, what = facts["guarantee"]["tpr_at_1_percent_fpr"], word(facts)
    if found is None:
        return ""
    which = "have the suspected value" if facts["guarantee"]["adjacency"] == "replace_one" else "were used"
    return (
        f"An attacker who accepts a false alarm for 10 of 1,000 {what}s (false positive rate, FPR, of 1%) detects at "
        f"most {math.ceil(found * 1e3 - 1e-9)} of 1,000 {what}s that {which} (true positive rate, TPR). Without the "
        "model, the attacker detects 10. The advantage is an average and does not bound rare guesses with high "
        "confidence; the true positive rates at small false positive rates do."
    )


_QUESTIONS = {
    "Singling out": (
        "Can one {unit} be isolated? An attacker decides {which}. If both answers were equally likely before, the "
        "decision is right with probability at most {accuracy}.{tpr}",
        "Access to the training data themselves, and other results of the same rows.{rows}",
    ),
    "Linking": (
        "Can a record from another source be linked to a {unit} of the training data? The bound of {accuracy} also "
        "holds here, whatever other data the attacker has, including all other {unit}s.",
        "Several results of the same {unit}s: their privacy costs add up, and an accountant must record all of them.",
    ),
    "Inference": (
        "Can a value of one {unit} be inferred? The probability that a guess about the {unit} is right is at most "
        "{advantage} percentage points higher than with a model that was fitted {without}.",
        "Conclusions from correlations and about groups. If the model shows that smokers fall ill more often, this "
        "applies to every smoker, in the data or not. A prediction for a person is such a conclusion.",
    ),
}


def opinion(facts: Facts) -> list[str]:
    """The frame of the three questions of Opinion 05/2014."""
    words = [
        "The Article 29 Working Party of the European data protection authorities asks three questions about a result "
        "that is to be called anonymous (Opinion 05/2014 on anonymisation techniques). The table states what the "
        "guarantee bounds for each question, and what it does not bound.",
        "This report does not state that the model is anonymous in the legal sense. That assessment also depends on "
        "the purpose, the recipients, the other data that they can obtain, and the size of the bounds.",
    ]
    return [*words, "The exceptions in the summary apply to these bounds, too."] if exceptions(facts) else words


def opinion_rows(facts: Facts) -> TableCells:
    """The bounds of the guarantee, and their limits, for each question of Opinion 05/2014.

    The probability of any guess differs between neighbors by at most their total variation distance, which is the
    advantage; without a profile, 2 a - 1 bounds it, where a is the attacker's accuracy.
    """
    found, one = facts["guarantee"], word(facts)
    replace, tpr = found["adjacency"] == "replace_one", found["tpr_at_1_percent_fpr"]
    guess = found["attacker_accuracy_by_profile"] or found["attacker_accuracy"]
    advantage = 2.0 * guess - 1.0 if found["advantage"] is None else found["advantage"]
    more = f" At a false positive rate of 1%, at most {exact_percent(tpr or 0.0)} of the {one}s are detected."
    values = {
        "unit": one,
        "which": f"which of two given {one}s was used" if replace else f"whether a given {one} was used",
        "accuracy": percent(guess),
        "advantage": _thousandths(advantage),
        "tpr": "" if tpr is None else more,
        "without": f"to another {one} in its place" if replace else "without it",
        "rows": " The bounds apply to one row; a person with several rows is protected less."
        if found["unit"] == "row"
        else "",
    }
    return [(name, *(each.format(**values) for each in texts)) for name, texts in _QUESTIONS.items()]


def formal(facts: Facts) -> str:
    """The definition, with its numbers."""
    guarantee = facts["guarantee"]
    return (
        "For neighboring tables D and D' and every set S of outcomes, P(fit(D) in S) <= e^epsilon P(fit(D') in S) + "
        f"delta, with epsilon = {figure(guarantee['epsilon'])} and delta = {guarantee['delta']:g}. The outcome is the "
        "complete state of the fitted object."
    )


def delta_and_rows(facts: Facts) -> str:
    """Whether delta is small enough for this number of rows."""
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
        "secret": "The noise is secret. It was drawn with a key from the operating system, which was not stored.",
        "seeded": "The noise is seeded by `random_state`. An attacker who knows it can subtract the noise. If it was "
        "used for two fits of the same estimator, the difference of their outputs is exact, and anyone can subtract "
        "the noise.",
        "not recorded": "The class that fitted this model did not record whether its noise is secret.",
    }[facts["noise"]["source"]]


def method(facts: Facts) -> str:
    """How epsilon was computed."""
    name = facts["accounting"]["method"]
    if name is None:
        return "Epsilon was computed by an earlier version; no accounting method gives the stored value today."
    if name == PURE:
        return "Epsilon is the largest log-ratio of two probabilities of the same outcome; delta is 0."
    return f"Epsilon was computed by {METHOD_NAMES[name]}, an upper bound for the composition of all releases."


def certified(facts: Facts) -> str:
    """The certified bracket of the smallest epsilon."""
    low, high = facts["accounting"]["epsilon_at_least"], facts["accounting"]["epsilon_at_most"]
    if low is None:
        return "PLD accounting does not support these releases, so there is no certified bracket of epsilon."
    if low == 0.0:
        return f"The smallest epsilon of these releases at this delta is at most {figure(high)}, an upper bound only."
    lower = figure(low, up=False)
    return (
        f"The smallest epsilon of these releases at this delta lies between {lower} and {figure(high)}; both bounds "
        "are certified."
    )


def sampling(facts: Facts) -> str:
    """Whether the assumptions of the accounting hold."""
    kinds = facts["accounting"]["sampling"]
    if "a Poisson sample" in kinds:
        return (
            f"The accounting assumes Poisson sampling, and the fit draws each {word(facts)} independently for each "
            "step. Shuffled batches are not used instead."
        )
    if "a sample of fixed size" in kinds:
        return "The accounting assumes samples of fixed size, drawn uniformly without replacement."
    return "No release uses a random sample, so the accounting assumes no amplification by sampling."


def accesses(facts: Facts) -> str:
    """The uses of the rows that the guarantee covers."""
    kind, tuning = facts["model"]["kind"], facts["tuning"]
    if tuning is not None:
        if tuning["candidates"] == 1:
            return "The fit of the only candidate. There was no selection."
        return (
            "The whole search: all fits, all scores, the selection of the best candidate and, if there is one, its "
            "refit."
        )
    if kind == "estimator and table":
        return "The fit to one part of the rows, if there was one, and the noisy histogram of scores of the other part."
    if kind == "pipeline":
        return (
            "The fits of all private steps, as one adaptive composition. The other steps learn nothing from the rows."
        )
    return "All fits that the present state depends on, including earlier calls of fit and partial_fit."


def outcome(facts: Facts) -> str:
    """The outputs that the guarantee covers."""
    many = any(row["times"] > 1 and not row["within"] for row in facts["mechanisms"]["rows"])
    more = ", and the noisy results of all intermediate steps" if many else ""
    return f"The guarantee covers the complete state of the fitted object{more}."


def tuned(facts: Facts) -> str:
    """The privacy cost of the choice of parameters."""
    tuning = facts["tuning"]
    if tuning is None:
        return (
            "The guarantee includes no hyperparameter tuning. If parameters were chosen by results on these rows, that "
            "choice is not covered."
        )
    if tuning["candidates"] == 1:
        return "There was one candidate, so the selection has no privacy cost."
    if tuning["candidates"] is None:
        return "A private search selected this model. The stated privacy cost is that of the whole search."
    if tuning["trials"] is None:
        how = f"Each of the {tuning['candidates']} candidates was evaluated once."
    else:
        how = (
            f"The search made a secret number of trials, {tuning['trials_on_average']:.4g} on average "
            f"({tuning['trials']} distribution). Each used a candidate drawn at random from {tuning['candidates']}."
        )
    paid = [
        f"{what} has epsilon = {figure(tuning[key])}"
        for what, key in (("the selection", "epsilon_of_choice"), ("the refit", "epsilon_of_refit"))
        if tuning[key]
    ]
    alone = f" Alone at the same delta, {' and '.join(paid)}; together {composed_cost(facts)}." if paid else ""
    return f"{how} The scores ({tuning['scoring']}) are noisy.{alone}"


def quality(facts: Facts) -> str:
    """The data and the privacy cost of the metrics."""
    found = facts["quality"]
    if found["within"]:
        return (
            "These metrics describe the scores before calibration or thresholding. They are computed from the noisy "
            "histogram of the fit, so the stated epsilon includes them. The intervals account for the privacy noise "
            "and for the sampling of the rows."
        )
    return (
        f"These metrics come from one noisy histogram of an evaluation on private rows. Its guarantee is epsilon = "
        f"{figure(found['epsilon'])} and delta = {found['delta']:g} for one {found['unit']} of those rows "
        f"({found['adjacency']}). The privacy cost of the model, stated above, does not include it. The intervals "
        "account for the privacy noise and for the sampling of the rows."
    )


def exceptions(facts: Facts) -> list[str]:
    """Exceptions to the guarantee, to be read first."""
    found = []
    if facts["guarantee"]["epsilon"] == "infinity":
        found.append("Epsilon is infinite: there is no guarantee.")
    if facts["noise"]["source"] == "seeded":
        found.append(
            "The noise is seeded: the guarantee does not hold against an attacker who knows the seed. If the seed was "
            "used for two fits, it does not hold against anyone."
        )
    if not facts["unaccounted"]["recorded"]:
        found.append("Unaccounted reads of the rows were not recorded, or not always.")
    found += [each["text"] for each in facts["unaccounted"]["reads"]]
    delta, n = facts["guarantee"]["delta"], facts["guarantee"]["n_units_public"]
    if n is not None and delta * n >= 1:
        found.append("Delta is too large: publishing one whole record would satisfy it.")
    if facts["accounting"]["method"] is None:
        found.append("An earlier version computed the stored epsilon; no accounting method gives it today.")
    parts = facts["model"]["private_parts"]
    strangers = {each["class"]: each["package"] for each in parts if each["package"] != "skdp"}
    found += [f"{name} is a third-party class of {package}: skdp cannot verify its sensitivity."
              for name, package in strangers.items()]  # fmt: skip
    return found


def _time(facts: Facts) -> str:
    """Information that the run time of a fit can reveal."""
    chosen = [
        each["value"] for each in facts["public"]["parameters"] if each["name"].split("__")[-1] == "merge_equal_rows"
    ]
    if any(value != "False" for value in chosen):
        return (
            "Time and memory of a fit can depend on the number of distinct rows, because equal rows are processed once "
            "(merge_equal_rows)."
        )
    return "The run time of a fit can depend on the rows."


def not_covered(facts: Facts) -> list[tuple[str, str]]:
    """Topics that no guarantee of this library covers, or that are the publisher's to decide."""
    public_rows = facts["guarantee"]["adjacency"] != "add_remove"
    listed = [
        ("Other uses of the rows", "Other fits, scores, statistics and choices that use the same rows. A shared "
         "PrivacyAccountant adds up the cost of everything that is charged to it."),
        ("Several rows of one person", "The privacy unit is one row. The loss adds up over the rows of one person, "
         "household or company."),
        ("Error messages", "An error about invalid rows reveals information about them. Do not publish such messages."),
        ("Run time", _time(facts)),
        ("Floating point", "The noise lies on a public grid, so that low-order bits reveal nothing (Mironov 2012), and "
         "is large enough for the rounding of sums of up to 2^20 rows. The rounding of larger sums is not proved."),
        ("Names and types", "The names, number and types of the columns are assumed to be public."),
        ("Predictions for private rows", "A prediction for a private row depends on that row. This is not covered."),
        ("Parameters", "Constructor parameters are assumed to be public, however they were chosen."),
        ("Small groups", "Noise reduces the recall of small groups first, and post-processing cannot correct this. See "
         "skdp.evaluate(..., by=...)."),
    ]  # fmt: skip
    if facts["guarantee"]["unit"] != "row":
        listed[1] = ("Group identifiers", f"skdp cannot verify them. All rows of one {word(facts)}, and no others, "
                     "must have the same identifier.")  # fmt: skip
    elif public_rows:
        listed.insert(2, ("Number of rows", "It is assumed to be public. If it is private, use skdp.AddRemove."))
    if facts["model"]["public_steps"]:
        listed.append(
            ("Public steps", "skdp cannot verify that a function marked by skdp.row_wise processes rows independently.")
        )
    return listed


def publication_rows(facts: Facts) -> TableCells:
    """Items to state in a publication: Ponomareva et al. 2023, section 5.3."""
    return [
        ("Setting", "Central: the organization that runs the fit holds all rows and adds the noise."),
        ("Data accesses covered", accesses(facts)),
        ("Final output", outcome(facts)),
        ("Unit of privacy", unit(facts)),
        ("Neighboring relation", neighbors(facts)),
        ("Type of accounting", method(facts)),
        ("Assumptions", sampling(facts)),
        ("Formal statement", formal(facts)),
        ("Tuning", tuned(facts)),
        ("Verification", f"Open source: skdp {facts['versions']['skdp']}; the releases are listed in this report."),
    ]


def nist_rows(facts: Facts) -> TableCells:
    """The blocks of the pyramid of NIST SP 800-226, from the top, and where each is answered."""
    stated, yours = "stated here", "open question"
    correct = (
        "Noise and privacy cost are computed from the same event; sensitivities are proved and tested "
        "(docs/guarantees.md)."
    )
    noise = "The standard deviations are listed under noise and clipping. Measure the loss of accuracy on public rows."
    return [
        ("Privacy parameters", stated, composed_cost(facts) + "."),
        ("Unit of privacy", stated, unit(facts)),
        ("Other releases", yours, "Are other results of the same rows published, with or without noise?"),
        ("Algorithms and correctness", stated, " ".join([correct, *exceptions(facts)])),
        ("Utility", yours, noise),
        ("Bias", yours, "Noise and clipping affect small groups most. Is the model accurate for them?"),
        ("Trust model", stated, "Central: the organization that runs the fit sees all rows and must be trusted."),
        ("Side channels", stated, "Run time is not covered, nor the rounding of sums of more than 2^20 rows."),
        ("Access control", yours, "Who can read the rows, the budget file, and the machine on which the fit runs?"),
        ("Data collection exposure", yours, "Are fewer rows and columns, kept for a shorter time, sufficient?"),
    ]
