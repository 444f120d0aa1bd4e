"""Keep what a run made as reference: tables, plots and environment into results/<paper>/<config>/.

    python scripts/keep_results.py results/alsvm_table2-paper …

Records stay behind: they are large, and a kept table is compared by eye and by its numbers. What
was kept before is replaced whole, or not at all.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

ENDINGS = {".csv", ".md", ".svg", ".png"}


def keep(run: Path) -> Path:
    """Copy a run folder's report to where references lie, and return that place.

    Raises
    ------
    SystemExit
        If the folder is no finished run folder of a paper's config, or can't be copied.
    """
    config = read_config(run)
    if not config.get("paper"):
        raise SystemExit(f"{run}: the config {config['name']} belongs to no paper")
    target = run.parent / config["paper"] / config["name"]
    try:
        replace(target, read_report(run))
    except OSError as error:
        raise SystemExit(f"{run}: can't keep it in {target}: {error}") from error
    return target


def read_config(run: Path) -> dict[str, Any]:
    """Return the config of a run folder's plan."""
    try:
        config = json.loads((run / "plan.json").read_text(encoding="utf-8"))["config"]
        return {"name": config["name"], "paper": config["paper"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SystemExit(f"{run} is no run folder: {error!r}") from error


def read_report(run: Path) -> dict[str, bytes]:
    """Return the tables, plots and environments of a finished run by their file names."""
    if not (run / "tables.md").is_file():
        raise SystemExit(f"{run} is unfinished: it has no tables.md; run its config to the end")
    used = (run / "tables.md").read_text(encoding="utf-8")
    kept = {}
    for path in sorted(run.iterdir()):
        is_environment = path.name.startswith("environment-") and path.stem[12:] in used
        if (path.suffix in ENDINGS or is_environment) and not path.name.startswith("."):
            kept[path.name] = path.read_bytes()
    return kept


def replace(target: Path, files: dict[str, bytes]) -> None:
    """Make `target` a folder of exactly these files; what was there stays until they are all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as scratch:
        made, former = Path(scratch) / "made", Path(scratch) / "former"
        made.mkdir()
        for name, content in files.items():
            (made / name).write_bytes(content)
        if target.exists():
            target.rename(former)
        try:
            made.rename(target)
        except BaseException:
            if former.exists():
                former.rename(target)
            raise


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    for name in sys.argv[1:]:
        print(keep(Path(name)))
