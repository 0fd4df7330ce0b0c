"""Puts text where an eye can read it: terminal cells and trees of lines."""

from soma.draw._cells import cells, printable, shortened, wrapped
from soma.draw._tree import Tree

__all__ = ["Tree", "cells", "printable", "shortened", "wrapped"]
