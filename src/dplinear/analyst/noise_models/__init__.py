"""What is known in public about the noise of a release."""
