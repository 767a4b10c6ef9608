import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { startNatsServer } from "@tapedeck/infra/local/nats-server";
import { scenario, write } from "@tapedeck/query/testing/scenario";
import { openLog } from "@tapedeck/shared/log/jetstream";
import { connect } from "nats";
import { expect, inject, it } from "vitest";

it("two accounts of one nats-server have a log each", async () => {
  await using cleanup = new AsyncDisposableStack();
  const accounts = ["one", "two"].map((name) => ({ name, user: `${name}'s`, password: 'p"$w @/' }));
  const dataDir = await mkdtemp(join(inject("serversFolder"), "nats-accounts-"));
  const server = cleanup.use(await startNatsServer({ binary: inject("natsServer"), dataDir, port: 0, accounts }));
  const [one, two] = await Promise.all(
    accounts.map(async ({ user, password: pass }) => {
      const nats = cleanup.adopt(await connect({ servers: server.url, user, pass }), (nc) => nc.close());
      return cleanup.use(await openLog(nats, { syncKnown: true }));
    }),
  );
  const shop = scenario();
  shop.session("01A1").started();
  if (one === undefined || two === undefined) throw new Error("a log is missing");
  await write(one, shop.events);
  expect([(await one.reader.bounds()).messages, (await two.reader.bounds()).messages]).toEqual([1, 0]);
  expect(one.epoch).not.toBe(two.epoch);
  await expect(connect({ servers: server.url })).rejects.toThrow(/authorization/i);
});
