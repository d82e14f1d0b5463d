"""Mistakes in the price of a run and in what a ceiling admits."""

from mutant import BY_PROPERTY, mutant
from paths import (
    ACCOUNTANT,
    ADMISSION,
    BALANCE,
    BASE,
    CONDUCTOR,
    DEFAULT_DELTA,
    EVENTS,
    FILTERS,
    GRADIENT,
    LEAKS,
    LOG,
    METHODS,
    PLAN,
    RELEASES_OF_EVENTS,
    TRAINING,
)

MUTANTS = [
    # --- delta by the rule ---
    mutant(
        "delta from the private number of rows",
        (BASE, "        n = self._public_n_samples(n_samples)\n        given", "        n = n_samples\n        given"),
        tests="default_delta",
        select="add_remove",
    ),
    mutant(
        "delta of an instalment found anew",
        (
            GRADIENT,
            "self._settle_delta(terms, shape[0], self.delta_ if warm else None)",
            "self._settle_delta(terms, shape[0])",
        ),
        tests="default_delta",
        select="instalments",
    ),
    mutant(
        "delta rounded up to a power of ten",
        (DEFAULT_DELTA, "len(str(10 * n_samples - 1))", "len(str(10 * n_samples - 1)) - 1"),
        tests="default_delta",
        select="rule",
    ),
    mutant(
        "delta of the ledger overlooked",
        (DEFAULT_DELTA, "if accountant is not None and accountant.delta is not None:", "if False:"),
        tests="default_delta",
        select="ledger",
    ),
    # --- the price ---
    mutant(
        "a subclass of an event priced as its base",
        (
            EVENTS,
            "    if type(event) in _OWN:\n",
            "    if isinstance(event, tuple(_OWN - {DpEvent})):\n",
        ),
        tests="extending",
        select="subclass_of_our_event",
    ),
    mutant(
        "prices of others' events kept by what these say is equal",
        (
            RELEASES_OF_EVENTS,
            "def releases(event: DpEvent) -> Releases:",
            "@lru_cache\ndef releases(event: DpEvent) -> Releases:",
        ),
        tests="extending",
        select="equal_by_their_class",
    ),
    mutant(
        "event with one step fewer",
        (PLAN, "return self.event_of(self.n_steps)", "return self.event_of(self.n_steps - 1)"),
        tests="plan loop",
        select=BY_PROPERTY,
    ),
    mutant(
        "one step more than is priced",
        (TRAINING, "while state.n_done < plan.n_steps:", "while state.n_done < plan.n_steps + 1:"),
        (TRAINING, "plan.mechanism_at(state.n_done)", "plan.mechanism_at(min(state.n_done, plan.n_steps - 1))"),
        (TRAINING, "state.average), state.n_done", "state.average), min(state.n_done, plan.n_steps)"),
        tests="loop",
        select=BY_PROPERTY,
    ),
    mutant(
        "replace_one priced as add_remove",
        (
            METHODS,
            'value = _epsilon(found, delta, method, adjacency == "replace_one", records=records)',
            "value = _epsilon(found, delta, method, False, records=records)",
        ),
        tests="plan epsilon",
    ),
    mutant(
        "noise solved for without adjacency",
        (
            BASE,
            "target, method=self.accounting, adjacency=self.adjacency)",
            "target, method=self.accounting)",
        ),
        tests="logistic",
    ),
    mutant(
        "accountant spent in a forked process",
        (LOG, "return self._detached or self._process != os.getpid()", "return self._detached"),
        tests="accountant",
        select="forked",
    ),
    mutant(
        "accountant lost in clone",
        (ACCOUNTANT, "def __sklearn_clone__(self)", "def _no_clone(self)"),
        (ACCOUNTANT, "def __copy__(self)", "def _no_copy(self)"),
        (ACCOUNTANT, "def __deepcopy__(self, memo", "def _no_deepcopy(self, memo"),
        tests="accountant logistic_tools",
        select="clone or ledger",
    ),
    mutant(
        "a pickled accountant that spends",
        (LOG, "        self._detached = True\n", ""),
        tests="accountant",
    ),
    # --- what a ceiling admits ---
    mutant(
        "delta not halved between two filters",
        (FILTERS, '0.5 * delta if family == "auto" else delta', "delta"),
        tests="filters",
        select="shares or half_of_delta",
    ),
    mutant(
        "the whole delta for each Rényi filter",
        (
            FILTERS,
            "renyi_epsilon_at(order, 0.0, rule.renyi / len(rule.orders))",
            "renyi_epsilon_at(order, 0.0, rule.renyi)",
        ),
        tests="filters",
        select="shares or mix",
    ),
    mutant(
        "order chosen after outputs were seen",
        (BALANCE, "        if self.rule is not None:\n            return self.rule\n", ""),
        tests="filters",
        select="order",
    ),
    mutant(
        "a rule that is not kept",
        (ADMISSION, "replace(entry, rule=rules[0]) if rules else entry", "entry"),
        tests="filters",
        select="order or rule or chain",
    ),
    mutant(
        "an entry made in the ledger that others read",
        (LOG, "            ledger = self.read()\n", "            ledger = self._ledger\n"),
        tests="store_races",
        select="no_entry_in_part",
    ),
    mutant(
        "a first charge without its rule is read",
        (BALANCE, "if self.rule is None and charge.rule is None and self.epsilon is not None:", "if False:"),
        tests="store_faults",
        select="without_its_rule",
    ),
    mutant(
        "failure probabilities that do not add up",
        (FILTERS, "add_upwards([n * part for n, part in counted])", "add_upwards([part for n, part in counted])"),
        tests="filters",
        select="fail or known_epsilon",
    ),
    mutant(
        "failure probabilities for nothing",
        (FILTERS, "if failures_of(charges) <= self.failures else math.inf", "if True else math.inf"),
        tests="filters",
        select="fail or known_epsilon or delta_is",
    ),
    mutant(
        "a raised ceiling held by the filter",
        (
            BALANCE,
            "        if self.raised:\n            return share(self._odometer",
            "        if False:\n            return share(self._odometer",
        ),
        tests="filters",
        select="raised",
    ),
    mutant(
        "a raise below what was spent",
        (ADMISSION, "    if figure > epsilon:\n", "    if False:\n"),
        tests="filters budget",
        select="raise",
    ),
    mutant(
        "a refusal that is not recorded",
        (ACCOUNTANT, "            self._log.append(entry)\n", "            pass\n"),
        tests="filters",
        select="refus",
    ),
    mutant(
        "more releases than any method prices",
        (ADMISSION, "if not ledger.has_room(entry.event):", "if False:"),
        tests="filters",
        select="no_more_releases",
    ),
    mutant(
        "a charge that no method prices with the others",
        (ADMISSION, "if not ledger.priced_with(found, entry.adjacency):", "if False:"),
        tests="filters",
        select="joint_price",
    ),
    mutant(
        "a figure of what is left rounded up",
        (
            ADMISSION,
            "larger, least = to_digits(more, digits, up=up), to_digits(less, digits)",
            "larger, least = to_digits(more, digits, up=up), to_digits(less * 1.01, digits, up=True)",
        ),
        tests="filters",
        select="affordable",
    ),
    mutant(
        "the seed on the ledger",
        (BASE, '"n_jobs", "random_state", "verbose")', '"n_jobs", "verbose")'),
        tests="store",
        select="leaves_on_the_bill",
    ),
    mutant(
        "charge after the data are read",
        (
            CONDUCTOR,
            "    if not fit.is_paid():\n        fit.charge()\n    return charged(fit.learn)\n",
            "    found = charged(fit.learn)\n    if not fit.is_paid():\n        fit.charge()\n    return found\n",
        ),
        tests="conductor",
        select="asks_and_pays or no_row_is_read",
    ),
    mutant(
        "the ceiling is asked after the rows are read",
        (CONDUCTOR, "    if fit.event is not None:\n        _admit(fit)\n    with", "    with"),
        (CONDUCTOR, "    fit.prepare()\n", "    _admit(fit)\n    fit.prepare()\n"),
        tests="conductor",
        select="asks_and_pays or no_row_is_read",
    ),
    mutant(
        "earlier instalments not billed",
        (BASE, "event if earlier is None else compose([earlier, event])", "event"),
        tests="logistic_runs",
        select="instalments",
    ),
    mutant(
        "labels read from y without a word",
        (
            LEAKS,
            '    report_leak(\n        "classes=None:',
            '    (lambda *_, **__: None)(\n        "classes=None:',
        ),
        tests="logistic_runs",
        select="leak or warnings",
    ),
    mutant(
        "the seed used without a word",
        (
            BASE,
            "    if estimator.random_state is not None:\n        report_leak(",
            "    if False:\n        str(",
        ),
        tests="logistic_runs",
        select="leak or warnings",
    ),
    mutant(
        "rate and divisor from a private n",
        (
            GRADIENT,
            "run = recipe.plan_run(terms.budget, n, shape[1],",
            "run = recipe.plan_run(terms.budget, shape[0], shape[1],",
        ),
        tests="guarantees_neighbours",
        select="removing or add_remove",
    ),
]
