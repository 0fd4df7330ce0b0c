"""Several runs as one page: a table to sort, curves over each other, what became of each.

`_one.py` reads a run, `_facts.py` puts runs beside each other, each further file makes one part of
the page, and `_page.py` puts them together.
"""

from soma.viz.report.several._page import runs_html

__all__ = ["runs_html"]
