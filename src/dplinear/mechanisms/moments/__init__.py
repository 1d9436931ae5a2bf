"""Mechanisms that release second-moment matrices, one file each."""
