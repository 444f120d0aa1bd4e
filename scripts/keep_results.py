"""Keep what a run made as reference: tables, plots and environment into results/<paper>/<config>/.

    python scripts/keep_results.py results/alsvm_table2-paper …

Records stay behind: they are large, and a kept table is compared by eye and by its numbers.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

ENDINGS = {".csv", ".md", ".svg", ".png"}


def keep(run: Path) -> Path:
    """Copy a run folder's report to where references lie, and return that place.

    Raises
    ------
    SystemExit
        If the folder is no finished run folder of a paper's config.
    """
    try:
        config = json.loads((run / "plan.json").read_text(encoding="utf-8"))["config"]
    except (OSError, ValueError, KeyError) as error:
        raise SystemExit(f"{run} is no run folder: {error}") from error
    if not config["paper"]:
        raise SystemExit(f"{run}: the config {config['name']} belongs to no paper")
    target = run.parent / config["paper"] / config["name"]
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    used = (run / "tables.md").read_text(encoding="utf-8")
    for path in sorted(run.iterdir()):
        is_environment = path.name.startswith("environment-") and path.stem[12:] in used
        if (path.suffix in ENDINGS or is_environment) and not path.name.startswith("."):
            shutil.copyfile(path, target / path.name)
    return target


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    for name in sys.argv[1:]:
        print(keep(Path(name)))
