"""Base class of estimators with random trees over the columns of a raw table."""

from __future__ import annotations

from typing import Any

from skdp._checks.parameters import check_count, is_private
from skdp._checks.rows import check_schema, row_names_of, row_schema_of
from skdp._checks.table import Table, tag_raw_tables
from skdp.base.estimator import PrivateEstimator
from skdp.base.private_step import StepTraits, traits_of
from skdp.ensemble.embedding import PublicTreesEmbedding, TableCodes, codes_of, takes_any_columns
from skdp.preprocessing.schema.table_schema import TableSchema


class TreesOfTables(PrivateEstimator):
    """Base class of private estimators whose `embedding_` has random trees, drawn from public column descriptions.

    Subclasses have the parameters of `PublicTreesEmbedding`, except that its seed is `trees_random_state`.
    """

    _fitted_row_schema: TableSchema | None = None
    _fitted_row_names: tuple[str, ...] = ()  # of the columns of that schema

    n_estimators: Any
    max_depth: Any
    max_leaf_nodes: Any
    schema: Any
    bounds: Any
    categories: Any
    n_bins: Any
    trees_random_state: Any
    n_jobs: Any

    embedding_: PublicTreesEmbedding
    n_features_in_: int

    def __step_traits__(self) -> StepTraits:
        return StepTraits(takes_codes=self._takes_codes(), fault_behind=self._fault_behind)

    def _takes_codes(self) -> bool:
        """Whether the rows must carry the schema, because no parameter declares it."""
        return self.schema is None and self.bounds is None and self.categories is None

    def _fault_behind(self, before: Any) -> str:
        if self._takes_codes():
            if is_private(before) and traits_of(before).gives_codes:
                return ""
            return f"{_NO_SCHEMA}, and the previous step does not provide one. {_REMEDY}."
        if takes_any_columns(self):
            return ""
        return (
            "schema, bounds or categories may not match the columns of the previous step. Remove them, and put "
            "DPTableVectorizer(schema, numbers='codes') directly before it."
        )

    def _note_rows(self, X: Any, are_raw: bool = True) -> None:
        super()._note_rows(X, are_raw)
        found = row_schema_of(X)
        if type(found) is not TableSchema:
            # Trees that are there already were drawn from the schema of earlier rows.
            grown = self.__dict__.get("embedding_") if self._takes_codes() else None
            found = None if grown is None else grown.schema
        self._fitted_row_schema, self._fitted_row_names = found, row_names_of(X)
        if found is None and self._takes_codes():
            raise ValueError(f"{_NO_SCHEMA}, and X does not carry one. {_REMEDY}.")

    def _assumed_width(self) -> int:
        """Return the number of columns to plan with before there are rows; a list states how many there are."""
        lists = (each for each in (self.bounds, self.categories) if self.schema is None and isinstance(each, list))
        return next(map(len, lists), 1)

    def _embedding(self) -> PublicTreesEmbedding:
        """Return the embedding that the parameters describe, which are checked, or that the schema of the rows does."""
        # No generator: what it gave the trees is public, and the noise might be drawn from it too.
        constraint = "a nonnegative integer, which is public and not used for the noise"
        seed = check_count("trees_random_state", self.trees_random_state, at_least=0, constraint=constraint)
        schema = self._fitted_row_schema if self._takes_codes() else self.schema
        embedding = PublicTreesEmbedding(
            self.n_estimators, self.max_depth, max_leaf_nodes=self.max_leaf_nodes, schema=schema, bounds=self.bounds,
            categories=self.categories, n_bins=self.n_bins, random_state=seed, n_jobs=self.n_jobs,
        )  # fmt: skip
        embedding._check_parameters()
        return embedding

    def _read_table(self, X: Any) -> TableCodes:
        """Read the rows of a fit, and set the embedding, whose trees are not there yet."""
        check_schema(self, Table(X, self).source, reset=True)
        self.embedding_ = self._embedding()
        self.embedding_._read_columns(X, self)
        return TableCodes(codes_of(self.embedding_._fitted_blocks, Table(X, self)), self.n_features_in_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tag_raw_tables(tags)
        return tags


_NO_SCHEMA = "`schema`, `bounds` and `categories` are None"
_REMEDY = (
    "Pass a TableSchema, or bounds=(low, high) if all columns are numbers, or put DPTableVectorizer(numbers='codes') "
    "directly before it"
)
