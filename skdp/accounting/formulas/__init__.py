"""Closed forms, and the searches and sums that they share."""
