"""A run as one HTML file that asks for nothing: to mail, to keep, to print.

`_facts.py` reads the run, each file of `sections/` makes one part of the page, `_page.py` puts
them together; `_data.py` adds what programs read.
"""

from soma.viz.report._page import report_html

__all__ = ["report_html"]
