"""The bar that shows how far a long computation is."""

import warnings

with warnings.catch_warnings():
    # in a notebook without ipywidgets tqdm warns of it when it is imported, and falls back to text
    warnings.simplefilter("ignore")
    from tqdm.auto import tqdm as tqdm
