"""Synthetic tables from noisy marginals.

- `column_levels`: the levels of a column, and the distribution of numbers within bins.
- `contingency_tables`: marginals of sets of columns as one vector, and its sensitivity.
- `denoising`: tables of probabilities from noisy interactions.
- `noisy_columns`: public facts about a table, and private estimates of missing bounds and categories.
- `noisy_tables`: the measured marginals, and their fractions of the budget.
- `product_mixture`: a mixture of products of categorical distributions: fit and samples.
- `sampled_tables`: synthetic rows and tables, and estimates on several of them.
- `synthesizer`: `synthesize` and `DPMarginalSynthesizer`.
- `table_form`: levels as a table of the library and types of the private one.
"""
