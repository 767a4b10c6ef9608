import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { migrated } from "@tapedeck/query/testing/migrated";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { until } from "@tapedeck/shared/testing/until";
import { expect, inject, it } from "vitest";

it.each(["ingest", "query", "gateway"] as const)(
  "%s starts, runs and stops where its log lines can't be written",
  async (name) => {
    await using nats = await startTestNats();
    await using database = await freshDatabase(migrated);
    const full = openSync("/dev/full", "w");
    const main = fileURLToPath(new URL(`../../services/${name}/src/main.ts`, import.meta.url));
    const child = spawn(process.execPath, [main], {
      stdio: ["ignore", full, full, "ipc"],
      env: {
        ...process.env,
        TAPEDECK_NATS_URL: nats.url,
        TAPEDECK_POSTGRES_URL: database.url,
        TAPEDECK_SERVICES_KEY: "test-key",
        TAPEDECK_LOG_LEVEL: "trace",
        // Each failed dial is a line.
        TAPEDECK_SOURCES: JSON.stringify([{ developer: "alice", project: "shop", address: "127.0.0.1:9" }]),
        TAPEDECK_INGEST_SPILL_DIR: await mkdtemp(join(inject("serversFolder"), "spill-")),
        ...Object.fromEntries(
          ["INGEST_GRPC", "INGEST_HEALTH", "QUERY_GRPC", "QUERY_HEALTH", "GATEWAY_GRPC", "GATEWAY_HTTP"].map((port) => [
            `TAPEDECK_${port}_PORT`,
            "0",
          ]),
        ),
      },
    });
    closeSync(full);
    const exited = once(child, "exit");
    const first = await Promise.race([once(child, "message"), exited]);
    expect(first[0]).toMatchObject({ type: "ready" });
    const { addresses } = first[0] as { readonly addresses: Readonly<Record<string, string>> };
    if (name !== "gateway")
      await until(async () => (await fetch(`http://${addresses.health}/readyz`)).ok, { message: "it to be ready" });
    child.kill("SIGTERM");
    expect((await exited)[0]).toBe(0);
  },
);
