"""What comes in: parameters, cells, tables, sources of rows, targets and weights, each looked at in one place.

A refusal names the parameter and the remedy, never a private value.
"""
