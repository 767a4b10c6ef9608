import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { scenario } from "@tapedeck/query/testing/scenario";
import { seqIn } from "@tapedeck/shared/testing/positions";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { startSeededStack } from "../stack/seeded-stack.ts";
import { gatewayEnv } from "../stack/stack.ts";
import { transports } from "./all-transports.ts";
import { startGatewayProcess } from "./gateway-process.ts";
import { type Due, wrongWith } from "./history.ts";
import { ConnectionLost, type Message, type StreamFilter, type Transport } from "./transport.ts";

/** Other readers of each transport: of all events, and of builds only. */
const others = { all: 5, builds: 45 } as const;
const stalledOfEach = 3;
/** Half of the events carry text of this size. */
const textBytes = 4_000;
const events = 4_000;
/** More than the newest events that the gateway keeps for all readers. */
const before = 4_500;
const batch = 100;
const maxBehind = 1_000;
const maxBytesOfEach = 2 << 20;

const builds: StreamFilter = { kinds: ["build.*"] };

it("a reader that stops reading costs little, slows down nobody, and gets everything when it reads again, on every transport", async () => {
  await using cleanup = new AsyncDisposableStack();
  const seeded = cleanup.use(await startSeededStack());
  const gateway = cleanup.use(await startGatewayProcess(gatewayEnv(seeded.stack.parts)));
  const over = new AbortController();
  cleanup.defer(() => over.abort());

  const writer = scenario();
  const session = writer.session("01A1");
  session.started();
  const due: Due[] = [];
  let tail = 0;
  const write = async (count: number) => {
    const from = writer.events.length;
    for (let index = 0; index < count; index++) {
      if (index % 2 === 0) session.text(`${index} `.padEnd(textBytes, "abcdefghij "));
      else session.build("web", index % 4 === 1 ? "started" : "succeeded");
    }
    const fresh: readonly Event[] = writer.events.slice(from);
    const seqs = await seeded.write(fresh);
    due.push(...fresh.map(({ id }, index) => ({ id, seq: seqs[index] ?? 0 })));
    for (const [index, { kind }] of fresh.entries()) if (kind.startsWith("build.")) isBuild.add(seqs[index] ?? 0);
    tail = seqs.at(-1) ?? tail;
  };
  const dueOf = (filter: StreamFilter) => (filter === builds ? due.filter(({ seq }) => isBuild.has(seq)) : due);
  const isBuild = new Set<number>();

  const open = (transport: Transport, filter: StreamFilter) => {
    const one = reader(transport, gateway, filter, over.signal);
    return { name: transport.name, filter, ...one };
  };
  await seeded.write(writer.events);
  writer.events.length = 0;
  const fast = transports.flatMap((transport) => [
    ...Array.from({ length: others.all }, () => open(transport, {})),
    ...Array.from({ length: others.builds }, () => open(transport, builds)),
  ]);
  await until(() => fast.every(({ received }) => received.length > 0), { message: "the others to be there" });
  const canaries = transports.flatMap(({ name }) => fast.find((one) => one.name === name) ?? []);
  let behind = 0;
  /** Writes at the pace of one reader of each transport; all others must keep up with it. */
  const flood = async (count: number) => {
    for (let done = 0; done < count; done += batch) {
      await write(batch);
      await until(() => canaries.every(({ seq }) => seq() >= tail), { message: `the tail at ${tail}` });
      behind = Math.max(behind, ...fast.map(({ seq }) => tail - seq()));
    }
  };
  await flood(before);
  const stalled = transports.flatMap((transport) => Array.from({ length: stalledOfEach }, () => open(transport, {})));
  await until(() => stalled.every(({ received }) => received.length > 0), { message: "those to be stalled" });
  for (const one of stalled) one.stall();
  const held = await gateway.memory();
  behind = 0;
  await flood(events);
  const grown = (await gateway.memory()) - held;
  const heldBack = stalled.map(({ received }) => received.length / events);

  for (const one of stalled) one.goOn();
  // A failed one is reported below.
  await until(() => [...fast, ...stalled].every(({ seq, failure }) => seq() >= tail || failure() !== undefined), {
    message: "everybody to have everything",
    deadlineMs: 300_000,
  });
  const ofEach = Math.round(grown / stalled.length / 1_024);
  console.log(
    `${fast.length} readers at most ${behind} behind; ${ofEach} KiB for each of ${stalled.length} that stalled`,
  );
  for (const { name, filter, received, failure } of [...fast, ...stalled]) {
    const start = seqIn(received[0]?.position);
    const expected = dueOf(filter).filter(({ seq }) => seq > start);
    expect({ name, filter, failure: failure(), wrong: wrongWith(received, expected).slice(0, 5) }).toEqual({
      name,
      filter,
      failure: undefined,
      wrong: [],
    });
  }
  // They did stall: kernels and gateway buffered far less for them than was sent.
  expect(Math.max(...heldBack)).toBeLessThan(0.75);
  expect(behind).toBeLessThanOrEqual(maxBehind);
  expect(grown / stalled.length).toBeLessThanOrEqual(maxBytesOfEach);
}, 600_000);

/** Begins now, so that its first message has the position. */
function reader(
  transport: Transport,
  endpoint: { grpc: string; http: string },
  filter: StreamFilter,
  signal: AbortSignal,
) {
  const received: Message[] = [];
  let isStalled: PromiseWithResolvers<void> | undefined;
  let mayBeClosed = false;
  let failure: unknown;
  let seq = 0;
  const readOn = async (after?: string) => {
    for await (const message of transport.read(endpoint, { filter, ...(after && { after }) }, signal)) {
      received.push(message);
      seq = seqIn(message.position);
      await isStalled?.promise;
    }
    throw new Error("the stream ended");
  };
  const run = () =>
    readOn().catch((error: unknown) => {
      // A WebSocket that does not answer pings for 34 s, which can happen here on a slow machine, is closed: it resumes
      // at its last position.
      if (!mayBeClosed || !(error instanceof ConnectionLost)) throw error;
      return readOn(received.at(-1)?.position);
    });
  run().catch((error: unknown) => {
    if (!signal.aborted) failure = error;
  });
  return {
    received,
    seq: () => seq,
    failure: () => failure,
    stall: () => {
      mayBeClosed = transport.name === "WebSocket";
      isStalled = Promise.withResolvers();
    },
    goOn: () => {
      isStalled?.resolve();
      isStalled = undefined;
    },
  };
}
