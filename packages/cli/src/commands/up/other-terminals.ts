import { resolve } from "node:path";
import { ownValue } from "@tapedeck/shared/own-value";
import { envName } from "@tapedeck/shared/service/settings";
import type { UpSettings } from "../../local-server/settings.ts";

/** Settings by which a command finds the Tapedeck of its machine (`localTapedeck`). */
const found = ["tls.cert", "gateway.hosts", "gateway.http.port", "gateway.grpc.port"].map(envName);

/** Variables without which a command in another terminal, in the same folder, would not find this Tapedeck. */
export function variablesToFind(
  { dataDir, configFile }: Pick<UpSettings, "dataDir" | "configFile">,
  env: NodeJS.ProcessEnv,
): Readonly<Record<string, string>> {
  return Object.fromEntries([
    ...(dataDir === resolve(".tapedeck") ? [] : [["TAPEDECK_DATA", dataDir]]),
    ...(configFile === undefined || configFile === resolve("tapedeck.yaml") ? [] : [["TAPEDECK_CONFIG", configFile]]),
    ...found.map((name) => [name, ownValue(env, name)]).filter(([, value]) => value),
  ]);
}
