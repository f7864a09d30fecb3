"""How `make docs` builds the site: pages in Markdown, examples that are run, docstrings as they are in the code."""

import inspect
import os
import re

from docutils import nodes
from numpy.typing import ArrayLike
from sphinx import addnodes
from sphinx.util.typing import stringify_annotation

import regionscope
from regionscope import types

os.environ.setdefault("MPLBACKEND", "agg")

project = "regionscope"
author = "the regionscope authors"
version = release = regionscope.__version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["gallery/*.ipynb"]  # twins of its pages, to download

html_theme = "furo"
html_title = "regionscope"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#14507a", "color-brand-content": "#1b6aa0"},
    "dark_css_variables": {"color-brand-primary": "#7cc0ee", "color-brand-content": "#8accf5"},
}

myst_enable_extensions = ["colon_fence", "attrs_inline", "attrs_block", "deflist"]
myst_heading_anchors = 4
nb_execution_mode = "off"  # notebooks are shown as they are stored; the tests run them

# Nothing is asked of other sites' inventories, so that the build needs no network: names of others stay plain text.
nitpick_ignore_regex = [("py:.*", r"(?!regionscope).*"), ("py:.*", r"regionscope\..*")]
python_maximum_signature_line_length = 100
python_use_unqualified_type_names = True
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_default_options = {"members": True, "undoc-members": True}
autosummary_generate = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "write_computation_times": False,
}


ALIASES = {stringify_annotation(getattr(types, name), "smart"): name for name in ("Data", "Model", "Array")}
ALIASES[stringify_annotation(ArrayLike, "smart")] = "ArrayLike"
ARRAY = re.compile(r"~numpy\.ndarray\[tuple\[~typing\.Any, \.\.\.\], ~numpy\.dtype\[([^\]]+)\]\]")
SPELLED = re.compile(r"ndarray\[tuple\[Any, \.\.\.\], dtype\[([^\]]+)\]\]")
CODE = re.compile(r"``?([^`]+)``?")
NAME = re.compile(r"rs\.\w+|[A-Z]\w+|[a-z]+_\w+")  # a single small word, such as `bounds`, may be an option too
FIELD = r"^    {}: [^#\n]*#\s*(.+)$"


def restructured(text: str, own: str) -> str:
    """A paragraph of a docstring, which is Markdown, for autodoc, which reads reStructuredText."""
    parts = CODE.split(re.sub(r"\b(eq|Fig|Cor|Prop|Def|App|Sec)\. ", "\\1.\u00a0", text))  # which end no sentence
    for i, part in enumerate(parts):
        code = " ".join(part.split())
        if i % 2 == 0:
            parts[i] = re.sub(r"([\\*|_])", r"\\\1", part)
        elif NAME.fullmatch(code) and (public := code.removeprefix("rs.")) in regionscope.__all__ and public != own:
            parts[i] = rf"\ :py:obj:`~regionscope.{public}`\ "
        else:
            parts[i] = rf"\ ``{code}``\ "
    return "".join(parts)


def remark(name: str) -> list[str]:
    """What is said of a field behind it in its class."""
    owner, _, field = name.removeprefix("regionscope.").rpartition(".")
    found = getattr(regionscope, owner, None)
    for home in inspect.getmro(found) if inspect.isclass(found) else ():
        if home.__module__.startswith("regionscope"):
            said = re.search(FIELD.format(re.escape(field)), inspect.getsource(home), re.MULTILINE)
            if said:
                return [said[1][:1].upper() + said[1][1:]]
    return []


def docstring(app: object, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    if what == "attribute" and not any(lines):
        lines[:] = remark(name)
    if name == "regionscope.MEASURES":  # instead of what Python says of dicts
        lines[:] = ["The measures by name, with their defaults."]
    text = re.sub(r"^([^\s-].*)\n(?=- )", r"\1\n\n", "\n".join(lines), flags=re.MULTILINE)  # before lists
    blocks = re.split(r"(\n\s*\n)", text)
    own = name.rpartition(".")[2]
    lines[:] = "".join(b if b.lstrip().startswith(">>>") else restructured(b, own) for b in blocks).split("\n")


def short_types(app: object, tree: nodes.document) -> None:
    """The same of attributes and properties, whose types autodoc does not ask about."""
    for part in tree.findall(addnodes.desc_annotation):
        if (short := SPELLED.sub(r"NDArray[\1]", part.astext())) != part.astext():
            part[:] = [nodes.Text(short)]


def signature(app: object, what: str, name: str, thing: object, options: object, given: str, back: str) -> object:
    """With the names of `regionscope.types` for what is long when it is spelled out."""
    for long, short in ALIASES.items():
        given, back = (text and text.replace(long, short) for text in (given, back))
    return tuple(text and ARRAY.sub(r"NDArray[\1]", text) for text in (given, back))


def skipped(app: object, what: str, name: str, thing: object, skip: bool, options: object) -> bool | None:
    return name.isupper() or None  # constants of classes are their own affair


def setup(app) -> None:
    app.connect("autodoc-process-docstring", docstring)
    app.connect("autodoc-process-signature", signature)
    app.connect("autodoc-skip-member", skipped)
    app.connect("doctree-read", short_types)
