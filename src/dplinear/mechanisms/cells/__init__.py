"""What one cell of a table can do, and the mechanisms that hide single cells."""
