"""completion: the script that completes commands and options in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from tablegate.gateway.command_line.options import SectionedCommand


@click.command(cls=SectionedCommand)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes commands and options in a shell.

    \b
    bash   eval "$(tablegate completion bash)"      in ~/.bashrc
    zsh    eval "$(tablegate completion zsh)"       in ~/.zshrc, after compinit
    fish   tablegate completion fish | source       in ~/.config/fish/config.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(context.find_root().command, {}, "tablegate", "_TABLEGATE_COMPLETE").source())
