"""From a config to records: config, plan, protocols, measuring, execution."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from svmbench.record import CellRecord

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["run"]


class Where(TypedDict, total=False):
    """Where the cells of a run are run; see `run`."""

    jobs: int
    cluster: str
    kind: str


def run(
    config: str,
    profile: str = "quick",
    *,
    output: str | Path | None = None,
    mirror: str | None = None,
    overrides: tuple[str, ...] = (),
    trust: bool = False,
    **where: Unpack[Where],
) -> pd.DataFrame:
    """Run a config and return its records; what an earlier run finished is not run again.

    In a script, call it under ``if __name__ == "__main__":``: workers are started by importing the
    main module.

    Parameters
    ----------
    config : str
        Path of a config file, or the name of one that ships with svmbench.
    profile : str
        One of the config's profiles.
    output : path, optional
        Results folder; default ``results/<config>-<profile>``.
    mirror : str, optional
        Folder or URL with data files; default the environment variable ``SVMBENCH_MIRROR``.
    overrides : tuple of str
        ``key=value`` pairs that change the config.
    trust : bool, default=False
        Whether classes that the config names (``class: …``) are imported from elsewhere than
        scikit-learn, and its programs run, which runs their code.
    jobs : int, default=1
        Cells at a time; above one, times are marked as contended.
    cluster : str, optional
        A Dask scheduler's address, or ``local:<workers>``, whose workers run the cells.
    kind : str, optional
        The kind of those workers that times belong to: their processor, or ``SVMBENCH_KIND`` there.

    Returns
    -------
    pandas.DataFrame
        One row a cell, in table order, the metrics as columns.

    Raises
    ------
    svmbench.errors.SvmbenchError
        For a config that is not valid, or a results folder that can't be written.
    TypeError
        For a keyword that is none of these.
    """
    import pandas as pd

    from svmbench.experiment.session import Request, carry_out, look_ahead

    prospect = look_ahead(
        Request(
            config=config,
            profile=profile,
            output=Path(output) if output else None,
            mirror=mirror,
            overrides=overrides,
            trust=trust,
            **where,
        )
    )
    records = carry_out(prospect).records
    return pd.DataFrame([_row(cell, records.get(cell.key)) for cell in prospect.plan.cells])


def prepare_plan(
    config: str,
    profile: str,
    *,
    mirror: str | None = None,
    overrides: tuple[str, ...] = (),
    trust: bool = False,
    only: Any = None,
    prepare: bool = True,
    on_event: Any = None,
) -> Any:
    """Load, check, cut and resolve a config: everything that comes before the first cell."""
    from svmbench.experiment.config import apply_profile, check_config, find_config
    from svmbench.experiment.plan import make_plan

    path = find_config(config)
    loaded = check_config(path, overrides, trust=trust)
    cut = apply_profile(loaded, profile)
    return make_plan(
        cut, path.stem, profile, mirror=mirror, only=only, prepare=prepare, on_event=on_event
    )


def default_output(config: str, profile: str) -> Path:
    """Return the results folder of a config and profile."""
    return Path("results") / f"{config}-{profile}"


def _row(cell: Any, record: CellRecord | None) -> dict[str, Any]:
    status = {"status": cell.status if cell.status != "planned" else "not run"}
    found = record or {**status, "reason": cell.reason}
    shared = {k: found.get(k) for k in ("status", "reason", "params", "stop_reason", "counters")}
    return {**cell.shown, **shared, **found.get("metrics", {})}
