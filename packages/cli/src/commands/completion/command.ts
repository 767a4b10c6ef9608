import { Argument, Command } from "commander";
import type { Shell } from "./run.ts";

const shells: readonly Shell[] = ["bash", "zsh", "fish"];

export const completionCommand = () =>
  new Command("completion")
    .summary("print the completion script of a shell")
    .description(`Prints a script that lets a shell complete commands, flags and names of sources. The server that commands use \
gives the names, if it answers within half a second.`)
    .addArgument(new Argument("<shell>", "the shell").choices(shells))
    .addHelpText(
      "after",
      `
Example:
  source <(tapedeck completion bash)                                # in ~/.bashrc; needs the package bash-completion
  tapedeck completion zsh > ~/.zsh/completions/_tapedeck            # a folder in fpath
  tapedeck completion fish > ~/.config/fish/completions/tapedeck.fish`,
    )
    .action(async (shell: Shell) => (await import("./run.ts")).writeCompletion(shell));
