"""What a script writes into a spec is trusted: it could import these modules itself. What was read from a file is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)  # it has no public name


class Written(ModelMetaclass):
    """Makes classes that tell a script's ``WorldSpec(name=…)`` from validated data: pydantic calls no class for the latter."""

    def __call__(cls, *given: Any, **fields: Any) -> Any:
        made = super().__call__(*given, **fields)
        made.was_written()
        return made
