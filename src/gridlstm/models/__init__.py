"""Networks made of grids, and those that the paper compares them with."""
