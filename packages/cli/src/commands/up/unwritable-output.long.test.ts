import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, closeSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ownPort } from "@tapedeck/shared/testing/own-port";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { runningUp } from "../../local-server/lock.ts";

const main = fileURLToPath(new URL("../../../bin/tapedeck.mjs", import.meta.url));
const listeners = ["GATEWAY_GRPC", "GATEWAY_HTTP", "QUERY_GRPC", "QUERY_HEALTH", "INGEST_GRPC", "INGEST_HEALTH"];

it.each(["full", "closed"])("`tapedeck up` and its services run on where nothing can be printed: %s", async (what) => {
  const cwd = mkdtempSync(join(tmpdir(), "tapedeck-mute-"));
  chmodSync(cwd, 0o711); // started by root, Postgres runs as another user
  const ports = await Promise.all(
    [...listeners, "NATS", "POSTGRES"].map(async (name) => [`TAPEDECK_${name}_PORT`, String(await ownPort())]),
  );
  // The settings of the machine that runs the tests must have no effect.
  const foreign = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("TAPEDECK_")));
  const full = what === "full" ? openSync("/dev/full", "w") : undefined;
  const child = spawn(process.execPath, [main, "up", "--no-demo"], {
    cwd,
    env: { ...foreign, ...Object.fromEntries(ports), XDG_STATE_HOME: cwd, XDG_CONFIG_HOME: cwd },
    stdio: ["ignore", full ?? "pipe", full ?? "pipe"],
  });
  for (const stream of [child.stdout, child.stderr]) stream?.destroy();
  if (full !== undefined) closeSync(full);
  const exited = once(child, "exit");
  try {
    const running = await until(() => runningUp(join(cwd, ".tapedeck")).then((one) => one?.addresses.http), {
      message: "`tapedeck up` to be ready",
    });
    // Its welcome was printed before this.
    await until(async () => (await fetch(`http://${running}/readyz`)).ok, { message: "its services to be ready" });
    child.kill("SIGINT");
    // The exit code reports a lost output. A reader that has left is no failure.
    expect((await exited)[0]).toBe(what === "full" ? 1 : 0);
  } finally {
    child.kill("SIGKILL");
    await exited;
    rmSync(cwd, { recursive: true, force: true });
  }
});
