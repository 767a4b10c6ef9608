import { existsSync } from "node:fs";
import { loadSettingsFile, type SettingsReader, settingsReader } from "@tapedeck/shared/service/settings";
import type { RunningUp } from "../up/lock.ts";

/** The settings of the Tapedeck that runs here, else those of this folder. */
export function settingsHere(running: RunningUp | undefined, env: NodeJS.ProcessEnv): SettingsReader {
  const defaultFile = existsSync("tapedeck.yaml") ? "tapedeck.yaml" : undefined;
  const path = env.TAPEDECK_CONFIG || (running === undefined ? defaultFile : running.configFile);
  return settingsReader({ env, file: path === undefined ? undefined : loadSettingsFile(path) });
}
