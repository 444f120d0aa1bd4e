"""The JSON schema of a config, from the models that check one: for editors."""

from __future__ import annotations

from typing import Any

from svmbench.base.known_names import dataset_names, solver_names
from svmbench.experiment.config.models import Config
from svmbench.experiment.settings.blocks import SolverSpec


def config_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of a config file.

    Solvers and data sets are offered by name; a name that is not among them is left to
    ``svmbench validate``, which also knows plug-ins, prefixes and parts.
    """
    schema = Config.model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "svmbench config"
    # A block is one of several forms; which, its protocol says: that is marked by itself.
    blocks = schema["properties"]["blocks"]["items"]
    blocks["properties"] = {"protocol": {"enum": list(blocks["discriminator"]["mapping"])}}
    definitions = schema["$defs"]
    for kind, names in (
        ("SolverSpec", solver_names()),
        ("DatasetSpec", dataset_names()),
    ):
        model = definitions[kind]
        name = {"anyOf": [{"enum": names}, {"type": "string"}], "title": "Name"}
        model["properties"]["name"] = name
        # A file needs no name, nor does a class of others or a program.
        others = {"DatasetSpec": ("file", "openml"), "SolverSpec": SolverSpec.NAMED_BY}[kind]
        model["required"] = []
        for other in (*others, *(SolverSpec.SOLVES if kind == "SolverSpec" else ())):
            model["properties"].setdefault(other, {"type": _type_of(other), "title": other.title()})
        whole = {**model, "anyOf": [{"required": [key]} for key in ("name", *others)]}
        is_set = kind == "DatasetSpec"  # of which a name alone is enough
        definitions[kind] = {"anyOf": [name, whole], "title": kind} if is_set else whole
    return schema


def _type_of(key: str) -> Any:
    """Return the types of a key that is no field; an offset may be a number."""
    return ["string", "number"] if key == "offset" else "string"
