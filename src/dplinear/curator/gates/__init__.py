"""One gate for each kind of release: it reads arguments; the passage does the rest."""
