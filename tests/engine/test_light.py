"""Nothing heavy is loaded before a filter asks for it."""

import pytest

from tests.engine.fresh import fresh_python

FILTERS = """
    import sys
    import soma
    from soma import Filter, Graph

    class Center(Filter):
        def fit(self, x, y=None):
            return sum(x) / len(x)
        def forward(self, x, state):
            return [value - state for value in x]

    class Draws(Filter):
        _deterministic = False
        def forward(self, x, state):
            return x

    g = Graph.somatize(Center() >> (Draws() | Center()), seed=1)
"""
HEAVY = "{'click', 'numpy', 'pandas', 'plotly', 'rich', 'sklearn', 'torch'}"


@pytest.mark.parametrize(
    "use",
    [
        "",
        "g.fit([1, 3]).forward([2])",
        "g.fit([1, 3], executor='threads')",
        "str(g); repr(g)",
        "g.compile('differentiable').to_json()",
        "g.filter('center'); g.eval(); g.training; g.history; g.optimizer()",
    ],
    ids=["import", "run", "threads", "draw", "compile", "ask"],
)
def test_a_plain_graph_needs_no_library(use: str) -> None:
    """Importing, fitting, running, drawing and asking load only Python itself."""
    code = f"{FILTERS}\n    {use}\n    print({HEAVY} & set(sys.modules))"

    assert fresh_python(code) == "set()\n"
