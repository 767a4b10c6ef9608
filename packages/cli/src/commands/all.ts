import { ownValue } from "@tapedeck/shared/own-value";
import type { Command } from "commander";

/**
 * Each is loaded when it is asked for, as all together take longer to load than many a command takes. The order is that of
 * `tapedeck --help`.
 */
const commands: Readonly<Record<string, () => Promise<Command>>> = {
  up: async () => (await import("./up/command.ts")).upCommand(),
  run: async () => (await import("./run/command.ts")).runCommand(),
  record: async () => (await import("./record/command.ts")).recordCommand(),
  open: async () => (await import("./open/command.ts")).openCommand(),
  status: async () => (await import("./status/command.ts")).statusCommand(),
  watch: async () => (await import("./watch/command.ts")).watchCommand(),
  tail: async () => (await import("./tail/command.ts")).tailCommand(),
  logs: async () => (await import("./logs/command.ts")).logsCommand(),
  wait: async () => (await import("./wait/command.ts")).waitCommand(),
  state: async () => (await import("./state/command.ts")).stateCommand(),
  sessions: async () => (await import("./sessions/command.ts")).sessionsCommand(),
  loops: async () => (await import("./loops/command.ts")).loopsCommand(),
  search: async () => (await import("./search/command.ts")).searchCommand(),
  why: async () => (await import("./why/command.ts")).whyCommand(),
  explain: async () => (await import("./explain/command.ts")).explainCommand(),
  compare: async () => (await import("./compare/command.ts")).compareCommand(),
  mcp: async () => (await import("./mcp/command.ts")).mcpCommand(),
  stats: async () => (await import("./stats/command.ts")).statsCommand(),
  export: async () => (await import("./export/command.ts")).exportCommand(),
  replay: async () => (await import("./replay/command.ts")).replayCommand(),
  import: async () => (await import("./import/command.ts")).importCommand(),
  erase: async () => (await import("./erase/command.ts")).eraseCommand(),
  sink: async () => (await import("./sink/command.ts")).sinkCommand(),
  workspace: async () => (await import("./workspace/command.ts")).workspaceCommand(),
  rebuild: async () => (await import("./rebuild/command.ts")).rebuildCommand(),
  backup: async () => (await import("./backup/command.ts")).backupCommand(),
  restore: async () => (await import("./restore/command.ts")).restoreCommand(),
  "new-epoch": async () => (await import("./new-epoch/command.ts")).newEpochCommand(),
  token: async () => (await import("./token/command.ts")).tokenCommand(),
  audit: async () => (await import("./audit/command.ts")).auditCommand(),
  "sql-role": async () => (await import("./sql-role/command.ts")).sqlRoleCommand(),
  login: async () => (await import("./login/command.ts")).loginCommand(),
  logout: async () => (await import("./login/command.ts")).logoutCommand(),
  context: async () => (await import("./context/command.ts")).contextCommand(),
  doctor: async () => (await import("./doctor/command.ts")).doctorCommand(),
  uninstall: async () => (await import("./uninstall/command.ts")).uninstallCommand(),
  completion: async () => (await import("./completion/command.ts")).completionCommand(),
};

export function allCommands(): Promise<readonly Command[]> {
  return Promise.all(Object.values(commands).map((load) => load()));
}

/** The one that the first word of a command line names; all where it names none, for what help and advice say. */
export async function commandsFor(word: string | undefined): Promise<readonly Command[]> {
  const load = word === undefined ? undefined : ownValue(commands, word);
  return load === undefined ? allCommands() : [await load()];
}
