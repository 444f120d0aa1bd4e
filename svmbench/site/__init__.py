"""One static site of everything that some results folders hold, from their records alone.

``folder.py`` puts it in its place whole, and only where a site stood or nothing; ``material.py`` is
what it is made of; ``runs.py`` turns runs into what templates show, ``standings.py`` says where
each solver stands; ``pages.py`` writes the pages. Templates, style and script lie beside, in
``templates/`` and ``assets/``: no page asks the network for anything.
"""

from __future__ import annotations

from svmbench.site.folder import MARKER, check_place
from svmbench.site.material import Material, SolverFacts
from svmbench.site.pages import Site, build_site

__all__ = ["MARKER", "Material", "Site", "SolverFacts", "build_site", "check_place"]
