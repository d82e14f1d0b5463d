"""Public description of the columns of a table: types, bounds and categories."""
