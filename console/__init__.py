"""What the operator touches, and the conductor behind it."""
