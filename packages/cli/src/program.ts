import { inspect } from "node:util";
import { surviveDiscardedSockets } from "@tapedeck/shared/service/discarded-sockets";
import { version } from "@tapedeck/shared/version";
import { Command } from "commander";
import { commandsFor } from "./commands/all.ts";
import { cleaned, printError, write } from "./display/output.ts";
import { handleLostOutput } from "./lost-output.ts";

/** A shell asks for words: `complete -- <words>`. It describes the `completion` command by itself. */
const isCompleting = process.argv[2] === "complete" && process.argv[3] === "--";

const program = new Command("tapedeck")
  .description("Records what development tools do in one durable log, and plays it back through their own APIs.")
  .version(version)
  .enablePositionalOptions()
  .configureHelp({ showGlobalOptions: false })
  .showHelpAfterError("(see --help)")
  .configureOutput({
    writeOut: (text) => write(text),
    outputError: (text, writeError) => writeError(cleaned(withSource(text).replace(/^error: /, "tapedeck: "))),
  });

/** A source is named by a flag, and easily taken for an argument. */
function withSource(text: string): string {
  const [, name, source] = /^error: too many arguments for '(.+)'\. .*: ([^\s/,]+\/[^\s,]+)\.$/m.exec(text) ?? [];
  const hasFlag = commandNamed(program, name)?.options.some(({ short }) => short === "-s");
  return hasFlag ? `${text.trimEnd()}\n(Did you mean -s ${source}?)\n` : text;
}

function commandNamed(parent: Command, name: string | undefined): Command | undefined {
  return parent.commands.map((one) => (one.name() === name ? one : commandNamed(one, name))).find(Boolean);
}

async function addCommands(): Promise<void> {
  for (const command of await commandsFor(process.argv[2])) {
    if (!(isCompleting && command.name() === "completion")) program.addCommand(command);
  }
  shareSettings(program);
}

/** Commands that were made apart have settings of their own. */
function shareSettings(parent: Command): void {
  for (const command of parent.commands) {
    command.copyInheritedSettings(parent);
    shareSettings(command);
  }
}

surviveDiscardedSockets(
  () => {},
  (error) => {
    printError(inspect(error));
    process.exit(1);
  },
);

/** Runs the command that the user has typed. A function, because a one-file executable can't wait at its top level. */
export async function runProgram(): Promise<void> {
  handleLostOutput();
  try {
    await addCommands();
    if (isCompleting)
      await (await import("./commands/completion/run.ts")).completeWords(program, process.argv.slice(4));
    else await program.parseAsync();
  } catch (error) {
    const { sentenceOf } = await import("./command-error.ts");
    const sentence = sentenceOf(error);
    const isWhole = sentence.includes("\n") || /[.?!]$/.test(sentence);
    printError(`tapedeck: ${sentence}${isWhole ? "" : "."}`);
    if (process.env.TAPEDECK_LOG_LEVEL === "debug" && error instanceof Error) printError(error.stack ?? "");
    process.exitCode = 1;
  }
}
