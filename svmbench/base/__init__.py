"""Foundations that every other package may import, and that import none of them.

errors.py
    Exceptions whose text is a sentence for the person at the keyboard, with their exit codes.
paper_folders.py
    Where papers' folders are found, and what ``paper.toml`` may say.
paths.py
    The cache folder, and the files that ship with the package.
files.py
    Reading and writing files of results folders without following a link.
escape.py
    Escaping text of unknown origin for terminal, Markdown, HTML, LaTeX, SVG and CSV.
validation_messages.py
    What pydantic finds wrong, as sentences.
toml_source.py
    The one parser of TOML, within bounds.
parallel_map.py
    One function over several items in worker processes that end with the command.
plugin_names.py
    Names of plug-ins, found without importing any.
compiled.py
    The Numba decorator of every inner loop, and its cache.
version.py
    The installed version.
renames.py
    Where modules of older versions are now.
"""
