"""The demo: one HTML file that runs the networks of the package in a browser."""
