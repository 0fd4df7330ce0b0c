"""Small real parts for tests of code that uses soma."""

from soma.testing._recording import Recording

__all__ = ["Recording"]
