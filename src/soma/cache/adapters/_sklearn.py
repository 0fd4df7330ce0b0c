"""Fitted estimators of scikit-learn, in the form of skops: a description and its arrays.

What skops writes holds addresses in memory, so it is put in order first: equal estimators
have equal bytes. Reading makes only what skops holds for safe; an estimator of any other
type has a digest and stays in memory.
"""

from collections.abc import Iterator
from io import BytesIO
from json import dumps, loads
from typing import Any
from zipfile import ZipFile

from soma._extras import loaded, require
from soma.cache._parts import Parts, PutTogether, Refused, Stored, TakeApart
from soma.errors import listing

SCHEMA = "schema.json"  # where skops puts the description
TRUSTED = ("numpy.dtype",)  # beside what skops trusts; read by `DTypeNode` from an empty array
HOMES = frozenset({"builtins", "collections", "numpy", "scipy", "sklearn"})

# What is the same wherever it stands, so that nothing tells whether it is shared.
_CONSTANT = frozenset({"JsonNode", "TypeNode", "FunctionNode"})
# Where text vectorisers note the address of their stop words, to check them once.
_ADDRESS = "_stop_words_id"


def find(cls: type) -> TakeApart | None:
    """Return how an estimator is taken apart."""
    base = loaded("sklearn.base")
    return _estimator if base is not None and issubclass(cls, base.BaseEstimator) else None


def _estimator(value: object) -> Parts:
    packed = _pack(value)
    return Parts("sklearn.estimator", packed, unstorable=_why_not(packed))


def _build_estimator(stored: Stored) -> object:
    value = _unpack(stored.items)
    if not isinstance(value, require("sklearn.base", extra="sklearn").BaseEstimator):
        raise ValueError("this is no estimator")
    return value


def _pack(value: object) -> list[bytes]:
    """Return the description of an estimator, then the files that it names."""
    skops = require("skops.io", extra="sklearn")
    try:
        archive = ZipFile(BytesIO(skops.dumps(value)))
    except Exception as error:  # the code of any class may be asked for its state
        raise Refused(f"skops cannot store a `{type(value).__qualname__}`: {error}") from error
    order = _Order()
    description = order.node(loads(archive.read(SCHEMA)))
    del description["_skops_version"]
    return [dumps(description).encode(), *(_settled(archive.read(one)) for one in order.files)]


def _settled(file: bytes) -> bytes:
    """Return a file whose bytes follow from its values.

    Records, as the nodes of a tree, have bytes between their fields that hold whatever was in
    memory there.
    """
    numpy = loaded("numpy")
    if numpy is None or not file.startswith(b"\x93NUMPY"):
        return file
    array = numpy.load(BytesIO(file), allow_pickle=False)
    if array.dtype.names is None:
        return file
    clean = numpy.zeros(array.shape, array.dtype)
    for name in array.dtype.names:
        clean[name] = array[name]
    written = BytesIO()
    numpy.save(written, clean, allow_pickle=False)
    return written.getvalue()


def _unpack(packed: list[Any]) -> object:
    """Make an estimator again.

    Raises:
        Exception: it names a type that is not known to be safe, or is damaged.
    """
    _check_names(loads(packed[0]))
    return require("skops.io", extra="sklearn").loads(_archive(packed), trusted=[*TRUSTED])


def _archive(packed: list[Any]) -> bytes:
    """Return the file that skops reads."""
    description, *files = packed
    buffer = BytesIO()
    with ZipFile(buffer, "w") as archive:
        archive.writestr(SCHEMA, description)
        for number, file in enumerate(files):
            archive.writestr(str(number), file)
    return buffer.getvalue()


def _why_not(packed: list[bytes]) -> str:
    """Say why an estimator cannot be stored; an empty text if it can."""
    skops = require("skops.io", extra="sklearn")
    try:
        unsafe = set(skops.get_untrusted_types(data=_archive(packed))) - {*TRUSTED}
        same = bool(unsafe) or _pack(_unpack(packed)) == packed
    except Exception as error:  # whatever comes of a state that skops cannot read back
        return f"skops cannot read it back: {error}"
    if unsafe:
        return f"skops does not hold {listing(sorted(unsafe))} for safe to read from a file"
    return "" if same else "skops gives it back as another"


def _check_names(description: object) -> None:
    """Raise if a description names what is of no library that estimators are made of."""
    for node in _nodes(description):
        home, name, loader = node["__module__"], node.get("__class__"), node.get("__loader__")
        if str(home).partition(".")[0] not in HOMES:
            raise ValueError(f"`{home}.{name}` is of no library that estimators are made of")
        if f"{home}.{name}" in TRUSTED and loader != "DTypeNode":
            raise ValueError(f"`{home}.{name}` is not read by a {loader}")


def _nodes(part: object) -> Iterator[dict[str, Any]]:
    """Give all that may be taken for the description of an object."""
    waiting = [part]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += one.values()
            if "__module__" in one:
                yield one
        elif isinstance(one, list):
            waiting += one


class _Order:
    """Puts numbers in order of appearance where skops has addresses in memory."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self._numbers: dict[int, int] = {}

    def node(self, node: dict[str, Any]) -> dict[str, Any]:
        """Return the description of one object in order."""
        loader = node["__loader__"]
        if loader == "DictNode":
            return self._dict(node)
        if loader == "SetNode":
            node = {**node, "content": sorted(node["content"], key=_alone)}
        ordered = {name: self._part(part) for name, part in node.items()}
        if loader in _CONSTANT:
            del ordered["__id__"]
        else:
            ordered["__id__"] = self._number(node)
        if isinstance(file := node.get("file"), str):
            ordered["file"] = self.files.setdefault(file, str(len(self.files)))
        return ordered

    def _dict(self, node: dict[str, Any]) -> dict[str, Any]:
        """Put a dict in order: its keys are the user's, and have their types beside them."""
        types = node["key_types"]["content"]
        if len(types) != len(node["content"]):
            raise Refused("skops cannot store a dict with keys that differ by type alone")
        pairs = [
            (key, kind, part)
            for (key, part), kind in zip(node["content"].items(), types, strict=True)
            if key != _ADDRESS
        ]
        return {
            **node,
            "__id__": self._number(node),
            "content": {key: self.node(part) for key, _, part in pairs},
            "key_types": self.node({**node["key_types"], "content": [one for _, one, _ in pairs]}),
        }

    def _part(self, part: Any) -> Any:
        if isinstance(part, list):
            return [self._part(one) for one in part]
        if isinstance(part, dict):
            if "__loader__" in part:
                return self.node(part)
            return {name: self._part(one) for name, one in part.items()}
        return part

    def _number(self, node: dict[str, Any]) -> int:
        return self._numbers.setdefault(node["__id__"], len(self._numbers) + 1)


def _alone(node: dict[str, Any]) -> str:
    """Return a description that says nothing of other objects, to sort by."""
    return dumps(_Order().node(node))


BUILDERS: dict[str, PutTogether] = {"sklearn.estimator": _build_estimator}
