"""The kinds of release, their certificate and their files."""
