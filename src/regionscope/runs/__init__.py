"""Training runs on disk: what writes them, and what is read from them."""
