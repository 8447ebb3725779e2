"""The report on runs, as one HTML file: options, curves, tables, samples, environment."""
