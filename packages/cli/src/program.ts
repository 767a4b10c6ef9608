import { surviveDiscardedSockets } from "@tapedeck/shared/service/process/discarded-sockets";
import { version } from "@tapedeck/shared/version";
import { Command, Option } from "commander";
import { commandsFor } from "./commands/all.ts";
import { fatalError } from "./commands/fatal-error.ts";
import { cleaned, printError, write } from "./display/output.ts";
import { handleLostOutput } from "./lost-output.ts";
import { didYouMean, wordsMeant } from "./mistakes.ts";

/** A shell asks for words: `complete -- <words>`. It describes the `completion` command by itself. */
const isCompleting = process.argv[2] === "complete" && process.argv[3] === "--";

const program = new Command("tapedeck")
  .description("Records what development tools do in one durable log, and plays it back through their own APIs.")
  .version(version)
  .enablePositionalOptions()
  .configureHelp({ showGlobalOptions: false })
  .showHelpAfterError("(see --help)")
  .showSuggestionAfterError(false)
  .addHelpText("after", "\nKinds of events: tapedeck help kinds")
  .configureOutput({
    writeOut: (text) => write(text),
    outputError: (text, writeError) =>
      writeError(cleaned(`${text.trimEnd().replace(/^error: /, "tapedeck: ")}\n${suggestion()}`)),
  });

/** A line that works, for who has mistyped one, or knows another tool. */
function suggestion(): string {
  const words = wordsMeant(program, process.argv.slice(2));
  return words === undefined ? "" : `${didYouMean(words)}\n`;
}

async function addCommands(): Promise<void> {
  for (const command of await commandsFor(process.argv[2])) {
    if (!(isCompleting && command.name() === "completion")) program.addCommand(command);
  }
  completeCommands(program);
}

function completeCommands(parent: Command): void {
  for (const command of parent.commands) {
    // Commands that were made apart have settings of their own.
    command.copyInheritedSettings(parent);
    addOutputFormat(command);
    completeCommands(command);
  }
}

/** `-o json` is how other tools write `--json`. */
function addOutputFormat(command: Command): void {
  const has = (name: string) => command.options.some((option) => option.name() === name);
  if (!has("json") || has("output")) return;
  command.addOption(new Option("-o, --output <format>").choices(["json"]).hideHelp());
  command.on("option:output", () => command.setOptionValue("json", true));
}

surviveDiscardedSockets(() => {}, fatalError);

/** Runs the command that the user has typed. A function, because a one-file executable can't wait at its top level. */
export async function runProgram(): Promise<void> {
  handleLostOutput();
  try {
    await addCommands();
    if (isCompleting)
      await (await import("./commands/completion/run.ts")).completeWords(program, process.argv.slice(4));
    else if (process.argv.length === 2) program.outputHelp();
    else if (process.argv[2] === "help" && process.argv[3] === "kinds")
      (await import("./commands/help-kinds.ts")).printKinds(program.createHelp());
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
