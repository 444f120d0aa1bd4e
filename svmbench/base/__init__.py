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
    Sentences for the validation errors of pydantic.
toml_source.py
    The parser of TOML, with limits.
cached_entries.py
    Computed values in the user's cache, for later processes.
known_names.py
    Names of solvers, data sets and configs, found without importing solvers.
parallel_map.py
    A map of a function over items, in worker processes that end with the command.
module_registry.py
    A registry of objects that modules or plug-ins define: kinds of plot, output formats.
interrupts.py
    Signals that end a command as Ctrl-C does.
plugin_names.py
    Names of plug-ins, found without importing them.
compiled.py
    The Numba decorator of every inner loop, and its cache.
loaded_libraries.py
    Settings of numerical libraries, which read them while they load.
version.py
    The installed version.
"""
