"""The entry point `omnigraph`: the root command, and exceptions as exit codes.

Owns the exit codes and the shape of an error on stderr. A verb raises; only
this module catches.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from contextlib import suppress
from itertools import takewhile

import click

from omnigraph.cli.command import LazyGroup, rewrite
from omnigraph.cli.options.readable import readable
from omnigraph.cli.render.output import (
    OutputLost,
    abandon_stdout,
    begin_output,
    diagnose,
    write_failure,
    write_note,
    write_text,
)
from omnigraph.cli.render.unforeseen import unforeseen
from omnigraph.cli.verbs import VERBS
from omnigraph.errors import (
    LanguageError,
    OmniGraphError,
    PreconditionFailed,
    SchemaChangeRefused,
)

EXIT_ERROR = 1
EXIT_USAGE = 2
EXIT_PRECONDITION = 4
EXIT_OUTPUT_LOST = 5
EXIT_INTERRUPTED = 130
YOUNG = 50_000
"""So many new objects before a process looks for garbage among them."""


def _print_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:  # noqa: ARG001, FBT001 - click calls it
    if value:
        from omnigraph.cli.verbs.maintain.version import version_text

        write_text(version_text())
        ctx.exit()


@click.group(
    "omnigraph",
    cls=LazyGroup,
    package="omnigraph.cli.verbs",
    verbs=VERBS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "-v",
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version and exit.",
)
def cli() -> None:
    """OmniGraph: a lakehouse graph database.

    Global options may stand before or after the command.
    """


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    if argv is not None:
        return _command(argv)
    # Most of what a process makes at first are modules, in which there is no garbage: neither when
    # they are made nor when they end.
    gc.set_threshold(YOUNG)
    try:
        return _command(sys.argv[1:])
    finally:
        gc.freeze()


def _command(given: Sequence[str]) -> int:
    begin_output()
    try:
        code = _run(given)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read has seen enough, such as `head`.
        abandon_stdout()
        return 0
    except BaseException as error:
        if isinstance(error, SystemExit):
            raise
        with suppress(OSError):  # stderr may be gone as well; the code says it
            diagnose("error", unforeseen(error))
        if _wants_json(given):
            write_failure(error, unforeseen(error))
            with suppress(OSError):
                sys.stdout.flush()
        abandon_stdout()
        return EXIT_ERROR
    return code


def _wants_json(argv: Sequence[str]) -> bool:
    """Whether a program reads the result."""
    options = takewhile(lambda word: word != "--", argv)
    return any(word == "--json" for word in options)


def _run(argv: Sequence[str]) -> int:
    streams = sys.stdout, sys.stderr
    try:
        args, warning = rewrite(readable(argv))
        if warning is not None:
            diagnose("warning", warning)
        code = cli.main(args=args, prog_name="omnigraph", standalone_mode=False)
    except SystemExit:
        if (sys.stdout, sys.stderr) == streams:
            raise
        # click mutes both and ends the process when a pipe is closed.
        sys.stdout, sys.stderr = streams
        raise BrokenPipeError from None
    except click.exceptions.NoArgsIsHelpError as error:
        write_note(error.format_message())
        return EXIT_USAGE
    except click.Abort as abort:
        return EXIT_INTERRUPTED if isinstance(abort.__cause__, KeyboardInterrupt) else EXIT_ERROR
    except OutputLost as lost:
        return _report_lost(lost)
    except BrokenPipeError:
        raise
    except (click.ClickException, OmniGraphError, OSError) as error:
        exit_code = _report(error)
        if _wants_json(argv):
            write_failure(error, _message(error))
        return exit_code
    return code if isinstance(code, int) else 0


def _report_lost(lost: OutputLost) -> int:
    with suppress(OSError):  # stderr may be the same closed pipe; the code says it as well
        diagnose("error", str(lost))
    abandon_stdout()
    return EXIT_OUTPUT_LOST


def _report(error: click.ClickException | OmniGraphError | OSError) -> int:
    if isinstance(error, click.ClickException):
        return _report_click(error)
    if isinstance(error, LanguageError | SchemaChangeRefused):
        # These bring their own headings, one for every mistake.
        write_note(error.report)
    else:
        diagnose("error", str(error))
    return EXIT_PRECONDITION if isinstance(error, PreconditionFailed) else EXIT_ERROR


def _message(error: click.ClickException | OmniGraphError | OSError) -> str:
    return error.format_message() if isinstance(error, click.ClickException) else str(error)


def _report_click(error: click.ClickException) -> int:
    for line in error.format_message().splitlines():
        diagnose("error", line)
    if isinstance(error, click.UsageError) and error.ctx is not None:
        write_note(error.ctx.get_usage())
        write_note(f"Try `{error.ctx.command_path} --help`.")
    return error.exit_code
