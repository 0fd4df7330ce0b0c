"""Text that has to fit a width in pixels."""

from soma.draw import fitted, one_line, text_width


def line_of(text: str, size: float, width: float, *, bold: bool = False) -> str:
    """Return `text` as one line of a width, with `…` for its middle where it is longer."""
    return fitted(one_line(text), size, width, bold=bold)


def lines_of(text: str, size: float, width: float) -> list[str]:
    """Return `text` as lines of a width; a longer word is shortened."""
    lines: list[str] = []
    for word in one_line(text).split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, size) <= width:
            lines[-1] = longer
        else:
            lines.append(line_of(word, size, width))
    return lines
