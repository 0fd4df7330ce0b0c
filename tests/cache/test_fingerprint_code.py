"""An edit of code that a filter reaches is another filter; an edit that does nothing is none."""

from pathlib import Path

import pytest

from soma.cache._fingerprint import Unfingerprintable
from tests.cache.fingerprints import FILTER, PROJECT, edited, told

CHANGES = {
    "method": ("mod.py", "self.step(item)", "self.step(item + 1)", "mod.F.forward"),
    "handler": ("mod.py", "except ValueError", "except TypeError", "mod.F.forward"),
    "nested lambda": ("mod.py", "u + v - factor", "u + v + factor", "mod.F.step"),
    "comprehension": ("mod.py", "inner(k) for", "inner(k + 1) for", "mod.F.step"),
    "default": ("mod.py", "offset=5", "offset=6", "mod.F.step"),
    "keyword default": ("mod.py", "factor=7", "factor=8", "mod.F.step"),
    "parameter name": ("mod.py", "(cls, v):\n        return v", "(cls, w):\n        return w",
                       "mod.F.made"),
    "property": ("mod.py", "(self.limit) / 2", "(self.limit) / 3", "mod.F.half"),
    "static method": ("mod.py", "v - 4", "v - 5", "mod.F.fixed"),
    "class method": ("mod.py", "v - 6", "v - 5", "mod.F.made"),
    "static to class": ("mod.py", "@staticmethod", "@classmethod", "mod.F"),
    "decorator": ("mod.py", "(*args) + 1", "(*args) + 2", "mod.decorated.<locals>.wrapper"),
    "decorated": ("mod.py", "through(SCALE)", "through(-SCALE)", "mod.F.wrapped"),
    "undecorated": ("mod.py", "@decorated\n", "\n", "mod.F"),
    "cached": ("mod.py", '["double"](8)', '["double"](9)', "mod.F.kept"),
    "closure": ("mod.py", "factory(2)", "factory(3)", "mod.factory.<locals>.raised"),
    "factory's inside": ("mod.py", "v ** power", "v + power", "mod.factory.<locals>.raised"),
    "class attribute": ("mod.py", "limit = 100", "limit = 101", "mod.Base.limit"),
    "base class": ("mod.py", "min(v, self", "max(v, self", "mod.Base.common"),
    "mixin": ("mod.py", "v + 10", "v + 11", "mod.Mixin.mixed"),
    "order of bases": ("mod.py", "F(Mixin, Base)", "F(Base, Mixin)", "mod.F"),
    "constant": ("mod.py", "SCALE = 2.0", "SCALE = 2.5", "mod.SCALE"),
    "type of a constant": ("mod.py", "SCALE = 2.0", "SCALE = 2", "mod.SCALE"),
    "entry of a dict": ("mod.py", '"c": 3', '"c": 4', "mod.TABLE"),
    "item of a list": ("mod.py", "[1, 2]", "[1, True]", "mod.TABLE"),
    "pattern": ("mod.py", '"a+"', '"b+"', "mod.PATTERN"),
    "flags of a pattern": ("mod.py", ', re.IGNORECASE', "", "mod.PATTERN"),
    "argument of a partial": ("mod.py", "(helpers.cut, 3)", "(helpers.cut, 4)", "mod.CUT"),
    "function of a partial": ("helpers.py", "a - b", "b - a", "helpers.cut"),
    "function in a dict": ("mod.py", "v * 2", "v * 3", "mod.<lambda>"),
    "imported function": ("helpers.py", "v * RATE", "v / RATE", "helpers.direct"),
    "constant of a helper": ("helpers.py", "RATE = 9", "RATE = 8", "helpers.RATE"),
    "helper's helper": ("helpers.py", "v + 12", "v + 11", "helpers.second"),
    "import in a function": ("deep.py", "v + 14", "v + 11", "deep.bottom"),
    "module imported in a function": ("lazily.py", "v + 15", "v + 11", "lazily.value"),
    "constant in a package": ("pkg/sub.py", "17", "11", "pkg.sub.CONSTANT"),
}  # fmt: skip

NO_CHANGES = {
    "comment": ("mod.py", "# one by one", "# each in its turn"),
    "no comment": ("mod.py", "  # one by one", ""),
    "docstring": ("mod.py", '"""Say what it does."""', '"""Tell it in other words."""'),
    "no docstring": ("mod.py", '        """Say what it does."""\n', ""),
    "docstring of a class": ("mod.py", '"""A filter."""', '"""Another text."""'),
    "docstring of a module": ("mod.py", '"""A module of the user\'s own."""', ""),
    "new docstring": ("mod.py", "self.limit)\n\nclass", 'self.limit)\n    """New."""\n\nclass'),
    "annotation": ("mod.py", "def step(self, v,", "def step(self, v: int,"),
    "moved down": ("mod.py", "log = logging", "\n\n\n# far below\nlog = logging"),
    "moved in the file": ("helpers.py", "RATE = 9\n", "def new():\n    pass\nRATE = 9\n"),
    "wrapped line": (
        "mod.py",
        "sum(inner(k) for k in range(offset)) + square(v) + direct(v)",
        "(\n  sum(\n inner(k)\n for k in range(offset)\n)\n + square(\n v)\n + direct(v)\n)",
    ),
    "joined lines": ("mod.py", "total = 0\n        for", "total = 0; \\\n\n        for"),
    "spaces": ("mod.py", "for k in range(offset)", "for  k  in  range( offset )"),
    "unused helper": ("helpers.py", "v + 13", "v + 99"),
    "unused function of a module": ("lazily.py", "v + 16", "v + 99"),
    "unused constant of a package": ("pkg/sub.py", "18", "99"),
}  # fmt: skip

RENAMES = {
    "local": ("total", "summed"),
    "local that a lambda is": ("inner", "zz"),
    "variable of a loop": ("item", "each"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_an_edit_of_what_is_reached_is_seen(what: str, tmp_path: Path) -> None:
    """Whatever the edit touches, the digest changes, and the entry that was edited tells it."""
    file, old, new, entry = CHANGES[what]
    before, after = told(tmp_path, PROJECT), told(tmp_path, edited(file, old, new))

    assert after.digest != before.digest
    assert after.code.get(entry) != before.code[entry]


@pytest.mark.parametrize("what", NO_CHANGES)
def test_an_edit_that_does_nothing_is_not_seen(what: str, tmp_path: Path) -> None:
    """Texts, places and code that is not reached are no part of the identity."""
    before, after = told(tmp_path, PROJECT), told(tmp_path, edited(*NO_CHANGES[what]))

    assert after == before


@pytest.mark.parametrize("what", RENAMES)
def test_a_local_may_be_renamed(what: str, tmp_path: Path) -> None:
    """The names of local variables are no part of the identity."""
    old, new = RENAMES[what]
    renamed = PROJECT | {"mod.py": PROJECT["mod.py"].replace(old, new)}

    assert told(tmp_path, renamed).digest == told(tmp_path, PROJECT).digest


def test_variables_of_closures_may_be_renamed(tmp_path: Path) -> None:
    """It does not matter that Python sorts the variables of a closure by their names."""
    text = FILTER.format(
        "first, second = x\n        return [lambda: first - second, lambda: second]"
    )
    swapped = text.replace("first", "z")

    assert told(tmp_path, {"mod.py": swapped}) == told(tmp_path, {"mod.py": text})


@pytest.mark.parametrize(("one", "other"), [("1", "1.0"), ("1", "True"), ("0.0", "-0.0"),
    ("'a'", "b'a'"), ("(1, 2)", "[1, 2]"), ("None", "False"), ("2**53", "2**53 + 1")])  # fmt: skip
def test_constants_are_exact(one: str, other: str, tmp_path: Path) -> None:
    """Constants that look or compare alike are not alike."""
    first, second = (
        told(tmp_path, {"mod.py": FILTER.format(f"return {each}")}) for each in (one, other)
    )

    assert first.digest != second.digest


def test_only_what_was_edited_differs(tmp_path: Path) -> None:
    """The entries of other functions stay as they are, so people see what was edited."""
    before = told(tmp_path, PROJECT).code
    after = told(tmp_path, edited("helpers.py", "v + 12", "v + 11")).code

    assert before.items() ^ after.items() == {
        ("helpers.second", before["helpers.second"]),
        ("helpers.second", after["helpers.second"]),
    }


def test_the_entries_are_what_is_reached(tmp_path: Path) -> None:
    """Everything of the user's own that is reached is named, and nothing else."""
    files = {
        "mod.py": "import helpers, math\nfrom soma import Filter\nclass F(Filter):\n"
        "    bias = 1\n    def forward(self, x, state):\n"
        "        return math.sqrt(helpers.through(x))\n",
        "helpers.py": PROJECT["helpers.py"],
    }

    assert sorted(told(tmp_path, files).code) == [
        *("helpers.second", "helpers.through"),
        *("mod.F", "mod.F.bias", "mod.F.forward"),
    ]


@pytest.mark.parametrize(
    "use",
    [
        "return getattr(helpers, x)(1)",
        "h = helpers; return h.unused(1)",
        "return vars(helpers)[x]",
        "return helpers.__dict__[x]",
        "import helpers as h; return getattr(h, x)",
        "import helpers as h; return [h.unused(y) for y in x]",
        "return (lambda m: m.unused(x))(helpers)",
    ],
)
def test_a_module_that_is_handed_on_counts_whole(use: str, tmp_path: Path) -> None:
    """Where it cannot be seen what is read off a module, all of it counts."""
    files = {"mod.py": "import helpers\n" + FILTER.format(use), "helpers.py": PROJECT["helpers.py"]}
    other = files | {"helpers.py": files["helpers.py"].replace("v + 13", "v + 99")}

    assert told(tmp_path, files).digest != told(tmp_path, other).digest


def test_a_module_named_by_a_constant_is_imported(tmp_path: Path) -> None:
    """`import_module("helpers")` reaches that module."""
    use = "return importlib.import_module('helpers')"
    files = {"mod.py": "import importlib\n" + FILTER.format(use)}
    files["helpers.py"] = PROJECT["helpers.py"]
    other = files | {"helpers.py": files["helpers.py"].replace("v + 13", "v + 99")}

    assert told(tmp_path, files).digest != told(tmp_path, other).digest


@pytest.mark.parametrize(
    "use",
    [
        "return eval(x)",
        "exec(x)",
        "return globals()[x]",
        "return __import__(x)",
        "from importlib import import_module; return import_module(x)",
        "import sys; return sys.modules[x]",
    ],
)
def test_code_that_reaches_anything_is_refused(use: str, tmp_path: Path) -> None:
    """What is named only while the code runs cannot be seen, and the error names the function."""
    with pytest.raises(Unfingerprintable, match=r"`mod\.F\.forward`: it uses .*_cache_version"):
        told(tmp_path, {"mod.py": FILTER.format(use)})
