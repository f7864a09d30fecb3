"""What can be measured of a network at points of its input space."""
