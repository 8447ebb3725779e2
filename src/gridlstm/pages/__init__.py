"""Pages for a browser: single HTML files that need neither a server nor a network."""
