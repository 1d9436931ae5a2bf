"""Private scores of a model on rows that it has not seen."""
