"""A filter as its author writes it: attributes, kind and what it declares."""

import pytest

from soma import Filter, FilterKind, FilterMeta, Graph, StreamMode
from soma.errors import CompileError
from tests.core.filters import A, Learns, Scale, Silent


def test_keywords_become_attributes() -> None:
    """A filter without `__init__` takes any keyword."""
    filter = A(size=3, unit=None)

    assert (filter.size, filter.unit) == (3, None)


def test_a_filter_without_init_just_works() -> None:
    """Nothing has to be written but `forward`."""

    class Double(Filter):
        def forward(self, x, state):
            return 2 * x

    assert Graph.somatize(Double()).forward(4) == 8


def test_positional_arguments_need_an_init() -> None:
    """Without an `__init__` there are no names for them, as in any Python class."""
    with pytest.raises(TypeError, match=r"`A` got 1 argument without a name; .*`A\(name=value\)`"):
        A(3)


def test_a_missing_attribute_says_what_there_is() -> None:
    """A misspelt keyword is found where it is missed."""
    with pytest.raises(
        AttributeError, match=r"`A` has no attribute `width`.*`widht`\. Did you mean"
    ):
        _ = A(widht=3).width


def test_an_object_that_is_not_made_yet_lacks_attributes_as_usual() -> None:
    """Copying and pickling ask such an object what it has."""
    assert not hasattr(object.__new__(A), "size")
    assert not hasattr(A(), "__array__")
    assert getattr(A(), "size", 7) == 7


def test_a_property_that_fails_tells_why() -> None:
    """An AttributeError inside it is not taken for a missing keyword."""

    class Lengths(A):
        @property
        def mean(self):
            return self.size.average

    with pytest.raises(AttributeError, match="'int' object has no attribute 'average'"):
        _ = Lengths(size=3).mean


@pytest.mark.parametrize("name", ["fit", "forward", "meta", "to", "collect", "inlined"])
def test_a_keyword_may_not_hide_a_method(name: str) -> None:
    """A parameter named like a method would break the filter later and elsewhere."""
    with pytest.raises(TypeError, match=f"`A` got a parameter named `{name}`"):
        A(**{name: 3})


def test_a_keyword_may_not_hide_a_method_of_its_own_class() -> None:
    """Also a method that the filter adds itself."""

    class Tokens(A):
        def split(self, text):
            return text.split()

    with pytest.raises(TypeError, match="`split`, which is one of its methods"):
        Tokens(split=",")


def test_a_keyword_may_replace_a_class_attribute() -> None:
    """A default on the class is no method, even if it can be called."""

    class Activated(A):
        activation = int
        size = 3

    filter = Activated(activation=float, size=4)

    assert (filter.activation, filter.size) == (float, 4)


@pytest.mark.parametrize("name", ["self", "cls", "args", "kwargs", "name", "attributes"])
def test_any_other_keyword_is_free(name: str) -> None:
    """Words that Python's own machinery uses are words like others."""
    assert getattr(A(**{name: 3}), name) == 3


def test_an_init_may_use_any_parameter_name() -> None:
    """Also `cls`, which a wrapper of a class likes to use."""

    class Wrap(A):
        def __init__(self, cls):
            super().__init__(cls=cls)

    assert Wrap(cls=int).cls is Wrap(int).cls is int


def test_kind_comes_from_fit() -> None:
    """A filter that overrides `fit` is trainable, any other stateless."""
    assert A().meta().kind is FilterKind.Stateless
    assert Learns().meta().kind is FilterKind.Trainable


@pytest.mark.parametrize("kind", list(FilterKind))
@pytest.mark.parametrize("base", [A, Learns])
def test_kind_can_be_declared(base: type[Filter], kind: FilterKind) -> None:
    """What the class says wins, as a word or as a member of the enum."""
    for word in (kind, kind.value):
        declared = type("Declared", (base,), {"_kind": word})
        assert declared().meta().kind is kind


def test_a_subclass_inherits_its_fit() -> None:
    """An inherited `fit` is learning as well."""

    class More(Learns):
        pass

    assert More().meta().kind is FilterKind.Trainable


def test_meta_tells_all_that_is_declared() -> None:
    """Class attributes become plain facts."""

    class Everything(A):
        _kind = "opaque"
        _differentiable = True
        _cacheable = False
        _stream_mode = "barrier"

    assert Everything().meta() == FilterMeta(
        kind=FilterKind.Opaque,
        differentiable=True,
        cacheable=False,
        stream_mode=StreamMode.Barrier,
    )
    assert A().meta() == FilterMeta(
        kind=FilterKind.Stateless,
        differentiable=False,
        cacheable=True,
        stream_mode=StreamMode.Fixed,
    )


@pytest.mark.parametrize("attribute", ["_kind", "_stream_mode"])
@pytest.mark.parametrize("word", ["oops", "", "Trainable", 3])
def test_a_wrong_word_is_found_before_running(attribute: str, word: object) -> None:
    """The error names the node's class, the word, and those that are known."""
    wrong = type("Wrong", (A,), {attribute: word})

    with pytest.raises(ValueError, match="is not a valid"):
        wrong().meta()
    with pytest.raises(CompileError) as caught:
        Graph.somatize(A() >> wrong())
    (found,) = caught.value.diagnostics
    assert found.node == "wrong"
    assert repr(word) in found.message
    assert "`trainable`" in found.help
    assert "`barrier`" in found.help


def test_forward_has_to_be_defined() -> None:
    """A filter without it says what is missing when its turn comes."""

    class Forgot(Filter):
        pass

    with pytest.raises(NotImplementedError, match="`Forgot` does not define `forward"):
        Graph.somatize(Forgot()).forward(1)


def test_an_init_need_not_call_super() -> None:
    """A filter with an `__init__` of its own runs like any other."""
    filter = Silent(2, "a", "b")

    assert filter.total == 4
    assert Graph.somatize(A() >> filter).filter("silent") is filter


def test_filters_are_themselves() -> None:
    """Two filters of the same arguments are different, and either can be a key."""
    one, other = Scale(2), Scale(2)

    assert one != other
    assert len({one, other}) == 2


def test_a_filter_may_be_falsy_and_equal_to_anything() -> None:
    """What a filter says of itself in comparisons does not matter to a graph."""

    class Odd(A):
        def __bool__(self):
            return False

        def __len__(self):
            return 0

        def __eq__(self, other):
            return True

    g = Graph.somatize(Odd() >> Odd())
    g.connect("odd_2", g.node(Odd()))

    assert g.forward(1) == 1
