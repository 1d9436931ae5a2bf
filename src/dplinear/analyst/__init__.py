"""What has left the curator, and all that can be done with it for free."""
