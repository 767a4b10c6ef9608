import type { Command } from "commander";
import { auditCommand } from "./audit/command.ts";
import { backupCommand } from "./backup/command.ts";
import { compareCommand } from "./compare/command.ts";
import { contextCommand } from "./context/command.ts";
import { doctorCommand } from "./doctor/command.ts";
import { eraseCommand } from "./erase/command.ts";
import { exportCommand } from "./export/command.ts";
import { importCommand } from "./import/command.ts";
import { loginCommand, logoutCommand } from "./login/command.ts";
import { logsCommand } from "./logs/command.ts";
import { loopsCommand } from "./loops/command.ts";
import { newEpochCommand } from "./new-epoch/command.ts";
import { openCommand } from "./open/command.ts";
import { rebuildCommand } from "./rebuild/command.ts";
import { recordCommand } from "./record/command.ts";
import { replayCommand } from "./replay/command.ts";
import { restoreCommand } from "./restore/command.ts";
import { runCommand } from "./run/command.ts";
import { sessionsCommand } from "./sessions/command.ts";
import { shardCommand } from "./shard/command.ts";
import { sqlRoleCommand } from "./sql-role/command.ts";
import { stateCommand } from "./state/command.ts";
import { statsCommand } from "./stats/command.ts";
import { statusCommand } from "./status/command.ts";
import { tailCommand } from "./tail/command.ts";
import { tokenCommand } from "./token/command.ts";
import { upCommand } from "./up/command.ts";
import { waitCommand } from "./wait/command.ts";
import { watchCommand } from "./watch/command.ts";
import { whyCommand } from "./why/command.ts";

/** The order of `tapedeck --help`. `completion` is absent because it is left out while a shell completes. */
export const allCommands = (): readonly Command[] => [
  upCommand(),
  runCommand(),
  recordCommand(),
  openCommand(),
  statusCommand(),
  watchCommand(),
  tailCommand(),
  logsCommand(),
  waitCommand(),
  stateCommand(),
  sessionsCommand(),
  loopsCommand(),
  whyCommand(),
  compareCommand(),
  statsCommand(),
  exportCommand(),
  replayCommand(),
  importCommand(),
  eraseCommand(),
  rebuildCommand(),
  backupCommand(),
  restoreCommand(),
  newEpochCommand(),
  tokenCommand(),
  auditCommand(),
  shardCommand(),
  sqlRoleCommand(),
  loginCommand(),
  logoutCommand(),
  contextCommand(),
  doctorCommand(),
];
