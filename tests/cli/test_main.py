"""The command `soma`, as a user types it."""

import subprocess
import sys

import pytest
from click.testing import CliRunner

import soma
from soma.cli import main


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_says_what_it_is_for(flag: str) -> None:
    """One sentence, the options, and where to read on."""
    result = CliRunner().invoke(main, [flag], prog_name="soma")

    assert result.exit_code == 0
    assert result.output.startswith("Usage: soma [OPTIONS]")
    for text in ("Compose preprocessing and PyTorch modules", "--version", "README.md"):
        assert text in result.output


@pytest.mark.parametrize("group", [[], ["cache"]])
def test_every_command_is_told_in_a_whole_line(group: list[str]) -> None:
    """At 80 columns no summary of a command is cut off."""
    result = CliRunner().invoke(main, [*group, "--help"], env={"COLUMNS": "80"})

    assert "Commands:" in result.output
    assert "..." not in result.output.split("Commands:")[1]


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_version_is_that_of_the_package(flag: str) -> None:
    """One line, for bug reports."""
    result = CliRunner().invoke(main, [flag])

    assert (result.exit_code, result.output) == (0, f"soma, version {soma.__version__}\n")


def test_an_unknown_command_is_named() -> None:
    """Exit code 2, as for every wrong use of a command line."""
    result = CliRunner().invoke(main, ["repot"])

    assert result.exit_code == 2
    assert "repot" in result.output


def test_an_unknown_option_is_named() -> None:
    """The same."""
    result = CliRunner().invoke(main, ["--colour"])

    assert result.exit_code == 2
    assert "--colour" in result.output


@pytest.mark.parametrize(("argument", "code"), [("--help", 0), ("--version", 0), ("repot", 2)])
def test_python_dash_m_is_the_same_command(argument: str, code: int) -> None:
    """`python -m soma` works where the command is not on the path."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "soma", argument],
        capture_output=True,
        text=True,
        check=False,
    )
    in_process = CliRunner().invoke(main, [argument])

    assert done.returncode == in_process.exit_code == code
    assert bool(done.stdout) == (code == 0)
    assert "Traceback" not in done.stderr


def test_the_command_is_light() -> None:
    """`soma --help` loads neither torch nor NumPy."""
    code = (
        "import sys\nfrom soma.cli import main\n"
        "main(['--help'], standalone_mode=False)\n"
        "assert not {'numpy', 'torch', 'rich'} & set(sys.modules)"
    )

    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
