import { startTestNats } from "@tapedeck/shared/testing/nats";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startOwnPostgres } from "../faults/own-postgres.ts";
import { type RunningServices, startRunningServices } from "./running-services.ts";

const cleanup = new AsyncDisposableStack();
afterAll(() => cleanup.disposeAsync());
let nats: Awaited<ReturnType<typeof startTestNats>>;
let postgres: Awaited<ReturnType<typeof startOwnPostgres>>;
let running: RunningServices;

beforeAll(async () => {
  nats = cleanup.use(await startTestNats());
  postgres = cleanup.use(await startOwnPostgres());
  running = cleanup.use(await startRunningServices(nats.url, postgres.url));
});

const names = ["query", "gateway", "ingest"] as const;

describe("while a Skaffold is recorded and followed", () => {
  it("one service after the other is restarted, in either order", async () => {
    for (const name of [...names, ...names.toReversed()]) {
      await running.restart(name);
      await running.goesOn();
    }
  });

  it("NATS and Postgres are restarted under the services", async () => {
    await nats.restart();
    await running.goesOn();
    await postgres.kill();
    await postgres.start();
    await running.goesOn();
  });

  it("everything is shut down, and the services start before what they need", async () => {
    for (const name of names) await running.services[name].kill("SIGTERM");
    await postgres.kill();
    await nats.stop();
    for (const name of ["gateway", "ingest", "query"] as const) await running.services[name].start();
    const ready = await fetch(`http://${running.services.gateway.addresses.http}/readyz`);
    expect(ready.status).toBe(503);
    await nats.restart();
    await postgres.start();
    await running.goesOn();
  });

  it("nothing is lost and nothing comes twice, whatever was restarted", async () => {
    await running.nothingIsLost();
  });
});
