"""Trains the modules of a graph: `DifferentiableFilter`, `materialize`, the loop, `freeze`.

Start with `_filter.py` (a filter with a module inside) and `_trainer.py` (the steps of a
training loop); `_fit.py` drives them epoch by epoch.
"""

from soma.training._checkpoint_optimizers import load_training, training_entry
from soma.training._checkpoint_read import WeightsReader
from soma.training._checkpoint_write import WeightsWriter
from soma.training._context import Context
from soma.training._convert import mapped
from soma.training._elsewhere import Ear, Held, Listening, Placement, StandIn
from soma.training._filter import DifferentiableFilter
from soma.training._fit import FitOptions, fit
from soma.training._graph_module import GraphModule
from soma.training._history import EpochRecord, History
from soma.training._materialize import build
from soma.training._objective import Objective
from soma.training._optimizers import Optimizers
from soma.training._prefix import Prefix
from soma.training._state import load_module_states, module_states, unfit_weights
from soma.training._trainer import Trainer
from soma.training._training_run import TrainingRun

__all__ = [
    "Context",
    "DifferentiableFilter",
    "Ear",
    "EpochRecord",
    "FitOptions",
    "GraphModule",
    "Held",
    "History",
    "Listening",
    "Objective",
    "Optimizers",
    "Placement",
    "Prefix",
    "StandIn",
    "Trainer",
    "TrainingRun",
    "WeightsReader",
    "WeightsWriter",
    "build",
    "fit",
    "load_module_states",
    "load_training",
    "mapped",
    "module_states",
    "training_entry",
    "unfit_weights",
]
