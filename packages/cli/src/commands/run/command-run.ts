import type { CommandRun } from "@tapedeck/proto/tapedeck/v1/event";
import { timestampNow } from "@tapedeck/shared/time/timestamp";
import type { TapItem } from "@tapedeck/tap/tap";
import { ulid } from "ulid";
import type { CommandExit } from "./command-process.ts";

const maxLineLength = 8_192;

/** What is known of a command whatever was seen of its upstream. Call this when it has ended. */
export function commandRun(
  command: readonly string[],
  started: CommandRun["started_at"],
  exit: CommandExit,
): CommandRun {
  return {
    command_line: command.map(quoted).join(" ").slice(0, maxLineLength).toWellFormed(),
    started_at: started,
    ended_at: timestampNow(),
    exit_code: exit.code ?? undefined,
    signal: exit.signal ?? "",
  };
}

/** What is known of a command that starts the upstream's processes; `exit`: undefined while it runs. */
export function wrapperRun(
  command: readonly string[],
  started: CommandRun["started_at"],
  exit: CommandExit | undefined,
): CommandRun {
  const run = commandRun(command, started, exit ?? { code: null, signal: null });
  return { ...run, ended_at: exit && run.ended_at, wrapper: true };
}

/**
 * A session for a command of whose upstream nothing was seen. `identity`: the upstream's, where the tap would have
 * reported one.
 */
export function sessionOfCommand(run: CommandRun, identity: string | undefined): readonly TapItem[] {
  const connection = ulid();
  const { started_at, ended_at, exit_code } = run;
  const identified: TapItem[] =
    identity === undefined
      ? []
      : [{ connection, at: started_at, what: { $case: "identified", value: { identity, version: "" } } }];
  const reason = "the command has ended";
  return [
    { connection, at: started_at, what: { $case: "dialled", value: { address: "", channels: [] } } },
    ...identified,
    {
      connection,
      at: ended_at,
      what: { $case: "closed", value: { reason, process_ended: true, exit_code, command_run: run } },
    },
  ];
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
