"""What is public of a table: kinds, bounds and categories of its columns."""
