"""Linear models from released second moments: fits, intervals, predictions."""
