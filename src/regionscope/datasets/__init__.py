"""Data sets: files that are found or downloaded and checked by their hashes, and what is made of them."""
