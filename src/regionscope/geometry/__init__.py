"""Exact regions on lines and planes: where to look, and what is found there."""
