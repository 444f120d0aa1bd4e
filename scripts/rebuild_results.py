"""Make all tables and plots under results/ again from the records that lie beside them.

    python scripts/rebuild_results.py            # write what differs
    python scripts/rebuild_results.py --check    # only say what differs; exit code 1 if anything

Folders without records can't be made again; their ``tables.md`` is marked "records not kept".
Bytes of a picture depend on the version of matplotlib: SVGs are compared where the versions agree,
PNGs never.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from svmbench.base.errors import ResultsError
from svmbench.base.files import restore_below
from svmbench.report.output import kept

RESULTS = Path(__file__).resolve().parent.parent / "results"


def main(words: list[str] | None = None) -> int:
    """Rebuild or check; return the exit code."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("folders", nargs="*", type=Path, help="default: all of results/")
    parser.add_argument("--check", action="store_true", help="write nothing")
    given = parser.parse_args(words)
    changed: list[str] = []
    if not given.check:
        for top in given.folders or [RESULTS]:
            restore_below(top)
    for folder in given.folders or kept.folders(RESULTS):
        try:
            changed += (kept.rebuild_differences if given.check else kept.rebuild_folder)(folder)
        except ResultsError as error:
            sys.exit(str(error))
        for version in kept.other_versions(folder):
            print(f"{folder}: SVGs by matplotlib {version} are not compared")
    print("\n".join(changed) if changed else "nothing differs")
    return 1 if given.check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
