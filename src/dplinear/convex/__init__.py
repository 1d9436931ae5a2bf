"""Models in a constraint set: loss + set + learner, with or without compression."""
