"""Released rows, and what they allow: files, distances, kernels, clusters."""
