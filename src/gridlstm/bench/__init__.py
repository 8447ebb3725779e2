"""Benchmarks: how close the fast engine comes to its matrix products, and how it grows."""
