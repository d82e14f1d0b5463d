"""A private search: `scores` of candidates, the `candidates`, the `plan` and its price, and the `search` itself."""
