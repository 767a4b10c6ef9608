import { fileURLToPath } from "node:url";
import { type ServerProcess, spawnServer } from "@tapedeck/infra/local/server-process";
import { ownPort } from "@tapedeck/shared/testing/own-port";
import { until } from "@tapedeck/shared/testing/until";
import type { ServiceProcess } from "../faults/service-process.ts";

const config = fileURLToPath(new URL("../../infra/haproxy/haproxy.cfg", import.meta.url));

/** HAProxy's addresses, "host:port": fixed before it runs, because gateways need `query` and `ingest`. */
export type Frontends = Readonly<Record<"http" | "grpc" | "query" | "ingest", string>>;

/** The ports follow the clients' convention: gRPC one below HTTP. */
export async function frontends(): Promise<Frontends> {
  const at = async () => `127.0.0.1:${await ownPort()}`;
  return { http: await at(), grpc: await at(), query: await at(), ingest: await at() };
}

export type Balanced = Readonly<Record<"gateway" | "query" | "ingest", readonly ServiceProcess[]>>;

/** HAProxy with the configuration that docs/cluster.md recommends. `scheme`: that of the gateways. */
export async function startBalancer(
  logFile: string,
  { at, scheme }: { readonly at: Frontends; readonly scheme: "http" | "https" },
  services: Balanced,
): Promise<AsyncDisposable> {
  const env: Record<string, string> = scheme === "https" ? { TAPEDECK_GATEWAY_TLS: "yes" } : {};
  for (const [name, address] of Object.entries(at)) env[`TAPEDECK_BIND_${name.toUpperCase()}`] = address;
  for (const [service, processes] of Object.entries(services)) {
    for (const [index, { addresses }] of processes.entries()) {
      const name = `TAPEDECK_${service.toUpperCase()}_${index + 1}`;
      env[`${name}_GRPC`] = addresses.grpc ?? "";
      env[`${name}_HTTP`] = addresses.http ?? "";
      env[name] = addresses.grpc ?? "";
      env[`${name}_HEALTH`] = addresses.health ?? "";
    }
  }
  const server: ServerProcess = await spawnServer({
    command: "haproxy",
    args: ["-db", "-f", config],
    mark: config,
    env,
    logFile,
    stopSignal: "SIGTERM",
  }).catch((cause: unknown) => {
    throw new Error("the cluster's test needs haproxy (Debian: apt-get install haproxy)", { cause });
  });
  await until(async () => (await fetch(`${scheme}://${at.http}/healthz`)).ok, {
    message: "HAProxy to reach a gateway",
  });
  return { [Symbol.asyncDispose]: () => server.stop() };
}
