"""Curves of an additive model made monotone after the fit, for free."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

import numpy as np
from sklearn.isotonic import isotonic_regression
from sklearn.utils.validation import check_is_fitted

from skdp._checks.parameters import show
from skdp.effects.scores import names_of
from skdp.preprocessing.schema.blocks import Block
from skdp.preprocessing.vectorizer import DPTableVectorizer


def make_monotonic(pipeline: Any, monotonic_cst: Mapping[str, int]) -> Any:
    """Make curves of a fitted additive model monotone. No row is read, and nothing is charged.

    Parameters
    ----------
    pipeline : Pipeline
        A fitted pipeline of `skdp.DPTableVectorizer` and a linear model with one score: `skdp.DPLogisticRegression` of
        two classes, `skdp.DPRidge` or `skdp.DPLinearRegression`, as ``tabular_pipeline(DPLogisticRegression(...))``
        makes it.
    monotonic_cst : mapping of str to {-1, 0, 1}
        By the name of a column, as in scikit-learn: 1 if the score has to increase with the value, -1 if it has to
        decrease, 0 if it is free, as are columns that are left out. Columns are numbers, dates or ordinals. Choose them
        from what is known of the subject, not from what rows or curves show.

    Returns
    -------
    pipeline : Pipeline
        A copy with other coefficients; vectorizer, intercept, ledger and price are the same. A further ``fit`` of it
        knows nothing of `monotonic_cst`.

    Raises
    ------
    TypeError, ValueError
        The model is no such pipeline, a column is not known or has no order, or a constraint is not -1, 0 or 1.

    Notes
    -----
    Coefficients of the bins of a column are replaced by the monotone ones that are closest to them in squared distance
    (pool adjacent violators, Barlow et al. 1972), which keeps their mean; that of a scaled number by 0 if its sign is
    wrong. Both are projections onto a convex set, so that they come no further from any monotone curve, in particular
    from the one without noise if that is monotone. Gaps and "other" have no order and keep their coefficients. Trees
    are no sum of curves: their leaves would have to be constrained together.

    **Guarantees.**

    - The result is a function of the fitted coefficients, of the public schema and of `monotonic_cst`: post-processing,
      at no price.

    References
    ----------
    R. E. Barlow, D. J. Bartholomew, J. M. Bremner and H. D. Brunk, "Statistical inference under order restrictions",
    1972.

    Examples
    --------
    >>> import skdp
    >>> from skdp.datasets import make_census
    >>> from skdp.effects import make_monotonic
    >>> people = make_census(5_000, as_frame=True, random_state=0)
    >>> linear = skdp.DPLogisticRegression(classes=people.classes)
    >>> model = skdp.tabular_pipeline(linear, schema=people.schema).fit(people.data, people.target)
    >>> older_is_likelier = make_monotonic(model, {"age": 1})
    >>> older_is_likelier.epsilon_ == model.epsilon_
    True
    """
    steps = [step for _, step in getattr(pipeline, "steps", ())]
    if len(steps) != 2 or not isinstance(steps[0], DPTableVectorizer) or not hasattr(steps[1], "predict"):
        raise TypeError(f"pipeline={type(pipeline).__name__}: {_TAKEN}")
    vectorizer, model = steps
    check_is_fitted(model)
    coef = np.array(getattr(model, "coef_", np.empty(0)), np.float64)
    if hasattr(model, "embedding_") or coef.size != len(vectorizer.get_feature_names_out()):
        raise ValueError(f"pipeline: {type(model).__name__} has no single score that is a sum of curves: {_TAKEN}")
    blocks = vectorizer._fitted_blocks
    starts = np.cumsum([0, *(block.width for block in blocks)])
    flat = coef.reshape(-1)
    for k, direction in _read_constraints(monotonic_cst, blocks):
        _project(flat[starts[k] : starts[k + 1]], blocks[k], direction)
    made, learned = copy(pipeline), copy(model)
    learned.coef_ = coef
    if hasattr(learned, "_fitted_inference"):
        learned._fitted_inference = None  # a table of coefficients would be of those that were released
    made.steps = [pipeline.steps[0], (pipeline.steps[1][0], learned)]
    return made


_TAKEN = (
    "give a fitted pipeline of DPTableVectorizer and a linear model, such as "
    "tabular_pipeline(DPLogisticRegression(classes=[0, 1]))."
)


def _read_constraints(given: Any, blocks: list[Block]) -> list[tuple[int, int]]:
    if not isinstance(given, Mapping):
        raise TypeError(f"monotonic_cst={show(given)} is no mapping: give {{'column': 1}}, or -1.")
    names, found = names_of(blocks), []
    for name, direction in given.items():
        if name not in names:
            raise ValueError(f"monotonic_cst names {name!r}, no column that the model learned from: leave it out.")
        if isinstance(direction, bool) or direction not in (-1, 0, 1):
            raise ValueError(f"monotonic_cst has {show(direction)} for {name!r}: give 1, -1 or 0.")
        block = blocks[names.index(name)]
        if direction and not (block.is_line or block.column.kind == "ordinal"):
            raise ValueError(
                f"monotonic_cst: {name!r} is a {block.column.kind}, which has no order: make it an ordinal in the "
                "schema, or leave it out."
            )
        if direction:
            found.append((names.index(name), int(direction)))
    return found


def _project(coef: np.ndarray, block: Block, direction: int) -> None:
    """Write the closest monotone coefficients of a block into them."""
    scaled = {"scale": 0, "both": block.width - 1}.get(block.numbers)
    if scaled is not None:
        coef[scaled] = direction * max(0.0, direction * coef[scaled])
    if block.numbers != "scale":
        n = len(block.edges()) - 1 if block.is_line else block.n_listed
        coef[:n] = isotonic_regression(coef[:n], increasing=direction > 0)
