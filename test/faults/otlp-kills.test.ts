import { conventions, violationsOf } from "@tapedeck/gateway/sinks/format/otlp/testing/conventions";
import { type ReceivedSpan, spansOf } from "@tapedeck/gateway/sinks/testing/received-spans";
import { Span } from "@tapedeck/proto/opentelemetry/proto/trace/v1/trace";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { scenario, writeTogether } from "@tapedeck/query/testing/scenario";
import { sourceName } from "@tapedeck/shared/source";
import { searched } from "@tapedeck/shared/testing/searches";
import { type Seeded, seeded } from "@tapedeck/shared/testing/seeded";
import { until } from "@tapedeck/shared/testing/until";
import { ulid } from "ulid";
import { expect, it } from "vitest";
import { faultyNetwork } from "./faulty-network.ts";
import { call, kill, listOf } from "./sink-kills.ts";
import { startTwoGateways } from "./two-gateways.ts";

const loops = searched({ short: 500, long: 2_000 });
const developers = 20;
const kills = { gateway: 4, target: 8, network: 8 };
const exports = { first: "batched", second: "structured" } as const;

it(`${loops} loops exported twice through 20 kills give the same spans, none missing, and every tree whole`, async () => {
  const random = seeded("otlp kills");
  await using stack = new AsyncDisposableStack();
  const { log, receiver, gateways } = await startTwoGateways(stack);
  const network = stack.use(await faultyNetwork(receiver.port));
  for (const [name, mode] of Object.entries(exports)) {
    const target = `http://127.0.0.1:${network.port}/${name}`;
    await call(gateways[0], "POST", "", { name, target, format: "otlp", mode, start: "start" });
  }
  // Now and then the receiver has got a request, and dies before it answers.
  receiver.answer = () => (random.below(20) === 0 ? { status: 200, isLost: true } : { status: 200 });

  const recorded = recordings(random);
  const chunks = chunksOf(
    recorded.map(({ events }) => events),
    random,
  );
  const accepted = (name: string) => receiver.requests.filter(({ path }) => path === `/${name}`);
  const progress = () => Object.keys(exports).map((name) => accepted(name).length);
  const listed = random.shuffled(listOf(kills));
  for (const [index, killed] of listed.entries()) {
    // Each kill meets loops that are being recorded, and loops that wait.
    const part = (at: number) => Math.ceil((at * chunks.length) / (2 * listed.length));
    const writing = writeAll(chunks.slice(part(2 * index), part(2 * index + 1)));
    await kill(killed, { gateways, receiver, network, random });
    await writing;
    const before = progress();
    await writeAll(chunks.slice(part(2 * index + 1), part(2 * index + 2)));
    const isDelivering = () => progress().every((count, at) => count > (before[at] ?? 0));
    await until(isDelivering, { message: `both exports to go on after a kill of the ${killed}` });
  }
  async function writeAll(some: readonly (readonly Event[])[]): Promise<void> {
    for (const events of some) await writeTogether(log, events, 8);
  }

  const expected = recorded.reduce((sum, { spans }) => sum + spans, 0);
  const [first, second] = await Promise.all(
    Object.keys(exports).map(async (name) => {
      const exported = new Exported();
      const hasAll = () => exported.add(accepted(name)).spans.size >= expected;
      await until(hasAll, { message: `${expected} spans` });
      return exported;
    }),
  );
  expect([first?.changed, second?.changed]).toEqual([[], []]);
  expect(first?.spans.size).toBe(expected);
  expect(second?.spans).toEqual(first?.spans);
  for (const requests of [first?.requests ?? [], second?.requests ?? []]) requests.forEach(assertWhole);
  const { items } = await call(gateways[0], "GET", "");
  expect(items).toMatchObject(Object.keys(exports).map((name) => ({ name, parked: 0 })));
});

/** What an export has sent until now. Each request is decoded once: the receiver is in this process, too. */
class Exported {
  readonly requests: (readonly ReceivedSpan[])[] = [];
  /** Each span's bytes by its id. */
  readonly spans = new Map<string, string>();
  /** The spans whose repetition had other bytes. */
  readonly changed: string[] = [];

  /** `requests`: all that there were, in their order. */
  add(requests: readonly Parameters<typeof spansOf>[0][]): this {
    for (const request of requests.slice(this.requests.length)) {
      const spans = spansOf(request);
      this.requests.push(spans);
      for (const { traceId, spanId, span } of spans) {
        const key = `${traceId} ${spanId}`;
        const bytes = Buffer.from(Span.encode(span).finish()).toString("base64");
        if (bytes !== (this.spans.get(key) ?? bytes)) this.changed.push(key);
        this.spans.set(key, bytes);
      }
    }
    return this;
  }
}

/** A request has whole traces: each with one root, which is the parent of all others. */
function assertWhole(spans: readonly ReceivedSpan[]): void {
  for (const [traceId, own] of Map.groupBy(spans, (span) => span.traceId)) {
    const roots = own.filter(({ parentId }) => parentId === "");
    expect(roots.length, traceId).toBe(1);
    const isOrphan = ({ parentId }: ReceivedSpan) => parentId !== "" && parentId !== roots[0]?.spanId;
    expect(own.filter(isOrphan), traceId).toEqual([]);
    expect(own.flatMap(violationsOf), conventions.schemaUrl).toEqual([]);
  }
}

/** Sessions with loops of all outcomes, and how many spans they make. */
function recordings(random: Seeded) {
  return Array.from({ length: developers }, (_, index) => {
    const source = sourceName({
      workspace: "default",
      developer: `dev${index}`,
      project: "shop",
      upstream: "skaffold",
    });
    const script = scenario(source);
    const skaffold = script.session(ulid(1_700_000_000_000 + index));
    skaffold.started({ branch: "main", host: `host${index}` });
    skaffold.configured();
    let spans = 0;
    for (let loop = 0; loop < loops / developers; loop++) {
      skaffold.loopStarted();
      spans += 1;
      const isBad = random.below(5) === 0;
      for (let artifact = random.below(4); artifact >= 0; artifact--) {
        if (random.below(3) === 0) skaffold.cached(`a${artifact}`);
        else {
          skaffold.build(`a${artifact}`, "started");
          skaffold.text("compiling");
          skaffold.build(`a${artifact}`, isBad && artifact === 0 ? "failed" : "succeeded");
        }
        spans += 1;
      }
      if (!isBad) {
        skaffold.phase("deploy", "started");
        skaffold.phase("deploy", "succeeded");
        spans += 1;
      }
      const isLast = loop === loops / developers - 1;
      if (isLast && random.below(2) === 0) skaffold.ended("process ended");
      else {
        const how = isBad ? "failed" : "succeeded";
        skaffold.loopEnded(how);
        // v2 is recorded beside v1, and may report what belongs to the loop after v1's end.
        if (random.below(2) === 0) {
          skaffold.render("started");
          skaffold.render(how);
          spans += 1;
        }
        skaffold.loopEndedOnV2(how);
      }
    }
    return { events: script.events, spans };
  });
}

const isAfterEnd = (event: Event | undefined) => /^(?:render|mirror)\./.test(event?.kind ?? "");

/** The sessions' events in turns, as they are recorded beside each other. */
function chunksOf(sessions: readonly (readonly Event[])[], random: Seeded): readonly (readonly Event[])[] {
  const chunks: (readonly Event[])[] = [];
  for (let left = sessions.filter(({ length }) => length > 0); left.length > 0; ) {
    left = left.flatMap((events) => {
      let size = 20 + random.below(60);
      // What v2 reports after v1 is recorded in a moment, and not after the kill between two of them.
      while (isAfterEnd(events[size])) size++;
      chunks.push(events.slice(0, size));
      return events.length > size ? [events.slice(size)] : [];
    });
  }
  return chunks;
}
