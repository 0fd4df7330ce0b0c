"""Text that has to fit a width in pixels."""

from soma import draw


def fitted(text: str, size: float, width: float, *, bold: bool = False) -> str:
    """Return `text` in one line of a width, with `…` for its middle where it is longer."""
    return draw.fitted(draw.printable(" ".join(text.split())), size, width, bold=bold)


def lines_of(text: str, size: float, width: float) -> list[str]:
    """Return `text` as lines of a width; a longer word is shortened."""
    lines: list[str] = []
    for word in draw.printable(" ".join(text.split())).split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and draw.text_width(longer, size) <= width:
            lines[-1] = longer
        else:
            lines.append(fitted(word, size, width))
    return lines
