"""Random trees in a graph: the columns that they look at, and the leaves of each row."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from skdp._typing import Doubles
from skdp.export.onnx_graph import OnnxGraph
from skdp.export.onnx_rows import OnnxRows
from skdp.export.onnx_table import codes_of, levels_of

_WORD = 64
_AT_LEAST, _MEMBER = 2, 6  # modes of nodes
_SUM, _NO_TRANSFORM = 1, 0


def plain_levels(graph: OnnxGraph, embedding: Any, rows: OnnxRows) -> tuple[list[str], list[str]]:
    """Return the codes of the columns, and the bins and levels of the plain blocks, each of shape (N, 1)."""
    codes, at = [], {}
    for block in embedding._fitted_blocks:
        codes.append(codes_of(graph, block, rows.column(graph, block.position)))
        at[block.position] = codes[-1]
    return codes, [levels_of(graph, block, at[block.position]) for block in embedding._fitted_plain]


def leaves(graph: OnnxGraph, embedding: Any, codes: list[str]) -> str:
    """Return the leaf of each row in each tree, of shape (N, n_trees), counted from the left from 0 on."""
    trees, nodes = embedding._fitted_trees, TreeNodes(embedding._fitted_trees, embedding._fitted_blocks)
    columns = [
        code if block.is_line else graph.as_doubles(code)
        for block, code in zip(embedding._fitted_blocks, codes, strict=True)
    ]
    members = {"membership_values": graph.attribute(nodes.members)} if nodes.members else {}
    return graph.as_whole(
        graph.op(
            "TreeEnsemble", graph.op("Concat", *columns, axis=1),
            n_targets=trees.n_trees, aggregate_function=_SUM, post_transform=_NO_TRANSFORM, tree_roots=nodes.roots,
            nodes_featureids=nodes.feature, nodes_splits=graph.attribute(nodes.split),
            nodes_modes=graph.attribute(nodes.mode, np.uint8), nodes_missing_value_tracks_true=nodes.gaps_true,
            nodes_truenodeids=[number for number, _ in nodes.true],
            nodes_trueleafs=[is_leaf for _, is_leaf in nodes.true],
            nodes_falsenodeids=[number for number, _ in nodes.false],
            nodes_falseleafs=[is_leaf for _, is_leaf in nodes.false],
            leaf_targetids=nodes.leaf_tree, leaf_weights=graph.attribute(nodes.leaf_number), **members,
        )
    )  # fmt: skip


def scores_of_places(graph: OnnxGraph, places: list[str], widths: list[int], coef: Doubles, intercept: Any) -> str:
    """Add up the coefficients of places, tensors of shape (N, k) of one block each or of k blocks of one width.

    `coef` has the shape (n_outputs, n_columns).
    """
    shifted, start = [], 0
    for each, width in zip(places, widths, strict=True):
        shifted.append(graph.op("Add", each, np.array(start)))
        start += width
    found = graph.op("Gather", np.asarray(coef, np.float64).T, graph.op("Concat", *shifted, axis=1))
    return graph.op("Add", graph.column_sum(found), np.asarray(intercept, np.float64))


def by_tree(graph: OnnxGraph, found: str, trees: Any) -> str:
    """Return the places of leaves among those of all trees."""
    return graph.op("Add", found, np.arange(trees.n_trees) * trees.n_leaves)


class TreeNodes:
    """Nodes that split, of all trees, and their leaves, as ONNX lists them."""

    def __init__(self, trees: Any, blocks: list[Any]) -> None:
        self._trees, self._blocks = trees, blocks
        self.feature: list[int] = []
        self.split: list[float] = []
        self.mode: list[int] = []
        self.gaps_true: list[int] = []
        self.members: list[float] = []  # sets, NaN behind each
        self.true: list[tuple[int, int]] = []  # number of a node or of a leaf, and 1 for a leaf
        self.false: list[tuple[int, int]] = []
        self.roots: list[int] = []
        self.leaf_tree: list[int] = []
        self.leaf_number: list[float] = []
        for t in range(trees.n_trees):
            self._add_tree(t)

    def _add_tree(self, t: int) -> None:
        inner = np.flatnonzero(self._trees.is_split[t]).tolist()
        place = {node: len(self.feature) + k for k, node in enumerate(inner)}
        self.roots.append(len(self.feature))
        if not inner:  # a root has to be a node: both sides of this one are the leaf
            self._add_node(0.0, _AT_LEAST, 0, False, self._leaf(t, 0), self._leaf(t, 0))
        for node in inner:
            left = int(self._trees.left[t, node])
            sides = [(place[each], 0) if each in place else self._leaf(t, each) for each in (left + 1, left)]
            j = int(self._trees.column[t, node])
            if self._blocks[j].is_line:
                split = float(self._trees.threshold[t, node])
                self._add_node(split, _AT_LEAST, j, bool(self._trees.gaps_right[t, node]), *sides)
            else:
                self.members += [
                    *self._levels_from(int(self._trees.first_word[t, node]), self._blocks[j].width),
                    math.nan,
                ]
                self._add_node(0.0, _MEMBER, j, False, *sides)

    def _leaf(self, t: int, node: int) -> tuple[int, int]:
        self.leaf_tree.append(t)
        self.leaf_number.append(float(self._trees.leaf[t, node]))
        return len(self.leaf_tree) - 1, 1

    def _add_node(
        self, split: float, mode: int, j: int, gaps_true: bool, true: tuple[int, int], false: tuple[int, int]
    ) -> None:
        self.split.append(split)
        self.mode.append(mode)
        self.feature.append(j)
        self.gaps_true.append(int(gaps_true))
        self.true.append(true)
        self.false.append(false)

    def _levels_from(self, first_word: int, n_levels: int) -> list[float]:
        """Return the levels of a set of at most `n_levels`, see `skdp._kernels.trees.write_leaves`."""
        words = self._trees.words
        levels = range(n_levels)
        return [float(v) for v in levels if int(words[first_word + v // _WORD]) >> v % _WORD & 1]


__all__ = ["by_tree", "leaves", "plain_levels", "scores_of_places"]
