"""Mechanisms: a bounded statistic and a guarantee in, released numbers out. One file each."""
