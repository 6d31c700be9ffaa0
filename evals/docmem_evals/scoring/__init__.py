"""Scorers: pure and deterministic. Each turns one sample into counts, and the counts of many into metrics."""
