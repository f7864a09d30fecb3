"""The bar that shows how far a long computation is."""

import sys
import warnings

with warnings.catch_warnings():
    # in a notebook without ipywidgets tqdm warns of it when it is imported, and falls back to text
    warnings.simplefilter("ignore")
    from tqdm.auto import tqdm as tqdm


def in_notebook() -> bool:
    """Whether this process is a kernel of Jupyter, which shows bars although it writes to no terminal."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")
