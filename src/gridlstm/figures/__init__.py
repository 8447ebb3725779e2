"""Figures of any experiment, and how figures are saved."""
