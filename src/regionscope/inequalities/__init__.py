"""The papers' inequalities on a network at hand: as printed, and as they hold."""
