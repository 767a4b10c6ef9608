import { onLostOutput, printError } from "./display/output.ts";

/** Commands that continue when their output is no longer read, because they are run for something else. */
const working: ReadonlySet<string | undefined> = new Set([
  ...["up", "run", "record", "replay", "import", "erase", "workspace", "rebuild", "backup", "restore", "new-epoch"],
  ...["token", "sql-role", "login", "logout", "context"],
]);

/** What happens when stdout can't be written: no command ends in the middle of its work. */
export function handleLostOutput(): void {
  const isWork = working.has(process.argv[2]);
  const lost = (error: NodeJS.ErrnoException) => {
    // A reader such as `head` has seen enough.
    if (error.code === "EPIPE") return isWork ? undefined : process.exit(0);
    printError(`tapedeck: the output can't be written: ${error.message}.`);
    process.exitCode = 1;
    if (!isWork) process.exit();
  };
  onLostOutput(lost);
}
