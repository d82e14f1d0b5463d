"""How much of a score each column of a table decides, from coefficients and public quantities alone."""

from __future__ import annotations

import numpy as np

from skdp._gram import Doubles
from skdp.ensemble.trees import Trees
from skdp.preprocessing.blocks import Block


def importances(plain: list[Block], blocks: list[Block], trees: Trees, coef: Doubles, noise: Doubles) -> Doubles:
    """Return the share of each block's column in the variance of the score, of shape (n_blocks,).

    The levels of a plain column count the same, and so do the leaves of a tree, whose variance is that of its splits: a
    split after d others of two sides of m leaves each has the part 2**-d (a - b)**2 / 4, with a and b the means of its
    sides. From each part the variance that noise alone gives it is subtracted, and what remains below 0 is 0.

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
    depth = trees.n_leaves.bit_length() - 1
    for d in range(depth):
        sides = leaves.reshape(*shape[:2], 2**d, 2, -1)
        means = sides.mean(axis=-1)
        energy = (means[..., 0] - means[..., 1]) ** 2 / 4.0 - variance / (2.0 * sides.shape[-1])
        nodes = slice(2**d - 1, 2 ** (d + 1) - 1)
        np.add.at(parts, trees.column[:, nodes], energy.sum(axis=0) / 2**d)
    parts = np.maximum(parts, 0.0)
    total = parts.sum()
    return parts / total if total > 0.0 else parts


__all__ = ["importances"]
