"""Learning in a randomly projected space: public maps, images of sets, and the way back."""
