"""Data: algorithmic tasks as pure functions of a seed and a sample's number; files and texts."""
