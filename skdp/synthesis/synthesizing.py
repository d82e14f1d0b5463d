"""A raw table as a synthetic one, in one line."""

from __future__ import annotations

from typing import Any

from skdp._checks.parameters import check_count
from skdp.synthesis.marginals.synthesizer import DPMarginalSynthesizer


def synthesize(
    table: Any,
    *,
    schema: Any = None,
    n_samples: int | None = None,
    epsilon: float | None = 1.0,
    delta: float | str = "auto",
    groups: Any = None,
    n_bins: int = 16,
    noise_multiplier: float | None = None,
    adjacency: str = "zero_out",
    accounting: str = "pld",
    accountant: Any = None,
    n_samples_public: int | None = None,
    n_groups_public: int | None = None,
    random_state: Any = None,
) -> Any:
    """Make a synthetic table from a private one: numbers, words, dates and gaps.

    It is a sample of a `DPMarginalSynthesizer`, which has more options, gives any number of rows, and writes a report.

    Parameters
    ----------
    table : array-like or frame of shape (n_samples, n_features)
        Private rows. A label is a column like any other.
    schema : TableSchema, mapping or None, default=None
        What is public of each column; a mapping is what `skdp.preprocessing.TableSchema` takes. Bounds and categories
        that are left out are bought, for a tenth of the budget's mu^2. If None, only names and types of the columns are
        public.
    n_samples : int or None, default=None
        Number of synthetic rows. If None, the public number of rows of `table`, or of groups.
    epsilon : float or None, default=1.0
        Privacy budget. The noise is calibrated to it. Must be None if `noise_multiplier` is given.
    delta : float or "auto", default="auto"
        Probability with which the guarantee may fail. Choose it well below 1/n. "auto" is the delta of the accountant
        if it has one, else 1e-5 for up to 10,000 rows and 1/(10 n), rounded down to a power of ten, for more, n being
        the public number of rows.
    groups : array-like of shape (n_samples,), str or None, default=None
        Private label of the unit of each row, such as a person or a household, or the name of a column of `table`,
        which is not synthesized then. The guarantee is then for all rows of one label together, else for one row.
    n_bins : int, default=16
        Number of bins of a number or a date without edges.
    noise_multiplier : float or None, default=None
        Standard deviation of the noise of a single release, divided by its sensitivity. If None, it is calibrated to
        `epsilon`.
    adjacency : {"zero_out", "add_remove", "replace_one"}, default="zero_out"
        How neighbouring tables differ, as for `DPMarginalSynthesizer`.
    accounting : {"pld", "rdp", "moments", "optimal_exact", "optimal", "strong", "naive"}, default="pld"
        Accounting method that prices the release. See ``docs/accounting.md``.
    accountant : PrivacyAccountant, str, path-like or None, default=None
        Ledger to which it is charged before anything is learned from the rows. A path names the file of an existing
        ledger.
    n_samples_public : int or None, default=None
        Public number of rows, used instead of n in every rule. Required if ``adjacency="add_remove"``.
    n_groups_public : int or None, default=None
        The same for the number of groups, where `groups` are given.
    random_state : int, RandomState or Generator instance or None, default=None
        Source of the noise. None draws a fresh secret key from the operating system. Any other value makes the noise
        reproducible and issues a `PrivacyLeakWarning`. Samples are drawn anew each time.

    Returns
    -------
    synthetic : ndarray or frame of shape (n_samples, n_features)
        Rows in the form of `table`, without dropped columns. Categories that are not kept are "other", and gaps are
        gaps.

    Raises
    ------
    ValueError
        A parameter, the schema or the table is invalid. Nothing was charged.
    BudgetExceededError
        The budget of the accountant does not admit it. Nothing was charged.

    Warns
    -----
    QualityWarning
        Nothing is left of a column, or rows are few: by public numbers and by what was released.

    See Also
    --------
    DPMarginalSynthesizer : What makes the table, its guarantees and its report.
    skdp.describe : Figures of a private table.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import skdp
    >>> rng = np.random.default_rng(0)
    >>> age = rng.integers(18, 90, 5000)
    >>> people = pd.DataFrame({"age": age, "job": np.where(age > 65, None, rng.choice(["clerk", "nurse"], 5000))})
    >>> made = skdp.synthesize(people, epsilon=1.0)
    >>> made.shape, bool(made["job"][made["age"] > 70].isna().mean() > 0.8)
    ((5000, 2), True)
    """
    if n_samples is not None:
        check_count("n_samples", n_samples, at_least=0, remedy="choose a whole number of rows, or None")
    synthesizer = DPMarginalSynthesizer(
        schema,
        n_bins=n_bins,
        epsilon=epsilon,
        delta=delta,
        noise_multiplier=noise_multiplier,
        n_samples_public=n_samples_public,
        n_groups_public=n_groups_public,
        adjacency=adjacency,
        accounting=accounting,
        accountant=accountant,
        random_state=random_state,
    ).fit(table, groups=groups)
    return synthesizer.sample(int(synthesizer.n_samples_) if n_samples is None else n_samples)
