"""Orchestrates language models around computation: agents, tools, people and graphs in one flow.

Start with `_flow.py`, what a user holds, and `_node.py`, what stands in it: `_llm.py`, `_agent.py`,
`_condition.py`, `_tool.py`, `_io.py`, `_computation.py`. A run is `_session.py`, `_walk.py` and,
for all that is outside, `_turn.py`, which keeps it in the journal. `_model.py` is what a model is
to a flow, `_schema.py` how its words are checked.
"""

from soma.flow._agent import Agent
from soma.flow._asked import Asked
from soma.flow._budget import Budget
from soma.flow._computation import Computation
from soma.flow._condition import Condition
from soma.flow._flow import Flow
from soma.flow._io import IO
from soma.flow._llm import LLM
from soma.flow._model import Model, Options
from soma.flow._node import FlowNode
from soma.flow._openai_model import OpenAIModel
from soma.flow._schema import Schema
from soma.flow._session import FlowRun
from soma.flow._suspend import Suspend, ask
from soma.flow._tool import Observation, Tool
from soma.flow._turn import Turn

__all__ = [
    "Agent",
    "Asked",
    "Budget",
    "Computation",
    "Condition",
    "Flow",
    "FlowNode",
    "FlowRun",
    "IO",
    "LLM",
    "Model",
    "Observation",
    "OpenAIModel",
    "Options",
    "Schema",
    "Suspend",
    "Tool",
    "Turn",
    "ask",
]
