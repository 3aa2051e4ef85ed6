"""`nodewise completion`: what a shell needs to complete the words of `nodewise`."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

NAME = "nodewise"
SHELLS: dict[str, type[ShellComplete]] = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}
VARIABLE = "_NODEWISE_COMPLETE"  # where click looks whether it is asked to complete


@click.command()
@click.argument("shell", type=click.Choice(list(SHELLS)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that lets a shell complete commands and options; install it as the example for your shell shows.

    \b
    Examples:
      nodewise completion bash > ~/.nodewise.bash && echo '. ~/.nodewise.bash' >> ~/.bashrc
      nodewise completion zsh > ~/.nodewise.zsh && echo '. ~/.nodewise.zsh' >> ~/.zshrc
      nodewise completion fish > ~/.config/fish/completions/nodewise.fish
    """
    click.echo(SHELLS[shell](ctx.find_root().command, {}, NAME, VARIABLE).source())
