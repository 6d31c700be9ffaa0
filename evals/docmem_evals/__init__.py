"""Evals: what is extracted, merged and recalled, measured."""
