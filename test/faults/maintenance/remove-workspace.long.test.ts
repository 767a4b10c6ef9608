import { openLog } from "@tapedeck/shared/log/jetstream";
import { logNames } from "@tapedeck/shared/log/workspace-logs";
import { delay } from "@tapedeck/shared/sync/delay";
import { connectThroughRestarts } from "@tapedeck/shared/testing/nats-connection";
import { seeded } from "@tapedeck/shared/testing/seeded";
import { until } from "@tapedeck/shared/testing/until";
import pg from "pg";
import { expect, it } from "vitest";
import { startOtherWorkspace } from "../other-workspace.ts";
import { type Part, parts, startProcesses } from "../processes.ts";
import { seedSession } from "./seed.ts";

const session = "01KE3M9Z6Q4W8T2V5X7Y9A1B31";

it("a removal is brought to its end, whatever is killed meanwhile, the name begins anew, and another workspace goes on", {
  timeout: 900_000,
}, async () => {
  const random = seeded("removal-kills");
  await using on = await startProcesses([]);
  await using cleanup = new AsyncDisposableStack();
  const nats = cleanup.adopt(await connectThroughRestarts(on.nats), (nc) => nc.close());
  const database = new pg.Pool({ connectionString: on.database, max: 1 });
  database.on("error", () => {}); // Postgres is killed
  cleanup.defer(() => database.end());
  const call = async (method: string, path: string) => {
    const response = await fetch(`http://${on.http}/api/v1/${path}`, { method });
    return { status: response.status, body: await response.text() };
  };
  const other = cleanup.use(await startOtherWorkspace(on));
  const epochs = new Set<string>();
  for (const part of [...parts, "ingest", "query"] satisfies Part[]) {
    await seedSession(on, session, 300, 1);
    await until(async () => (await call("GET", "events?limit=500&kind=build.*")).body.includes("hush"), {
      message: "the session to be there",
    });
    {
      await using log = await openLog(nats, { workspace: "default", create: false, timeoutMs: 20_000 });
      expect(epochs).not.toContain(log.epoch);
      epochs.add(log.epoch);
    }
    const removing = call("DELETE", "workspaces/default").catch(() => undefined);
    await delay(random.below(120));
    await on.kill(part);
    await removing;
    const isDone = async () => (await call("DELETE", "workspaces/default")).body.includes('"state":"done"');
    await until(isDone, { message: `the removal, with ${part} killed` });
    // Nothing of it is left where only this workspace was.
    const areGone = async () => {
      const { rows } = await database.query(
        "select (select count(*) from tapedeck.events where workspace = 'default')::int as left",
      );
      return rows[0].left === 0;
    };
    await until(areGone, { message: "the rows to be gone" });
    const { body } = await call("GET", "events?limit=500&kind=build.*");
    expect(body).not.toContain("hush");
    const names = await until(() => logNames(nats), { message: "NATS to answer after its restart" });
    for (const name of names.filter((one) => one !== "acme")) {
      await using log = await openLog(nats, { workspace: name, create: false, timeoutMs: 20_000 });
      expect(epochs).not.toContain(log.epoch);
    }
  }
  expect(epochs.size).toBe(parts.length + 2);
  await other.finish();
});
