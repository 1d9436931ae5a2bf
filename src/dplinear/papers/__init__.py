"""The papers' experiments, run with the library's own mechanisms on synthetic tables."""
