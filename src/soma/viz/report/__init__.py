"""A run, or several, as one HTML file that asks for nothing: to mail, to keep, to print.

`_facts.py` reads a run, each file of `sections/` makes one part of the page, `_page.py` puts
them together; `_data.py` adds what programs read. `several/` does the same for several runs.
"""

from soma.viz.report._page import report_html
from soma.viz.report.several import runs_html

__all__ = ["report_html", "runs_html"]
