"""Prompts with fields: `{input}` is the whole value, `{name}` one part of a mapping."""

from collections.abc import Mapping
from string import Formatter

from soma.errors import InvalidInput, did_you_mean, listing
from soma.flow._shown import as_text, sendable

INPUT = "input"


class Prompt:
    """A text with fields in braces, which are names and nothing more.

    No field reaches into an object: `{input.name}` is the part named `input.name` of a mapping.
    Texts that are put in are not looked at again. `{{` and `}}` stand for braces.

    >>> Prompt("Compare {left} and {right}.").fill({"left": 1, "right": [2, 3]})
    'Compare 1 and [2, 3].'

    Raises:
        InvalidInput: a brace that opens or closes nothing, or a field that is no plain name.
    """

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise InvalidInput(
                f"a prompt is a text; got {text!r:.80}. Write `{{input}}` where the value belongs."
            )
        self._pieces: list[tuple[str, str | None]] = []
        try:
            for literal, field, form, conversion in Formatter().parse(text):
                if field is not None and (form or conversion or not field.strip()):
                    raise ValueError(f"the field {field!r} is empty or says how to be shown")
                self._pieces.append((literal, field))
        except ValueError as error:
            raise InvalidInput(
                f"the prompt {text!r:.200} cannot be read: {error}. Fields are names, as in "
                "`{input}`; write `{{` and `}}` for braces."
            ) from error

    @property
    def fields(self) -> frozenset[str]:
        """The names that it puts in."""
        return frozenset(field for _, field in self._pieces if field is not None)

    def fill(self, value: object) -> str:
        """Return the text with a value in its fields.

        Raises:
            InvalidInput: a field names nothing.
        """
        filled = "".join(
            literal if field is None else literal + self._part(field, value)
            for literal, field in self._pieces
        )
        return sendable(filled)

    def _part(self, field: str, value: object) -> str:
        if field == INPUT:
            return as_text(value)
        if isinstance(value, Mapping) and field in value:
            return as_text(value[field])
        known = [INPUT, *(map(str, value) if isinstance(value, Mapping) else ())]
        raise InvalidInput(
            f"a prompt puts in `{field}`, and got a value of type `{type(value).__name__}`, which "
            f"has {listing(known)}.{did_you_mean(field, known)} Write `{{{{` for a brace that is "
            "no field."
        )
