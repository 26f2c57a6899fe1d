"""Answers of a model inside a Pipeline."""
