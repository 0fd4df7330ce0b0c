"""`search_space` and `apply_params`: what may be searched in a graph, and a graph with one choice.

A class declares what may be searched with `soma.search`, in `_space_declared.py`.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Protocol, Self, TypeVar

from soma.core._filter import Filter
from soma.core._remade import given_to, remade
from soma.core._space import Space, spaces_of
from soma.core._topology import NodeId
from soma.draw import printable
from soma.errors import InvalidInput, did_you_mean


class Searchable(Protocol):
    """What has filters and can be rebuilt with others: a graph."""

    def filters(self) -> list[tuple[NodeId, Filter]]:
        """Return ids and filters."""
        ...

    def unfitted(self, filters: Mapping[NodeId, Filter] | None = None) -> Self:
        """Return an unfitted copy, with these filters in place of those of some nodes."""
        ...


G = TypeVar("G", bound=Searchable)


class SearchSpace(Mapping[str, Space]):
    """The spaces of a graph by `node.attribute`, which `print` shows as a list."""

    def __init__(self, spaces: Mapping[str, Space]) -> None:
        self._spaces = MappingProxyType(dict(spaces))

    def defaults(self) -> dict[str, Any]:
        """Return the default of each space, as `apply_params` takes them."""
        return {name: space.default for name, space in self.items()}

    def __getitem__(self, name: str) -> Space:
        return self._spaces[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._spaces)

    def __len__(self) -> int:
        return len(self._spaces)

    def __str__(self) -> str:
        width = max(map(len, self), default=0)
        lines = [
            f"{printable(name):<{width}}  {space}; by default {space.default!r}"
            for name, space in self.items()
        ]
        return "\n".join(lines) or "nothing to search"

    def __repr__(self) -> str:
        return f"<SearchSpace: {', '.join(map(printable, self)) or 'nothing'}>"


def search_space(graph: Searchable) -> SearchSpace:
    """Return what may be searched in a graph, by `node.attribute`.

    An attribute that a filter was constructed with is settled, and is left out.

    >>> import soma
    >>> class Dense(soma.Filter):
    ...     width: int = soma.search(16, 256, step=16)
    ...     activation: str = soma.search(choices=["relu", "gelu"])
    >>> g = soma.Graph.somatize(Dense() >> Dense(width=10))
    >>> print(soma.search_space(g))
    dense.width         a whole number from 16 to 256 in steps of 16; by default 128
    dense.activation    'relu' or 'gelu'; by default 'relu'
    dense_2.activation  'relu' or 'gelu'; by default 'relu'
    """
    return SearchSpace(
        {
            f"{id}.{name}": space
            for id, filter in graph.filters()
            for name, space in _searched_spaces(filter).items()
        }
    )


def apply_params(graph: G, params: Mapping[str, object]) -> G:
    """Return the graph, unfitted, with these values in its filters; the one given stays as it is.

    Filters are made again from their arguments, and these values count as arguments from then on.
    Attributes that are left out keep the value they have.

    >>> import soma
    >>> class Dense(soma.Filter):
    ...     width: int = soma.search(16, 256, step=16)
    >>> g = soma.Graph.somatize(Dense())
    >>> soma.apply_params(g, {"dense.width": 32}).filter("dense")
    Dense(width=32)

    Args:
        params: by `node.attribute`, as `search_space` names them.

    Raises:
        InvalidInput: a name that is not searched, or a value outside of its space.
    """
    if not isinstance(params, Mapping):
        raise InvalidInput(
            f"`apply_params` got {params!r:.80}; a mapping is wanted, such as "
            '`{"dense.width": 32}`.'
        )
    filters = dict(graph.filters())
    space = search_space(graph)
    changes: dict[NodeId, dict[str, object]] = {}
    problems = []
    for key, value in params.items():
        if key not in space:
            problems.append(_not_searched(filters, key, space))
            continue
        id, _, name = key.rpartition(".")
        try:
            changes.setdefault(id, {})[name] = space[key].checked(value)
        except InvalidInput as error:
            problems.append(f"`{key}` cannot be set: {error}.")
    if problems:
        raise InvalidInput(" ".join(problems))
    return graph.unfitted({id: remade(filters[id], values) for id, values in changes.items()})


def _searched_spaces(filter: Filter) -> dict[str, Space]:
    """Return the spaces of a filter whose values neither an argument nor its constructor set."""
    spaces = spaces_of(type(filter))
    given = given_to(filter) if spaces else {}
    return {
        name: space
        for name, space in spaces.items()
        if name not in given and getattr(filter, name) == space.default
    }


def _not_searched(filters: Mapping[NodeId, Filter], key: object, space: SearchSpace) -> str:
    id, _, name = str(key).rpartition(".")
    if id in filters and name in spaces_of(type(filters[id])):
        settled = getattr(filters[id], name)
        return f"`{key}` is not searched: its filter was constructed with {settled!r}."
    return (
        f"no filter of this graph searches `{key}`.{did_you_mean(str(key), space)} "
        "`soma.search_space(g)` lists all that is searched."
    )
