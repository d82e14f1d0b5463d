"""Synthetic tables of households and of their persons, linked by a key."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from skdp._checks.numbers import format_names, key_of
from skdp._checks.parameters import adjacency_of, check_count, show, without_removed
from skdp.base.fit import account_of, recording_rejections
from skdp.preprocessing.raw_columns import read_schema
from skdp.preprocessing.schema.table_schema import TableSchema
from skdp.synthesis.generator import generator_of
from skdp.synthesis.marginals.product_mixture import Mixture
from skdp.synthesis.marginals.synthesizer import DPMarginalSynthesizer

SIZE, PLACE = "number of persons", "place in the household"
"""Additional columns: of households, and of persons by their order within the household."""


class HouseholdSynthesizer(DPMarginalSynthesizer):
    """The synthesizer of `synthesize_linked`: persons with the columns of their households.

    Notes
    -----
    **Guarantees.** The contribution of a household with all of its persons is at most that of one row.

    Proof. Rows of a household have weights that sum to at most one, so that its contribution is an average of
    contributions of rows, which is not longer than one of them. A reach of 1
    (`skdp.synthesis.marginals.noisy_tables.unit_reach`) clips the contribution to that, and the noise is that of rows.
    Weights and the two additional columns depend on the rows of the household alone.
    """

    _public_name = "synthesize_linked"
    _largest_reach = 1.0

    def draw_linked(self, n: int, n_first: int, rng: np.random.Generator) -> tuple[np.ndarray, Any]:
        """Return the household of each synthetic person, and persons with the columns of their households.

        Numeric values of a household lie in one bin for all of its persons, at independent positions in it.
        """
        mixture, size = Mixture(self._fitted_levels, self.components_), n_first - 1
        drawn = mixture.draw(n, rng)
        homes = np.repeat(np.arange(n), drawn[:, size] + 1)
        levels = drawn[homes]
        first = np.searchsorted(homes, np.arange(n))
        levels[:, n_first] = np.arange(len(homes)) - first[homes]
        levels = mixture.filled(levels, range(n_first + 1), rng)
        return homes, self._fitted_form.write(levels, self.within_bins, rng)


@without_removed
def synthesize_linked(
    households: Any,
    persons: Any,
    *,
    key: str,
    schema: Any = None,
    max_persons: int = 8,
    n_households: int | None = None,
    epsilon: Any = 1.0,
    delta: float | str = "auto",
    n_bins: int = 16,
    adjacency: Any = None,
    accountant: Any = None,
    random_state: Any = None,
) -> tuple[Any, Any]:
    """Create linked synthetic tables of households and persons, with matching keys and counts.

    The privacy unit is a household with all of its persons. See ``docs/synthetic_data.md``.

    Parameters
    ----------
    households : pandas.DataFrame of shape (n_households, n_columns)
        Private rows, one for each household.
    persons : pandas.DataFrame of shape (n_persons, n_columns)
        Private rows, one for each person. The order of the persons of a household is informative, such as the reference
        person first. Column names must differ from those of households.
    key : str
        Name of the column in both tables that identifies the household. It is not synthesized.
    schema : TableSchema, mapping or None, default=None
        Public values of the columns of both tables. Missing bounds and categories are privately estimated, as for
        `skdp.synthesize`.
    max_persons : int, default=8
        Public maximum number of persons of a synthetic household. Larger private households count as that large.
    n_households : int or None, default=None
        Number of synthetic households. If None, the public number of households in the private table.
    epsilon : float or Risk, default=1.0
        Privacy budget of both tables together. A number, or a bound on membership-inference risk such as
        ``skdp.Risk(advantage=0.1)`` (``docs/membership_inference.md``).
    delta : float or "auto", default="auto"
        The delta of the (epsilon, delta) guarantee, as for `DPMarginalSynthesizer`.
    n_bins : int, default=16
        Number of bins of a numeric or date column without edges.
    adjacency : {"zero_out", "replace_one"}, AddRemove or None, default=None
        Neighboring relation: how two tables differ in one household with its persons, as for `DPMarginalSynthesizer`.
        Under "zero_out" and "replace_one" the number of households is public, and that of persons is private. The
        `n_public` of ``AddRemove`` counts households.
    accountant : PrivacyAccountant, str, path-like or None, default=None
        Accountant to which the release is charged before anything is learned from the rows.
    random_state : int, RandomState or Generator instance or None, default=None
        Source of the noise. None draws a fresh secret key from the operating system. Any other value makes the noise
        reproducible and issues a `PrivacyLeakWarning`. Samples are drawn anew each time.

    Returns
    -------
    households : pandas.DataFrame of shape (n_households, n_columns)
        Synthetic households. Keys are integers from 0.
    persons : pandas.DataFrame of shape (n_persons, n_columns)
        Their persons, at least one in each household.

    Raises
    ------
    TypeError
        A table is not a pandas data frame.
    ValueError
        A parameter, the schema or a table is invalid, or keys do not match. No budget was consumed.
    BudgetExceededError
        The budget of the accountant does not permit the release. No budget was consumed.

    See Also
    --------
    skdp.synthesize : Synthesize a single table.

    Notes
    -----
    **Preserved statistics.** The synthesizer preserves two-way marginals of household columns, of person columns, and
    between both. The number of persons and the position of a person within the household are columns too. Persons of a
    household are drawn independently, given its columns and their positions. Other associations between two persons of
    a household are not preserved. Households without persons have no contribution, and are not synthesized.

    Each person has a weight of 1 over the number of persons of the household. The single release is accounted for like
    a fit of `DPMarginalSynthesizer` with groups. Keys are read before the budget is checked, and the accountant records
    a rejection of invalid keys.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skdp.synthesis import synthesize_linked
    >>> rng = np.random.default_rng(0)
    >>> homes = pd.DataFrame({"home": range(3000), "rooms": rng.integers(1, 6, 3000)})
    >>> persons = homes.loc[homes.index.repeat(rng.integers(1, 1 + homes["rooms"])), ["home"]]
    >>> persons["age"] = rng.integers(0, 90, len(persons))
    >>> schema = {"rooms": range(1, 6), "age": (0, 90)}
    >>> synthetic, synthetic_persons = synthesize_linked(homes, persons, key="home", schema=schema)
    >>> len(synthetic), set(synthetic["home"]) == set(synthetic_persons["home"])
    (3000, True)
    """
    most = check_count("max_persons", max_persons, constraint="a positive integer, such as 8")
    if n_households is not None:
        check_count("n_households", n_households, at_least=0, constraint="a nonnegative integer, or None")
    model = HouseholdSynthesizer(
        _with_made_columns(schema, most), n_bins=n_bins, epsilon=epsilon, delta=delta, weight_bound=1.0,
        adjacency=adjacency, accountant=accountant, random_state=random_state,
    )  # fmt: skip
    if adjacency_of(model) != "add_remove" and hasattr(households, "__len__"):
        model._n_public = len(households)  # including those without persons, which have no rows
    _check_frames(households, persons, key)
    with recording_rejections(partial(account_of, model)):
        joined, homes, weights = _join(households, persons, key, most)
    model.fit(joined, sample_weight=weights, groups=homes)
    n = int(model.n_samples_) if n_households is None else n_households
    # Columns of the household and its number of persons are followed by the position and the columns of the person.
    n_first = households.shape[1]
    homes, made = model.draw_linked(n, n_first, generator_of(None))
    first = np.searchsorted(homes, np.arange(n))
    of_homes = made.iloc[first, : n_first - 1].set_axis(range(n))
    of_persons = made.iloc[:, n_first + 1 :].copy()
    of_homes.insert(0, key, np.arange(n))
    of_persons.insert(0, key, homes)
    return of_homes, of_persons


def _join(households: Any, persons: Any, key: str, most: int) -> tuple[Any, Any, np.ndarray]:
    """Return persons with the columns of their households, or reject keys without revealing any of them.

    Also returns the index of the household of each, and 1 over its number of persons.
    """
    import pandas as pd

    known, asked = (
        pd.Index([key_of(cell) for cell in table[key].tolist()], dtype=object) for table in (households, persons)
    )
    if not known.is_unique:
        raise ValueError(f"`households` must have unique keys in column {key!r}. Keep one row per household.")
    homes = known.get_indexer(asked)
    if known.hasnans or bool((homes < 0).any()) or not len(homes):
        raise ValueError(
            f"`persons` must have rows, and each key in column {key!r} must occur in `households`. Drop other rows."
        )
    sizes = np.bincount(homes, minlength=len(known))[homes]
    places = pd.Series(homes).groupby(homes).cumcount().to_numpy()
    first = households.drop(columns=key).iloc[homes].reset_index(drop=True)
    last = persons.drop(columns=key).reset_index(drop=True)
    made = {SIZE: np.minimum(sizes, most), PLACE: np.minimum(places, most - 1) + 1}
    joined = pd.concat([first, pd.DataFrame(made), last], axis=1)
    return joined, pd.Series(homes, name=key), 1.0 / sizes


def _check_frames(households: Any, persons: Any, key: Any) -> None:
    for name, table in (("households", households), ("persons", persons)):
        if not hasattr(table, "iloc") or not hasattr(table, "columns"):
            raise TypeError(
                f"`{name}` must be a pandas data frame, got {type(table).__name__}. Convert it, e.g. by to_pandas()."
            )
        if key not in table.columns or len(table.columns) < 2:
            raise ValueError(f"`key` must be a column of {name}, besides other columns, got {show(key)}.")
    names = [*households.columns, SIZE, PLACE]
    if both := [name for name in persons.columns if name in names and name != key]:
        raise ValueError(f"`persons` must not have columns of `households`, got {format_names(both)}. Rename them.")


def _with_made_columns(schema: Any, most: int) -> TableSchema:
    found = TableSchema({}, others="estimate") if schema is None else read_schema(schema, "or None, to estimate it")
    if found.impossible:
        raise ValueError("`schema` must not have impossible combinations for linked tables. Remove `impossible`.")
    numbers = list(range(1, most + 1))
    return TableSchema({**dict(found.items()), SIZE: numbers, PLACE: numbers}, others=found.others)
