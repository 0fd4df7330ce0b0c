"""`soma worker`: run placed filters for programs on this machine, or list who does."""

import signal
from typing import TYPE_CHECKING

import click
import msgspec

from soma.cli._show import Form, Refused, Row, form_options, show
from soma.errors import SomaError

if TYPE_CHECKING:
    from soma.distributed import Meeting


@click.command()
@click.option("--name", help="What graphs call it: `filter.at(NAME)`.")
@click.option("--device", default="cpu", show_default=True, help="Where its modules live.")
@click.option(
    "--address", metavar="HOST:PORT", help="Let programs on other machines in, that know its token."
)
@click.option("--folder", metavar="DIR", help="Where programs find it; $SOMA_WORKERS_DIR.")
@click.option("--list", "listing", is_flag=True, help="Show the workers that wait there.")
@form_options
def worker(
    name: str | None,
    device: str,
    address: str | None,
    folder: str | None,
    listing: bool,
    form: Form,
) -> None:
    """Wait for programs, and run the filters that they place here.

    Whoever may write to the folder can have a worker run anything: it is made for you alone.
    With an address, so can whoever is on its network while a program works.
    """
    from soma.distributed import Meeting, serve

    meeting = Meeting(folder)
    if listing:
        _show(meeting, form)
        return
    if name is None:
        raise Refused("a worker needs a name: `soma worker --name worker1`.")
    # Ended as by Ctrl-C, so that no process of a session stays behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        serve(
            name,
            device=device,
            address=address,
            meeting=meeting,
            told=lambda line: click.echo(line),
        )
    except SomaError as error:
        raise Refused(str(error)) from error
    except KeyboardInterrupt:
        click.echo(f"worker {name} ends")


def _show(meeting: "Meeting", form: Form) -> None:
    from soma.viz import moment

    cards = meeting.cards()
    rows: list[Row] = [
        (card.name, card.device, str(card.pid), card.host, moment(card.began), card.versions.torch)
        for card in cards
    ]
    show(
        form,
        msgspec.to_builtins(cards),
        rows,
        names=("name", "device", "process", "host", "since", "torch"),
        otherwise=f"no worker waits in {meeting.folder}.",
    )
