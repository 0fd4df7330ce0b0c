"""Pictures of whatever is declared as nodes and edges: a graph, a flow."""

from abc import ABC, abstractmethod

from soma._extras import require
from soma.tracking._graph_record import GraphRecord


class Drawn(ABC):
    """What has a `GraphRecord`, and so can be drawn."""

    @abstractmethod
    def _record(self) -> GraphRecord:
        """Return nodes and edges as data."""

    def to_svg(self) -> str:
        """Return the nodes as a picture in SVG, without script."""
        return self._drawing("graph_svg")

    def to_mermaid(self) -> str:
        """Return the nodes as Mermaid text, for a page that draws it."""
        return self._drawing("mermaid")

    def to_graphviz(self) -> str:
        """Return the nodes in Graphviz' language DOT."""
        return self._drawing("graphviz")

    def _repr_html_(self) -> str:
        return self.to_svg()

    def _drawing(self, form: str) -> str:
        drawing: str = getattr(require("soma.viz", extra="all"), form)(self._record())
        return drawing
