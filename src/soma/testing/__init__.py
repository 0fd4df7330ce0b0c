"""Small real parts for tests of code that uses soma."""

from soma.testing._recording import Recording
from soma.testing._scripted_model import Asked, ScriptedModel

__all__ = ["Asked", "Recording", "ScriptedModel"]
