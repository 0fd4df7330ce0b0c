"""Orchestrates language models around computation: models, tools and what both say as data.

Start with `_model.py`, what a model is to a flow; then `_tool.py`, what it may call, and
`_schema.py`, how its words are checked.
"""

from soma.flow._model import Model, Options
from soma.flow._openai_model import OpenAIModel
from soma.flow._schema import Schema
from soma.flow._suspend import Suspend
from soma.flow._tool import Observation, Tool

__all__ = ["Model", "Observation", "OpenAIModel", "Options", "Schema", "Suspend", "Tool"]
