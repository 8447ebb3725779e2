"""Sweeps: many runs of an experiment that differ in the values of some options."""
