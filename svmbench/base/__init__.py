"""Foundations: every other package may import them, and they import no other package.

errors.py
    Exceptions whose text is a sentence for the user, with their exit codes.
paper_folders.py
    The folders of papers, and the model of ``paper.toml``.
paths.py
    The cache folder, and the files that ship with the package.
files.py
    Reading and writing files of results folders without following a link.
escape.py
    Escaping text of unknown origin for terminal, Markdown, HTML, LaTeX, SVG and CSV.
validation_messages.py
    Sentences for the errors that pydantic finds.
toml_source.py
    The one parser of TOML, within bounds.
parallel_map.py
    One function over several items in worker processes that end with the command.
module_registry.py
    A registry of what a folder's modules define and plug-ins declare: kinds of plot, formats.
interrupts.py
    Signals that end a command as Ctrl-C does.
plugin_names.py
    Names of plug-ins, found without importing any.
compiled.py
    The Numba decorator of every inner loop, and its cache.
version.py
    The installed version.
"""
