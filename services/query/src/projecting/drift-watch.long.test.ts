import { State } from "@tapedeck/proto/skaffold/v1/skaffold";
import { Observed } from "@tapedeck/proto/tapedeck/v1/observed";
import { adoptSubject, observedSubject } from "@tapedeck/shared/log/subjects";
import { type Logger, silentLogger } from "@tapedeck/shared/service/logger";
import { until } from "@tapedeck/shared/testing/until";
import { connect } from "nats";
import { Client } from "pg";
import { expect, it } from "vitest";
import { type Query, startQuery } from "../query.ts";
import { scenario, shop, startedAt, timestamp } from "../testing/scenario.ts";
import { stage } from "../testing/stage.ts";

/** Milliseconds of the scenario: the last event of the loop, and an answer in silence. */
const loopEnd = 1_000;
const later = 2_000;

async function theatre() {
  await using stack = new AsyncDisposableStack();
  const on = stack.use(await stage());
  const nats = stack.adopt(await connect({ servers: on.nats.url }), (nc) => nc.close());
  const warnings: Record<string, unknown>[] = [];
  const logger: Logger = Object.assign(Object.create(silentLogger) as Logger, {
    warn: (fields: Record<string, unknown>) => warnings.push(fields),
  });
  const quiet = { ...on.config, nats: { ...on.config.nats, syncAlways: true } };
  const query = stack.use(await startQuery(quiet, logger));
  const script = scenario();
  const session = script.session("S");
  session.started();
  session.configured();
  session.loopStarted();
  session.build("web", "started");
  session.build("web", "succeeded");
  session.loopEnded("succeeded", loopEnd);
  await on.write(script.events);
  const owned = stack.move();
  return {
    on,
    session,
    query,
    warnings,
    written: () => on.write(script.events.splice(0)),
    /** Skaffold's answer that web is `status`, at that moment of the scenario, after what is written of v1 by then. */
    answer(status: string, at: number, ordinals: Record<string, bigint> = { v1: 5n, tapedeck: 1n }, of = "S") {
      const state = State.fromPartial({
        buildState: { artifacts: { web: status } },
        testState: { status: "Not Started" },
        deployState: { status: "Not Started" },
        statusCheckState: { status: "Not Started" },
        fileSyncState: { status: "Not Started" },
      });
      const bytes = Buffer.from(State.encode(state).finish());
      const who = { source: shop, session: of, channel: "v1", state: bytes };
      const observed = { ...who, ordinals, observed_at: timestamp(startedAt + at) };
      nats.publish(observedSubject(shop), Observed.encode(Observed.fromPartial(observed)).finish());
    },
    forget: () => script.events.splice(0),
    next: (name: string) => script.session(name),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function counted(query: Query, name: string): Promise<number> {
  const metrics = await (await fetch(`http://${query.addresses.health}/metrics`)).text();
  const [, value] =
    new RegExp(`^tapedeck_query_fold_${name}_total\\{.*source="${shop}".*\\} (\\d+)$`, "m").exec(metrics) ?? [];
  return Number(value ?? 0);
}

async function checked(query: Query, checks: number): Promise<void> {
  await until(async () => (await counted(query, "checks")) === checks, { message: `${checks} checks` });
}

it("counts the differences of an upstream at rest, and logs the same ones once", async () => {
  await using on = await theatre();
  on.answer("Complete", later);
  await checked(on.query, 1);
  expect(await counted(on.query, "drift")).toBe(0);
  on.answer("Failed", later);
  on.answer("Failed", later);
  await checked(on.query, 3);
  expect(await counted(on.query, "drift")).toBe(2);
  const web = "v1 artifact web: Skaffold says Failed, its events Complete";
  expect(on.warnings).toEqual([{ source: shop, session: "S", differences: [web] }]);
  on.answer("Canceled", later);
  await checked(on.query, 4);
  expect(on.warnings).toHaveLength(2);
});

it("finds the last event of the folded channels behind messages of others", async () => {
  await using on = await theatre();
  for (let line = 0; line < 20; line++) on.session.text(`line ${line}`, loopEnd);
  const lines = on.forget().map((event, index) => ({ ...event, channel: "logs", ordinal: BigInt(index + 1) }));
  await on.on.write(lines);
  on.answer("Failed", later);
  await checked(on.query, 1);
  expect(await counted(on.query, "drift")).toBe(1);
});

it("asks record to adopt the answer, at the position of the folded channels and the control calls", async () => {
  await using on = await theatre();
  const nats = await connect({ servers: on.on.nats.url });
  const requests: Observed[] = [];
  nats.subscribe(adoptSubject(shop), { callback: (_, { data }) => void requests.push(Observed.decode(data)) });
  await nats.flush();
  on.answer("Complete", later);
  on.answer("Failed", later, { v1: 5n, v2: 0n, logs: 99n, tapedeck: 1n });
  await until(() => requests.length > 0, { message: "the answer to be asked for" });
  await nats.close();
  expect(requests).toMatchObject([
    { source: shop, session: "S", channel: "v1", ordinals: { v1: 5n, v2: 0n, tapedeck: 1n } },
  ]);
  expect(Object.keys(requests[0]?.ordinals ?? {}).sort()).toEqual(["tapedeck", "v1", "v2"]);
  expect(State.decode(requests[0]?.state ?? Buffer.alloc(0)).buildState?.artifacts).toEqual({ web: "Failed" });
});

it("compares no answer that may belong to another position", async () => {
  await using on = await theatre();
  on.answer("Failed", loopEnd + 100); // what came just before may not be in it
  on.answer("Failed", later, { v1: 4n }); // something came after it
  on.answer("In Progress", later); // it works
  on.answer("Complete", later);
  await checked(on.query, 1);

  on.forget();
  on.session.own("control.requested", { $case: "control", value: { method: "/proto.SkaffoldService/Execute" } }, later);
  await on.written();
  on.answer("Failed", later); // before the call
  on.answer("Failed", later + 100, { v1: 5n, tapedeck: 2n }); // just after it
  on.answer("Complete", 2 * later, { v1: 5n, tapedeck: 2n });
  await checked(on.query, 2);
  expect(await counted(on.query, "drift")).toBe(0);
  expect(on.warnings).toEqual([]);
});

it("compares no answer of a session that another one has followed", async () => {
  await using on = await theatre();
  on.forget();
  const next = on.next("T");
  next.started();
  next.configured();
  await on.written();
  on.answer("Failed", later);
  on.answer("Failed", later, { v1: 1n, tapedeck: 2n }, "T");
  await until(async () => on.warnings.some(({ session }) => session === "T"), { message: "the answer of T" });
  expect(await counted(on.query, "checks")).toBe(1);
  expect(on.warnings).toMatchObject([{ session: "T" }]);
});

it("compares an answer though the tables are behind for a while", async () => {
  await using on = await theatre();
  on.answer("Complete", later);
  await checked(on.query, 1);
  const held = new Client(on.on.databaseUrl);
  await held.connect();
  await held.query("begin; lock table tapedeck_internal.checkpoint in share mode");
  on.forget();
  on.session.own("source.checkpoint", undefined, later);
  await on.written();
  on.answer("Failed", later);
  const since = performance.now();
  await until(() => performance.now() - since > 5_000, { message: "a while" });
  expect(await counted(on.query, "checks")).toBe(1);
  await held.end();
  await checked(on.query, 2);
  expect(await counted(on.query, "drift")).toBe(1);
});

it("survives messages that can't be decoded", async () => {
  await using on = await theatre();
  const nats = await connect({ servers: on.on.nats.url });
  nats.publish(observedSubject(shop), Buffer.from("no message"));
  nats.publish(observedSubject(shop), Observed.encode(Observed.fromPartial({ source: "?" })).finish());
  await nats.close();
  on.answer("Complete", later);
  await checked(on.query, 1);
});

it("is left to the query that projects: one that stands by compares when it has taken over", async () => {
  await using on = await theatre();
  await using standby = await on.on.startQuery();
  await until(async () => (await fetch(`http://${standby.addresses.health}/readyz`)).ok, { message: "the standby" });
  for (const checks of [1, 2, 3]) {
    on.answer("Complete", later);
    await checked(on.query, checks);
  }
  // It would have compared the first of them long ago.
  expect(await counted(standby, "checks")).toBe(0);
  await on.query[Symbol.asyncDispose]();
  const compares = async () => {
    on.answer("Complete", later);
    return (await counted(standby, "checks")) > 0;
  };
  await until(compares, { message: "the standby to have taken over" });
});
