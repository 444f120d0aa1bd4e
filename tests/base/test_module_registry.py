"""The registry of a folder's modules and of what plug-ins declare."""

from __future__ import annotations

import pytest

from svmbench.base.errors import UnknownNameError
from svmbench.base.module_registry import ModuleRegistry


def test_it_has_the_folder_s_modules_and_what_is_declared() -> None:
    registry: ModuleRegistry[str] = ModuleRegistry("kind of errors", "base", "__doc__")
    assert {"errors", "paths"} <= set(registry.names())
    assert "Errors for users" in registry.named("errors")
    registry.declare("mine", "a thing")
    assert registry.named("mine") == "a thing"
    assert registry.names() == sorted(registry.names())
    for taken in ("mine", "errors"):
        with pytest.raises(ValueError, match=f"the kind of errors {taken!r} exists already"):
            registry.declare(taken, "another")
    with pytest.raises(UnknownNameError, match="unknown kind of errors 'min'; did you mean 'mine'"):
        registry.named("min")
