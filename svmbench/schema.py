"""The JSON schema of a config, from the models that check one: for editors."""

from __future__ import annotations

from typing import Any

from svmbench import completion


def config_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of a config file.

    Solvers and data sets are offered by name; a name that is not among them is left to
    ``svmbench validate``, which also knows plug-ins, prefixes and parts.
    """
    from svmbench.experiment.models import Config

    schema = Config.model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "svmbench config"
    definitions = schema["$defs"]
    for kind, names in (
        ("SolverSpec", completion.solver_names()),
        ("DatasetSpec", completion.dataset_names()),
    ):
        model = definitions[kind]
        name = {"anyOf": [{"enum": names}, {"type": "string"}], "title": "Name"}
        model["properties"]["name"] = name
        if kind == "DatasetSpec":  # a file needs no name, and a name alone is a data set
            model["required"] = []
            definitions[kind] = {
                "anyOf": [name, {**model, "anyOf": [{"required": [k]} for k in ("name", "file")]}],
                "title": kind,
            }
    return schema
