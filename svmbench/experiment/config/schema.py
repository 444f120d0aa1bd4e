"""The JSON schema of a config, for editors, made from the models that validate configs."""

from __future__ import annotations

from typing import Any

from svmbench.base.known_names import dataset_names, solver_names
from svmbench.experiment.config.models import Config
from svmbench.experiment.settings.blocks import SolverSpec


def config_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of a config file.

    The schema lists the names of solvers and data sets but allows other names, because
    ``svmbench validate`` also knows plug-ins, prefixes and parts of data sets.
    """
    schema = Config.model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "svmbench config"
    # The protocol decides which keys a block has. List the protocols apart from the forms, so that
    # an editor reports a wrong protocol by itself.
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
        # A data file, an OpenML data set, a foreign class and a program need no name.
        others = {"DatasetSpec": ("file", "openml"), "SolverSpec": SolverSpec.NAMED_BY}[kind]
        model["required"] = []
        for other in (*others, *(SolverSpec.SOLVES if kind == "SolverSpec" else ())):
            model["properties"].setdefault(other, {"type": _type_of(other), "title": other.title()})
        by_mapping = {**model, "anyOf": [{"required": [key]} for key in ("name", *others)]}
        is_set = kind == "DatasetSpec"  # a data set may be its name alone
        definitions[kind] = {"anyOf": [name, by_mapping], "title": kind} if is_set else by_mapping
    return schema


def _type_of(key: str) -> Any:
    """Return the types of a key that is not a field of a model; an offset may be a number."""
    return ["string", "number"] if key == "offset" else "string"
