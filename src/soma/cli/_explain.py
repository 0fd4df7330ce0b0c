"""`soma explain FLAG`: what a flag of the health audit means."""

import click

from soma.cli._show import Form, show


@click.command()
@click.argument("flag", required=False)
@click.option("--plain", "form", flag_value="plain", help="Print lines without a frame.")
@click.option("--json", "form", flag_value="json", help="Print JSON.")
def explain(flag: str | None, form: Form) -> None:
    """Say what FLAG means, by which rule, and what helps.

    Without FLAG, list all flags.
    """
    from soma.errors import UnknownFlag
    from soma.health import explain, flags

    if flag is None:
        known = [explain(name) for name in flags()]
        rows = [(one.flag, one.title) for one in known]
        show(form, [one.as_json() for one in known], rows, names=("flag", "what it says"))
        return
    try:
        found = explain(flag)
    except UnknownFlag as error:
        raise click.BadParameter(str(error), param_hint="FLAG") from None
    show(form, found.as_json(), [(line,) for line in str(found).splitlines()])
