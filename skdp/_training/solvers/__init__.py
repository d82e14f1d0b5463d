"""Kinds of models: how each is planned, started and published."""
