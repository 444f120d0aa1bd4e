"""The sentences of pydantic's errors: each says what the field takes."""

from typing import get_args

import pytest
from pydantic import ValidationError

from svmbench.base import paper_folders
from svmbench.base.validation_messages import sentence
from svmbench.experiment.config import models
from svmbench.experiment.settings.blocks import DatasetSpec
from svmbench.schema import specs

MODELS = [
    member
    for module in (models, paper_folders, specs)
    for member in vars(module).values()
    if isinstance(member, type) and hasattr(member, "model_fields")
]


def patterns(model):
    """Return the fields of a model that have a pattern."""
    for name, field in model.model_fields.items():
        parts = [*field.metadata, *(part for each in get_args(field.annotation)
                                    for part in getattr(each, "__metadata__", ()))]  # fmt: skip
        if any("pattern=" in repr(part) for part in parts):
            yield name


def messages(model, name, value):
    try:
        model.model_validate({name: value})
    except ValidationError as error:
        return [sentence(each) for each in error.errors() if each["loc"][:1] == (name,)]
    return []


def test_every_field_with_a_pattern_has_its_sentence():
    fields = {(model, name) for model in (*MODELS, DatasetSpec) for name in patterns(model)}
    assert {("DatasetSpec", "sha256"), ("Config", "blas_core")} <= {
        (model.__name__, name) for model, name in fields
    }
    for model, name in fields:
        (said,) = messages(model, name, "?? wrong")
        assert said.startswith("should "), (model, name)
        assert said.endswith("not '?? wrong'"), (model, name)


@pytest.mark.parametrize(
    ("model", "name", "said"),
    [
        (DatasetSpec, "sha256", "should have 64 hexadecimal digits in lower case, not 'abc!'"),
        (models.Config, "blas_core", "should begin with a letter and have letters and digits"),
    ],
)
def test_a_checksum_is_no_name_of_a_file(model, name, said):
    (message,) = messages(model, name, "abc!")
    assert message.startswith(said)
