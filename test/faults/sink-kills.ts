import type { ReceivedEvent, Receiver } from "@tapedeck/gateway/sinks/testing/receiver";
import { sourceName } from "@tapedeck/shared/source";
import { delay } from "@tapedeck/shared/sync/delay";
import { testWriter } from "@tapedeck/shared/testing/log-messages";
import { type Seeded, seeded } from "@tapedeck/shared/testing/seeded";
import { until } from "@tapedeck/shared/testing/until";
import { expect } from "vitest";
import { type FaultyNetwork, faultyNetwork, type Weather } from "./faulty-network.ts";
import type { ServiceProcess } from "./service-process.ts";
import { startTwoGateways } from "./two-gateways.ts";

export type SinkKills = { readonly gateway: number; readonly target: number; readonly network: number };

type Killed = keyof SinkKills;

/** One sink for each mode, at a path of its own. */
const modes = ["batched", "structured"] as const;
const developers = ["alice", "bob", "carol"];

const maxWaiting = 300;

/** A kill of the network is one of these for a moment, or every connection ends in the middle of what it carries. */
const weathers: readonly (Weather | "reset" | "cut")[] = ["hole", "deaf", "mute", "refusing", "reset", "cut"];

/**
 * Records events of several sources while two gateways, the target and the network between them are killed at random moments, and
 * compares what the target has got with the log.
 */
export async function sinksLoseNothing(kills: SinkKills): Promise<void> {
  const random = seeded("sink kills");
  await using stack = new AsyncDisposableStack();
  const { log, receiver, gateways } = await startTwoGateways(stack);
  const network = stack.use(await faultyNetwork(receiver.port));
  for (const mode of modes) {
    const target = `http://127.0.0.1:${network.port}/${mode}`;
    await call(gateways[0], "POST", "", { name: mode, target, mode, start: "start" });
  }
  // Now and then the receiver has got a request, and dies before it answers.
  receiver.answer = () => (random.below(20) === 0 ? { status: 200, isLost: true } : { status: 200 });

  const over = new AbortController();
  const sources = developers.map((developer) =>
    sourceName({ workspace: "default", developer, project: "shop", upstream: "skaffold" }),
  );
  const writers = sources.map((source) => testWriter(log.writer, source, { perMessage: 3 }));
  const received = modes.map((mode) => new Distinct(() => receiver.acceptedAt(`/${mode}`)));
  const writing = writers.map(async (writer) => {
    while (!over.signal.aborted) {
      const slowest = Math.min(...received.map((one) => one.count));
      // So that what waits is not the rest of the test.
      if (writers.reduce((sum, { written }) => sum + written.length, 0) < slowest + maxWaiting) {
        await writer.append(1 + random.below(5));
      }
      await delay(5 + random.below(40));
    }
  });
  try {
    for (const killed of random.shuffled(listOf(kills))) {
      await kill(killed, { gateways, receiver, network, random });
      const before = modes.map((mode) => receiver.acceptedAt(`/${mode}`).length);
      const isDelivering = () => modes.every((mode, at) => receiver.acceptedAt(`/${mode}`).length > (before[at] ?? 0));
      await until(isDelivering, { message: `both sinks to go on after a kill of the ${killed}` });
    }
  } finally {
    over.abort();
    await Promise.all(writing);
  }
  const written = new Map(sources.map((source, at) => [`/sources/${source}`, writers[at]?.written.length ?? 0]));
  const count = [...written.values()].reduce((sum, one) => sum + one, 0);
  for (const [at, mode] of modes.entries()) {
    const isWhole = () => {
      expect(received[at]?.count).toBe(count);
      return true;
    };
    await until(isWhole, { message: `all events at ${mode}` });
    assertInOrder(receiver.acceptedAt(`/${mode}`), written);
  }
  const { items } = await call(gateways[0], "GET", "");
  expect(items).toMatchObject(modes.map((name) => ({ name, parked: 0 })));
}

/** Counts events without their repetitions, each time only those that are new. */
class Distinct {
  readonly #events: () => readonly ReceivedEvent[];
  readonly #keys = new Set<string>();
  #counted = 0;

  constructor(events: () => readonly ReceivedEvent[]) {
    this.#events = events;
  }

  get count(): number {
    const events = this.#events();
    for (const event of events.slice(this.#counted)) this.#keys.add(keyOf(event));
    this.#counted = events.length;
    return this.#keys.size;
  }
}

export type KilledParts = {
  readonly gateways: readonly [ServiceProcess, ServiceProcess];
  readonly receiver: Receiver;
  readonly network: FaultyNetwork;
  readonly random: Seeded;
};

/** Kills a part, and starts it again. */
export async function kill(killed: Killed, { gateways, receiver, network, random }: KilledParts): Promise<void> {
  await delay(random.below(300));
  if (killed === "gateway") {
    const gateway = gateways[random.below(2) === 0 ? 0 : 1];
    await gateway.kill();
    await gateway.start();
  } else if (killed === "target") {
    await receiver.kill();
    await delay(random.below(200));
    await receiver.start();
  } else {
    const weather = weathers[random.below(weathers.length)] ?? "cut";
    if (weather === "cut") network.cut();
    else if (weather === "reset") network.reset();
    else {
      network.weather = weather;
      await delay(50 + random.below(400));
      // What has waited is lost with its connections.
      network.cut();
      network.weather = "fine";
    }
  }
}

/** Leaving repetitions out, each source's events are all there, in their order; a repetition has the id of what it repeats. */
function assertInOrder(got: readonly ReceivedEvent[], written: ReadonlyMap<string, number>): void {
  const next = new Map([...written.keys()].map((source) => [source, 1]));
  for (const { id, source, data } of got) {
    const expected = next.get(source) ?? 0;
    expect(id).toBe(`s.v1.${data.ordinal}`);
    expect(data.ordinal, `${source} after ${expected - 1}`).toBeLessThanOrEqual(expected);
    if (data.ordinal === expected) next.set(source, expected + 1);
  }
  for (const [source, count] of written) expect(next.get(source), source).toBe(count + 1);
}

const keyOf = ({ source, id }: ReceivedEvent) => `${source} ${id}`;

export function listOf(kills: SinkKills): readonly Killed[] {
  return (Object.entries(kills) as [Killed, number][]).flatMap(([part, count]) => Array<Killed>(count).fill(part));
}

/** Asks the API of sinks until it answers. */
export async function call(gateway: ServiceProcess, method: string, path: string, body?: object) {
  const init = { method, ...(body && { body: JSON.stringify(body) }) };
  const url = `http://${gateway.addresses.http}/api/v1/sinks${path}`;
  return until(
    async () => {
      const response = await fetch(url, init);
      if (!response.ok) throw new Error(await response.text());
      return (await response.json()) as { readonly items?: readonly object[] };
    },
    { message: `${method} ${path}` },
  );
}
