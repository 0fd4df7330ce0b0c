"""The command line: parse, call, print."""

from soma.cli._main import main

__all__ = ["main"]
