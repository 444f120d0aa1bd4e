"""Settings of the documentation's site, which `make docs` builds without network."""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path

from jinja2 import FileSystemBytecodeCache
from jinja2.sandbox import SandboxedEnvironment
from numpydoc import docscrape_sphinx

import svmbench

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

project = "svmbench"
author = "the svmbench maintainers"
copyright = author
version = release = svmbench.__version__

extensions = [
    "generated_pages",
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_click",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates", "gallery"]
# Quotation marks become curly, but the dashes of options stay two.
smartquotes_action = "qe"
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

# Pages link to each other as they do on a repository's pages, by file and heading.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "deflist"]
# A fence may name the file that it shows after its language, which Pygments doesn't read.
suppress_warnings = ["misc.highlighting_failure"]

# The page is written at the build, after Sphinx has looked for pages.
autosummary_generate = ["generated/api.rst"]
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
# numpydoc would compile its template anew for each docstring.
compiled_templates = tempfile.TemporaryDirectory()
docscrape_sphinx.SandboxedEnvironment = partial(
    SandboxedEnvironment, bytecode_cache=FileSystemBytecodeCache(compiled_templates.name)
)

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": r"plot_",
    "remove_config_comments": True,
    "show_memory": False,
    "download_all_examples": False,
    "write_computation_times": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "svmbench"
html_theme_options = {
    "navigation_with_keys": True,
    "show_prev_next": False,
    "navbar_center": [],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_show_sourcelink = False
html_sidebars = {"**": ["globaltoc.html"]}
