"""Sinks take runs to other tools: live with `track_run(..., sinks=[...])`, later with `export_run`.

A sink of your own derives from `soma.tracking.Sink`; `_csv.py` is the shortest example.
"""

from soma.integrations.sinks._csv import CsvSink
from soma.integrations.sinks._export import export_run
from soma.integrations.sinks._mlflow import MLflowSink
from soma.integrations.sinks._parquet import ParquetSink
from soma.integrations.sinks._tensorboard import TensorBoardSink
from soma.integrations.sinks._wandb import WandbSink

__all__ = [
    "CsvSink",
    "MLflowSink",
    "ParquetSink",
    "TensorBoardSink",
    "WandbSink",
    "export_run",
]
