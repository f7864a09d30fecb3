"""From a model to its activation sites: what happens in a forward pass, written down as a program."""
