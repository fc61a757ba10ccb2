"""A config with more kinds of knobs than credit has groups."""

from pydantic import BaseModel, Field, create_model

fields = {f"knob{number}": (float, Field(0.0, ge=0.0, le=1.0)) for number in range(11)}
Many: type[BaseModel] = create_model("Many", **fields)
MANY = Many(**dict.fromkeys(fields, 1.0))
