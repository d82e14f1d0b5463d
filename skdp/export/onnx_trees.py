"""Random trees in a graph: the columns that they look at, and the leaves of each row."""

from __future__ import annotations

from typing import Any

import numpy as np

from skdp.export.onnx_graph import OnnxGraph
from skdp.export.onnx_rows import OnnxRows
from skdp.export.onnx_table import codes_of, levels_of

_WORD = 64


def plain_levels(graph: OnnxGraph, embedding: Any, rows: OnnxRows) -> tuple[list[str], list[str]]:
    """Return the codes of the columns, and the bins and levels of the plain blocks, each of shape (N, 1)."""
    codes, at = [], {}
    for block in embedding._fitted_blocks:
        codes.append(codes_of(graph, block, rows.column(graph, block.position)))
        at[block.position] = codes[-1]
    return codes, [levels_of(graph, block, at[block.position]) for block in embedding._fitted_plain]


def leaves(graph: OnnxGraph, embedding: Any, codes: list[str]) -> str:
    """Return the leaf of each row in each tree, of shape (N, n_trees), counted from the left from 0 on."""
    nodes = TreeNodes(embedding._fitted_trees, embedding._fitted_blocks)
    columns = [
        code if block.is_line else graph.as_doubles(code)
        for block, code in zip(embedding._fitted_blocks, codes, strict=True)
    ]
    tree, number, leaf = zip(*nodes.leaves, strict=True)
    found = graph.op(  # float32, in which numbers of leaves are exact
        "TreeEnsembleRegressor", graph.op("Concat", *columns, axis=1),
        n_targets=embedding._fitted_trees.n_trees, aggregate_function="SUM", post_transform="NONE",
        nodes_treeids=nodes.tree, nodes_nodeids=nodes.number, nodes_modes=nodes.mode, nodes_featureids=nodes.feature,
        nodes_values_as_tensor=graph.attribute(nodes.value), nodes_missing_value_tracks_true=nodes.gaps_true,
        nodes_truenodeids=nodes.true, nodes_falsenodeids=nodes.false, target_treeids=tree, target_nodeids=number,
        target_ids=tree, target_weights_as_tensor=graph.attribute(leaf),
    )  # fmt: skip
    return graph.as_whole(found)


def scores_of_places(graph: OnnxGraph, places: list[str], widths: list[int], coef: np.ndarray, intercept: Any) -> str:
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
    """Nodes of all trees as ONNX lists them.

    A split by a set of levels is a chain of thresholds, one at each end of a run of levels that go to one side. The
    nodes of a chain share two children. Modes for sets would be shorter, but onnxruntime 1.21 reads them wrongly.
    """

    def __init__(self, trees: Any, blocks: list[Any]) -> None:
        self._trees, self._blocks = trees, blocks
        self.tree: list[int] = []
        self.number: list[int] = []  # within its tree
        self.mode: list[str] = []
        self.feature: list[int] = []
        self.value: list[float] = []
        self.gaps_true: list[int] = []
        self.true: list[int] = []
        self.false: list[int] = []
        self.leaves: list[tuple[int, int, float]] = []  # tree, number of the node, and of the leaf
        for t in range(trees.n_trees):
            self._first = len(self.tree)
            self._add(t, 0)

    def _add(self, t: int, node: int) -> int:
        """Add a node and all below it, and return its number."""
        trees = self._trees
        if not trees.is_split[t, node]:
            row = self._row(t, "LEAF")
            self.leaves.append((t, self.number[row], float(trees.leaf[t, node])))
            return self.number[row]
        j, left = int(trees.column[t, node]), int(trees.left[t, node])
        if self._blocks[j].is_line:
            row = self._row(t, "BRANCH_GTE", j, float(trees.threshold[t, node]), int(trees.gaps_right[t, node]))
            self.true[row], self.false[row] = self._add(t, left + 1), self._add(t, left)
            return self.number[row]
        sides = self._sides_of_levels(t, node, self._blocks[j].width)
        ends = [level for level in range(len(sides) - 1, 0, -1) if sides[level] != sides[level - 1]]
        rows = [self._row(t, "BRANCH_GTE", j, float(level)) for level in ends]
        children = self._add(t, left), self._add(t, left + 1)
        after = [*(self.number[row] for row in rows[1:]), children[sides[0]]]
        for row, level, below in zip(rows, ends, after, strict=True):
            self.true[row], self.false[row] = children[sides[level]], below
        return self.number[rows[0]]

    def _row(self, t: int, mode: str, j: int = 0, value: float = 0.0, gaps_true: int = 0) -> int:
        row = len(self.tree)
        for listed, each in (
            (self.tree, t), (self.number, row - self._first), (self.feature, j), (self.gaps_true, gaps_true),
            (self.true, 0), (self.false, 0),
        ):  # fmt: skip
            listed.append(each)
        self.mode.append(mode)
        self.value.append(value)
        return row

    def _sides_of_levels(self, t: int, node: int, n_levels: int) -> list[int]:
        """Return 1 for each level that goes to the right, see `skdp._kernels.trees.write_leaves`."""
        words, first = self._trees.words, int(self._trees.first_word[t, node])
        return [int(words[first + v // _WORD]) >> v % _WORD & 1 for v in range(n_levels)]
