import { Argument, Command } from "commander";
import type { Shell } from "./run.ts";

const shells: readonly Shell[] = ["bash", "zsh", "fish"];

export const completionCommand = () =>
  new Command("completion")
    .summary("write the shell's part of completion")
    .description(
      `Writes what makes a shell complete commands, flags and names of sources. The names are asked for at the Tapedeck that \
commands go to, as long as it answers within half a second.`,
    )
    .addArgument(new Argument("<shell>", "which one").choices(shells))
    .addHelpText(
      "after",
      `
Example:
  source <(tapedeck completion bash)                                # in ~/.bashrc
  tapedeck completion zsh > ~/.zsh/completions/_tapedeck            # a folder in fpath
  tapedeck completion fish > ~/.config/fish/completions/tapedeck.fish`,
    )
    .action(async (shell: Shell) => (await import("./run.ts")).writeCompletion(shell));
