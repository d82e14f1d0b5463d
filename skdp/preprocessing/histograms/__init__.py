"""What is bought of a table: noisy counts, and the edges, bounds and categories that follow."""
