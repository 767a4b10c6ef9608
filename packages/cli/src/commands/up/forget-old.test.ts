import { openTestEnds } from "@tapedeck/ingest/testing/test-ends";
import { openLog } from "@tapedeck/shared/log/jetstream";
import { sequenceOf } from "@tapedeck/shared/log/offset";
import { streamOf } from "@tapedeck/shared/log/subjects";
import { sourceName } from "@tapedeck/shared/source";
import { testWriter } from "@tapedeck/shared/testing/log-messages";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { until } from "@tapedeck/shared/testing/until";
import { connect } from "nats";
import { expect, it } from "vitest";
import { forgetOld } from "./demo-care.ts";

it("the demo forgets what is old, but nothing of a session that goes on", async () => {
  await using nats = await startTestNats({ user: "u", password: "p" });
  await using stack = new AsyncDisposableStack();
  const nc = stack.adopt(await connect({ servers: nats.url, user: "u", pass: "p" }), (connection) =>
    connection.close(),
  );
  const log = stack.use(await openLog(nc, { workspace: "demo", syncKnown: true }));
  stack.use(await openTestEnds(nc, { workspace: "demo", epoch: log.epoch }));
  const [alice, bob] = ["alice", "bob"].map((developer) => {
    const parts = { workspace: "demo", developer, project: "shop", upstream: "skaffold" };
    return testWriter(log.writer, sourceName(parts));
  });
  const starts = { kind: "session.started", channel: "tapedeck" } as const;
  await alice?.append(1, { ...starts, session: "a1" });
  await bob?.append(1, { ...starts, session: "b1" });
  await alice?.append(50);
  const current = await bob?.append(1, { ...starts, session: "b2" });
  await bob?.append(50, { session: "b2" });
  await alice?.append(1, { ...starts, session: "a2" });

  const stop = new AbortController();
  const care = { nats: { url: nats.url, user: "u", password: "p" }, signal: stop.signal, everyMs: 5 };
  const kept = forgetOld({ ...care, keepMs: 3_600_000 });
  const forgot = forgetOld({ ...care, keepMs: 0 });
  await until(async () => sequenceOf((await log.reader.bounds()).firstOffset) === current, {
    message: "the old session to go",
  });
  stop.abort();
  await Promise.all([kept, forgot]);
  expect(sequenceOf((await log.reader.bounds()).firstOffset)).toBe(current);
});

it("the demo forgets what is old also where its log is made after that began", async () => {
  await using nats = await startTestNats({ user: "u", password: "p" });
  await using stack = new AsyncDisposableStack();
  const nc = stack.adopt(await connect({ servers: nats.url, user: "u", pass: "p" }), (connection) =>
    connection.close(),
  );
  let tries = 0;
  nc.subscribe(`$JS.API.STREAM.INFO.${streamOf("demo")}`, { callback: () => void tries++ });
  await nc.flush();
  const stop = new AbortController();
  const care = { nats: { url: nats.url, user: "u", password: "p" }, signal: stop.signal, everyMs: 5 };
  const forgot = forgetOld({ ...care, keepMs: 0 });
  await until(() => tries > 1, { message: "a second try" });

  const log = stack.use(await openLog(nc, { workspace: "demo", syncKnown: true }));
  stack.use(await openTestEnds(nc, { workspace: "demo", epoch: log.epoch }));
  const parts = { workspace: "demo", developer: "alice", project: "shop", upstream: "skaffold" };
  const alice = testWriter(log.writer, sourceName(parts));
  const starts = { kind: "session.started", channel: "tapedeck" } as const;
  await alice.append(1, { ...starts, session: "a1" });
  const current = await alice.append(1, { ...starts, session: "a2" });
  await until(async () => sequenceOf((await log.reader.bounds()).firstOffset) === current, {
    message: "the old session to go",
  });
  stop.abort();
  await forgot;
});
