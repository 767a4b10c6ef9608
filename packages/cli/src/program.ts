import { surviveDiscardedSockets } from "@tapedeck/shared/service/discarded-sockets";
import { Command } from "commander";
import { backupCommand } from "./commands/backup.ts";
import { eraseCommand } from "./commands/erase.ts";
import { exportCommand } from "./commands/export.ts";
import { importCommand } from "./commands/import.ts";
import { rebuildCommand } from "./commands/rebuild.ts";
import { recordCommand } from "./commands/record.ts";
import { replayCommand } from "./commands/replay.ts";
import { restoreCommand } from "./commands/restore.ts";
import { runCommand } from "./commands/run.ts";
import { sessionsCommand } from "./commands/sessions.ts";
import { stateCommand } from "./commands/state.ts";
import { statsCommand } from "./commands/stats.ts";
import { statusCommand } from "./commands/status.ts";
import { tailCommand } from "./commands/tail.ts";
import { tokenCommand } from "./commands/token.ts";
import { upCommand } from "./commands/up.ts";

const program = new Command("tapedeck")
  .description("Records what development tools do in one durable log, and plays it back through their own APIs.")
  .version("0.1.0")
  .enablePositionalOptions()
  .configureHelp({ showGlobalOptions: false })
  .showHelpAfterError("(--help says more)")
  .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, "tapedeck: ")) });

for (const command of [
  upCommand(),
  runCommand(),
  recordCommand(),
  statusCommand(),
  tailCommand(),
  stateCommand(),
  sessionsCommand(),
  statsCommand(),
  exportCommand(),
  replayCommand(),
  importCommand(),
  eraseCommand(),
  rebuildCommand(),
  backupCommand(),
  restoreCommand(),
  tokenCommand(),
]) {
  program.addCommand(command);
}
sayAlike(program);

/** Commands that were made apart have settings of their own. */
function sayAlike(parent: Command): void {
  for (const command of parent.commands) {
    command.copyInheritedSettings(parent);
    sayAlike(command);
  }
}

/** A reader such as `head` has seen enough. */
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0);
});
/** The terminal is gone: there is nobody to tell. */
process.stderr.on("error", () => {});
surviveDiscardedSockets(
  () => {},
  (error) => {
    console.error(error);
    process.exit(1);
  },
);

try {
  await program.parseAsync();
} catch (error) {
  const { sentenceOf } = await import("./command-error.ts");
  const sentence = sentenceOf(error);
  const isWhole = sentence.includes("\n") || /[.?!]$/.test(sentence);
  process.stderr.write(`tapedeck: ${sentence}${isWhole ? "" : "."}\n`);
  if (process.env.TAPEDECK_LOG_LEVEL === "debug" && error instanceof Error) process.stderr.write(`${error.stack}\n`);
  process.exitCode = 1;
}
