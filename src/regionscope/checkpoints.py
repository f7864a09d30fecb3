"""`regionscope.checkpoints.load_model`, as scripts know it; see `regionscope.training.checkpoints`."""

from regionscope.training.checkpoints import Architecture, load_model, save_weights

__all__ = ["Architecture", "load_model", "save_weights"]
