"""`>>` and `|` give the graph as it reads."""

import pytest

from soma import Graph
from soma.errors import CompileError, NotAFilter
from tests.core.filters import A, B, C, D, E, F, G, Scale


def test_the_expression_reads_as_drawn() -> None:
    """`>>` binds tighter than `|`, so branches stay whole and a fork is a fan-in."""
    g = Graph.somatize((A() >> B() | C() >> D()) >> E() >> (F() | G()))

    assert g.edges() == [("a", "b"), ("c", "d"), ("b", "e"), ("d", "e"), ("e", "f"), ("e", "g")]
    assert (g.roots(), g.leaves()) == (["a", "c"], ["f", "g"])


def test_one_filter_is_a_graph() -> None:
    """A single filter is root and leaf at once."""
    g = Graph.somatize(A())

    assert (g.filter_ids(), g.edges()) == (["a"], [])
    assert g.roots() == g.leaves() == ["a"]


def test_a_fork_into_a_fork_links_all_pairs() -> None:
    """Each filter on the right reads each one on the left, in the order written."""
    g = Graph.somatize((A() | B()) >> (C() | D()))

    assert g.edges() == [("a", "c"), ("b", "c"), ("a", "d"), ("b", "d")]


def test_forks_side_by_side_are_one_fork() -> None:
    """Brackets among `|` change nothing."""
    flat = Graph.somatize((A() | B() | C()) >> D())
    nested = Graph.somatize((A() | (B() | C())) >> D())

    assert flat.edges() == nested.edges() == [("a", "d"), ("b", "d"), ("c", "d")]


def test_brackets_among_chains_change_nothing() -> None:
    """`a >> (b >> c)` is `(a >> b) >> c`."""
    left = Graph.somatize((A() >> B()) >> C())
    right = Graph.somatize(A() >> (B() >> C()))

    assert set(left.edges()) == set(right.edges()) == {("a", "b"), ("b", "c")}


def test_an_expression_is_shown_as_it_is_written() -> None:
    """With the brackets that it needs."""
    written = (A() >> B() | C()) >> Scale(2) >> (D() | E() | F())

    assert repr(written) == "(A() >> B() | C()) >> Scale(factor=2) >> (D() | E() | F())"


def test_a_long_expression_is_shown_from_its_beginning() -> None:
    """However deep it is, or however often it holds a part."""
    chain = doubled = A() >> B()
    for _ in range(5000):
        chain = A() >> chain
        doubled = doubled >> doubled

    assert repr(chain).startswith("A() >> A() >> A() >> ")
    assert repr(chain).endswith("…")
    assert len(repr(doubled >> B())) < 1000


def test_to_and_collect_say_it_in_words() -> None:
    """`a.to([b, c]).collect(d)` is `a >> (b | c) >> d`."""
    in_words = Graph.somatize(A().to([B(), C()]).collect(D()))
    in_signs = Graph.somatize(A() >> (B() | C()) >> D())

    assert in_words.edges() == in_signs.edges()


@pytest.mark.parametrize("targets", [B(), [B()], (B(),)])
def test_to_takes_one_target_too(targets: object) -> None:
    """One filter, alone or in a list, is what comes next."""
    assert Graph.somatize(A().to(targets)).edges() == [("a", "b")]


def test_to_nothing_is_refused() -> None:
    """An empty list in `to` has no filter to go on with."""
    with pytest.raises(NotAFilter, match="`to` got an empty list"):
        A().to([])


def test_an_expression_may_be_part_of_two() -> None:
    """Composing leaves the parts as they are, so a part can be used again elsewhere."""
    part = A() >> B()
    first = Graph.somatize((part | C()) >> D())
    second = Graph.somatize(part >> E())

    assert first.edges() == [("a", "b"), ("b", "d"), ("c", "d")]
    assert second.edges() == [("a", "b"), ("b", "e")]


def test_an_expression_grows_in_place() -> None:
    """`>>=` and `|=` go on with an expression and leave the earlier one alone."""
    start = expression = A() >> B()
    expression >>= C()
    expression |= D()

    assert Graph.somatize(expression).leaves() == ["c", "d"]
    assert Graph.somatize(start).leaves() == ["b"]


def test_a_part_twice_in_one_expression_is_one_filter_twice() -> None:
    """A filter object stands in one node only, and every shared one is named."""
    part = A() >> B()

    with pytest.raises(CompileError) as caught:
        Graph.somatize((part | part) >> C())
    nodes = [[label.node for label in found.labels] for found in caught.value.diagnostics]
    assert nodes == [["a", "a_2"], ["b", "b_2"]]


@pytest.mark.parametrize(
    ("make", "where"),
    [
        (lambda: A() >> 3, "a `int` stands on the right of `>>`"),
        (lambda: 3 >> A(), "a `int` stands on the left of `>>`"),
        (lambda: A() | None, "a `NoneType` stands on the right of `|`"),
        (lambda: [B()] | A(), "a `list` stands on the left of `|`"),
        (lambda: A() >> [B(), C()], "a `list` stands on the right of `>>`"),
        (lambda: A().to([B(), "c"]), "a `str` stands in `to`"),
        (lambda: A().collect(len), "a `builtin_function_or_method` stands in `collect`"),
        (lambda: Graph.somatize(len), "stands in `somatize`"),
        (lambda: Graph().node("x", {}), "a `dict` stands in `node`"),
    ],
)
def test_what_is_no_filter_is_named_with_its_place(make, where: str) -> None:
    """Something else in an expression is a TypeError that says what and where."""
    with pytest.raises(NotAFilter, match=r"`soma\.Filter`|Chain its parts") as caught:
        make()
    assert where in str(caught.value)
    assert isinstance(caught.value, TypeError)


class Module:
    """What a torch module looks like from afar."""

    def parameters(self):
        return []

    def forward(self, x):
        return x


class Estimator:
    """What an estimator of scikit-learn looks like from afar."""

    def fit(self, x, y=None):
        return self

    def transform(self, x):
        return x


@pytest.mark.parametrize(
    ("value", "way"), [(Module(), "`build_module`"), (Estimator(), "`transform`")]
)
def test_a_module_or_an_estimator_is_told_the_way_in(value: object, way: str) -> None:
    """What people have at hand can be wrapped, and the error says how."""
    with pytest.raises(NotAFilter, match=way):
        A() >> value


def test_a_class_in_place_of_an_instance_is_told_so() -> None:
    """Forgotten brackets are the likely mistake."""
    with pytest.raises(NotAFilter, match=r"the class `B` stands .* Write `B\(\.\.\.\)`"):
        A() >> B
