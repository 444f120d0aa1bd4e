"""Build a static site from the records of results folders.

``folder.py`` replaces the target folder in one step, if it is empty or holds a site.
``material.py`` collects the inputs. ``runs.py`` turns runs into views for the templates,
``ranks.py`` adds rankings with their ``diagrams.py``, ``standings.py`` lists the results of each
solver, and ``ratios.py`` compares races with LIBSVM and LIBLINEAR. ``pages.py`` writes the pages.
Templates, style and script are in ``templates/`` and ``assets/``; no page loads anything from the
network.
"""

from __future__ import annotations

from svmbench.report.reading.folders import SITE as MARKER
from svmbench.site.folder import check_place
from svmbench.site.material import Material, PaperFacts, SolverFacts
from svmbench.site.pages import Site, build_site

__all__ = ["MARKER", "Material", "PaperFacts", "Site", "SolverFacts", "build_site", "check_place"]
