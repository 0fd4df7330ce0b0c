"""Graphs that cannot run: the whole text of each error."""

from textwrap import dedent

import pytest

from soma.compiler import Compiler
from soma.core import Filter, Topology
from soma.errors import CompileError


class Scale(Filter): ...


class Mean(Filter):
    _stream_mode = "evolving"


class Running(Mean):
    def update(self, state: object, chunk: object) -> object:
        return state


class Odd(Filter):
    _stream_mode = "evolvin"


def declared(nodes: dict[str, Filter], *links: tuple[str, str]) -> Topology:
    topology = Topology()
    for name, filter in nodes.items():
        topology.add(filter, name)
    for link in links:
        topology.connect(*link)
    return topology


def errors(topology: Topology) -> list[str]:
    with pytest.raises(CompileError) as caught:
        Compiler().compile(topology)
    texts = [str(found) for found in caught.value.diagnostics]
    assert all(text in str(caught.value) for text in texts)
    return texts


def text(expected: str) -> str:
    return dedent(expected).strip("\n")


def test_a_cycle_is_named_link_by_link() -> None:
    """A cycle shows one way round."""
    scales = {"a": Scale(), "b": Scale(), "c": Scale()}
    (error,) = errors(declared(scales, ("a", "b"), ("b", "c"), ("c", "b")))

    assert error == text(
        """
        error[cycle]: `b → c → b` runs in a circle; no node may read what it leads to
          --> node `b`
          |
          = help: Take out one of these links. To repeat a step, call `g.forward` in a loop.
        """
    )


def test_a_self_link_is_a_cycle_of_one() -> None:
    """A node cannot read itself."""
    (error,) = errors(declared({"a": Scale()}, ("a", "a")))

    assert error == text(
        """
        error[cycle]: `a → a` runs in a circle; no node may read what it leads to
          --> node `a`
          |
          = help: Take out one of these links. To repeat a step, call `g.forward` in a loop.
        """
    )


def test_an_unknown_node_in_a_link_gets_a_guess() -> None:
    """A misspelt name in a link is answered with the nearest one."""
    (error,) = errors(declared({"scale": Scale(), "b": Scale()}, ("scael", "b")))

    assert error == text(
        """
        error[unknown-node]: The link `scael` → `b` names `scael`, which is no node of this graph
          --> node `b`
          |
          | Did you mean `scale`?
          |
          = help: Declare that node, or correct the link; the nodes here are `scale` and `b`.
        """
    )


def test_a_repeated_link_is_refused() -> None:
    """The same link twice is one too many."""
    (error,) = errors(declared({"a": Scale(), "b": Scale()}, ("a", "b"), ("a", "b")))

    assert error == text(
        """
        error[repeated-link]: The link `a` → `b` is declared 2 times; a node reads another one once
          --> node `b`
          |
          = help: Take out the repetition. What a node gets holds each predecessor once.
        """
    )


def test_one_filter_object_in_two_nodes_is_refused() -> None:
    """A filter object belongs to one node; both are named."""
    one = Scale()
    (error,) = errors(declared({"a": one, "b": one}, ("a", "b")))

    assert error == text(
        """
        error[shared-filter]: Nodes `a` and `b` hold one `Scale` object; each wants its own
          --> node `b`
          |
          = help: Construct another `Scale(...)` for each further node, or let the readers of
                  both read one node.
        """
    )


def test_a_graph_without_nodes_is_refused() -> None:
    """There is nothing to run in an empty graph."""
    (error,) = errors(Topology())

    assert error == text(
        """
        error[empty]: The graph has no nodes; at least one filter is wanted
          |
          = help: Declare one with `g.node(filter)`, or build the graph from an expression:
                  `Graph.somatize(A() >> B())`.
        """
    )


def test_an_evolving_filter_needs_update() -> None:
    """A filter whose state moves on has to say how."""
    (error,) = errors(declared({"mean": Mean()}))

    assert error == text(
        """
        error[no-update]: `Mean` says `_stream_mode = "evolving"` but has no `update` method
          --> node `mean`
          |
          = help: Define `update(self, state, chunk)` that returns the next state, or say that
                  the stream mode is `"fixed"` or `"barrier"`.
        """
    )
    Compiler().compile(declared({"mean": Running()}))


def test_an_unknown_word_in_a_declaration_is_refused() -> None:
    """A stream mode that does not exist is named with the node that declares it."""
    (error,) = errors(declared({"odd": Odd()}))

    assert error == text(
        """
        error[declaration]: `Odd` does not say what it is: 'evolvin' is not a valid StreamMode
          --> node `odd`
          |
          = help: `_kind` is one of `stateless`, `trainable` and `opaque`; `_stream_mode` is one
                  of `fixed`, `evolving` and `barrier`.
        """
    )


def test_all_errors_are_shown_at_once() -> None:
    """One `CompileError` holds every error and its message shows them all."""
    one = Scale()
    topology = declared({"a": one, "b": one}, ("a", "b"), ("a", "b"), ("b", "a"), ("b", "x"))
    with pytest.raises(CompileError) as caught:
        Compiler().compile(topology)

    codes = [found.code for found in caught.value.diagnostics]
    assert codes == ["unknown-node", "repeated-link", "cycle", "shared-filter"]
    assert str(caught.value).startswith("this graph cannot run, for these 4 reasons:\n\nerror[")
    assert str(caught.value).count("error[") == 4


def test_every_knot_of_cycles_is_named() -> None:
    """Two cycles and a self link give three errors, also where one leads to the other."""
    scales = {name: Scale() for name in "abcde"}
    links = [("a", "b"), ("b", "a"), ("b", "c"), ("c", "d"), ("d", "c"), ("d", "e"), ("e", "e")]
    heads = [one.splitlines()[0].split("`")[1] for one in errors(declared(scales, *links))]

    assert sorted(heads) == ["a → b → a", "c → d → c", "e → e"]


def test_a_long_cycle_is_elided() -> None:
    """A way round of many nodes shows where it begins and where it closes."""
    scales = {f"n{index}": Scale() for index in range(20)}
    links = [(f"n{index}", f"n{(index + 1) % 20}") for index in range(20)]
    (error,) = errors(declared(scales, *links))

    assert "`n0 → n1 → n2 → n3 → n4 → n5 → … → n0`" in error


def test_the_gradient_check_refuses_a_broken_graph_too() -> None:
    """Gradient flow is judged in graphs that can run."""
    with pytest.raises(CompileError, match=r"error\[cycle\]"):
        Compiler().check_gradient_flow(declared({"a": Scale()}, ("a", "a")))


def test_one_unknown_name_is_one_error() -> None:
    """A name that many links get wrong is reported once, with how many there are."""
    links = [("a", "nowhere"), ("b", "nowhere"), ("c", "nowhere")]
    (error,) = errors(declared({name: Scale() for name in "abc"}, *links))

    assert error.splitlines()[0].endswith(
        "names `nowhere`, which is no node of this graph; so do 2 more"
    )


def test_a_forward_without_a_place_for_the_state_is_told() -> None:
    """A filter that cannot be called is found before it is."""

    class Short(Filter):
        def forward(self, x):  # type: ignore[override]
            return x

    assert errors(declared({"short": Short()})) == [
        text(
            """
            error[signature]: `Short` has a `forward` that cannot be called with two arguments
              --> node `short`
              |
              = help: Write it as `forward(self, x, state)`.
            """
        )
    ]
