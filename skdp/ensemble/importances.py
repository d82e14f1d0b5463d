"""How much of a score each column of a table decides, from coefficients and public quantities alone."""

from __future__ import annotations

import numpy as np

from skdp._typing import Doubles
from skdp.ensemble.trees import Trees
from skdp.preprocessing.schema.blocks import Block


def importances(plain: list[Block], blocks: list[Block], trees: Trees, coef: Doubles, noise: Doubles) -> Doubles:
    """Return the share of each block's column in the variance of the score, of shape (n_blocks,).

    The levels of a plain column count the same, and so do the leaves of a tree, whose variance is that of its splits: a
    split into l and r of the N leaves has the part l r (a - b)**2 / ((l + r) N), with a and b the means of its sides.
    From each part the variance that noise alone gives it is subtracted, and what remains below 0 is 0.

    Parameters
    ----------
    plain, blocks : list of Block
        Blocks of the first columns of `coef`, and those that trees look at.
    trees : Trees
    coef, noise : ndarray of shape (n_outputs, n_columns)
        Coefficients of levels and leaves, zero in the mean of each block and tree, and their standard deviations by
        noise alone.

    Returns
    -------
    shares : ndarray of shape (n_blocks,)
        They sum to 1, or are all 0.
    """
    position = {block.position: k for k, block in enumerate(blocks)}
    parts, start = np.zeros(len(blocks)), 0
    for block in plain:
        levels = slice(start, start + block.width)
        parts[position[block.position]] += np.mean(coef[:, levels] ** 2 - noise[:, levels] ** 2, axis=1).sum()
        start += block.width
    shape = len(coef), trees.n_trees, trees.n_leaves
    leaves, variance = coef[:, start:].reshape(shape), noise[:, start:].reshape(shape)[..., :1] ** 2
    variance = variance / (1.0 - 1.0 / trees.n_leaves)  # of a leaf before the projection
    first, end = trees.leaves_of_nodes()
    before = np.concatenate([np.zeros((*shape[:2], 1)), np.cumsum(leaves, axis=2)], axis=2)
    tree, node = np.nonzero(trees.is_split)
    sides = trees.left[tree, node] + np.arange(2)[:, None]
    sizes = (end - first)[tree, sides]
    means = (before[:, tree, end[tree, sides]] - before[:, tree, first[tree, sides]]) / sizes
    weight = sizes[0] * sizes[1] / (sizes.sum(axis=0) * end[tree, 0])
    noises = variance[:, tree, 0] * (1.0 / sizes[0] + 1.0 / sizes[1])
    energy = weight * ((means[:, 0] - means[:, 1]) ** 2 - noises)
    np.add.at(parts, trees.column[tree, node], energy.sum(axis=0))
    parts = np.maximum(parts, 0.0)
    total = parts.sum()
    return parts / total if total > 0.0 else parts
