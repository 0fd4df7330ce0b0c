"""A tree of labels, drawn with box lines."""

from dataclasses import dataclass

from soma.draw._cells import printable


@dataclass(frozen=True, slots=True)
class Tree:
    """A label over its children; `str` draws it.

    >>> print(Tree("fork", (Tree("left"), Tree("right", (Tree("leaf"),)))))
    fork
    ├─ left
    └─ right
       └─ leaf
    """

    label: str
    children: tuple["Tree", ...] = ()

    def __str__(self) -> str:
        lines = []
        # (tree, what stands before its label, what stands before its children's lines)
        pending = [(self, "", "")]
        while pending:
            tree, before, below = pending.pop()
            lines.append(f"{before}{printable(tree.label)}".rstrip())
            last = len(tree.children) - 1
            branches = [
                (child, f"{below}└─ ", f"{below}   ")
                if index == last
                else (child, f"{below}├─ ", f"{below}│  ")
                for index, child in enumerate(tree.children)
            ]
            pending += reversed(branches)
        return "\n".join(lines)
