"""Transformers that pay for what they read of raw columns."""
