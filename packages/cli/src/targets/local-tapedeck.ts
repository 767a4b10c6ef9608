import { existsSync } from "node:fs";
import { loadSettingsFile, settingsReader } from "@tapedeck/shared/service/settings";

/** The Tapedeck of this machine, on the ports and with the TLS that the settings here give it. */
export function localTapedeck(env: NodeJS.ProcessEnv): { readonly url: string; readonly grpcPort: number } {
  const path = env.TAPEDECK_CONFIG || "tapedeck.yaml";
  const read = settingsReader({ env, file: existsSync(path) ? loadSettingsFile(path) : undefined });
  const isTls = read.string("tls.cert", undefined) !== undefined;
  const [hostName = "localhost"] = read.list("gateway.hosts", []);
  const host = isTls ? `https://${hostName}` : "http://127.0.0.1";
  return {
    url: `${host}:${read.port("gateway.http.port", 7052) || 7052}`,
    grpcPort: read.port("gateway.grpc.port", 7051) || 7051,
  };
}
