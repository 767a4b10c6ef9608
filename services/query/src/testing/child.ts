import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Stage } from "./stage.ts";
import { servicesKey } from "./stage.ts";

/** Starts query as a process of its own, which a test can kill. */
export function spawnQuery({ config }: Stage): { readonly process: ChildProcess; kill(): Promise<void> } {
  const child = spawn(process.execPath, [fileURLToPath(new URL("../main.ts", import.meta.url))], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      TAPEDECK_LOG_LEVEL: "error",
      TAPEDECK_QUERY_GRPC_PORT: "0",
      TAPEDECK_QUERY_HEALTH_PORT: "0",
      TAPEDECK_NATS_URL: config.nats.url,
      TAPEDECK_POSTGRES_URL: config.databaseUrl,
      TAPEDECK_SERVICES_KEY: servicesKey,
      TAPEDECK_QUERY_BATCH_EVENTS: String(config.batchEvents),
    },
  });
  return {
    process: child,
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, "exit");
      child.kill("SIGKILL");
      await exited;
    },
  };
}
