import { encodeEvents, eventsIn } from "@tapedeck/shared/log/batch/batch";
import { openLog } from "@tapedeck/shared/log/jetstream";
import { sequenceOf } from "@tapedeck/shared/log/offset";
import { connect, headers, type NatsConnection } from "nats";
import { now, SightingLog, type Sightings } from "../frame/arrivals.ts";

/**
 * The log's server without Tapedeck in between: record batches of up to 64 KiB, not compressed, one plain publish in flight, fenced by
 * the expected last sequence of the subject.
 */

const packBytes = 64 * 1024;
const subject = "bench.raw";
let nats: NatsConnection;
let bodies: readonly Uint8Array[] = [];
let lastSeq = 0;
/** Events of all paces so far: each has a number of its own. */
let paced = 0;

/** Reads the bytes of this many events from the log. */
export async function load(url: string, count: number): Promise<number> {
  nats = await connect({ servers: url });
  const log = await openLog(nats, { workspace: "default", create: false, syncKnown: true });
  const all: Uint8Array[] = [];
  const last = sequenceOf((await log.reader.bounds()).lastOffset);
  for await (const { data } of log.stored({ first: 1, last, subjects: [] }, AbortSignal.timeout(120_000))) {
    all.push(...eventsIn(data).map((event) => event.slice()));
    if (all.length >= count) break;
  }
  bodies = all.slice(0, count);
  await request("$JS.API.STREAM.CREATE.RAW", { name: "RAW", subjects: ["bench.raw"], storage: "file" });
  return bodies.length;
}

/** Publishes as fast as possible. Resolves with the number of acknowledged events. */
export async function publish(count: number): Promise<number> {
  let sent = 0;
  while (sent < count) {
    const pack = nextPack(sent, count);
    await publishPack(pack);
    sent += pack.length;
  }
  return sent;
}

/**
 * Publishes at a fixed rate: the events that gather during one publish are the next batch. Resolves with the time from
 * due to acknowledged.
 */
export async function pace(perSecond: number, seconds: number): Promise<{ due: Sightings; acknowledged: Sightings }> {
  const due = new SightingLog();
  const acknowledged = new SightingLog();
  const total = Math.round(perSecond * seconds);
  const start = now();
  for (let sent = 0; sent < total; ) {
    const ready = Math.min(total, Math.floor(((now() - start) / 1_000) * perSecond) + 1);
    if (ready === sent) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      continue;
    }
    const pack = nextPack(sent, ready);
    for (let index = 0; index < pack.length; index++) {
      due.see("raw v1", paced + sent + index, start + ((sent + index) * 1_000) / perSecond);
    }
    await publishPack(pack);
    const at = now();
    for (let index = 0; index < pack.length; index++) acknowledged.see("raw v1", paced + sent + index, at);
    sent += pack.length;
  }
  paced += total;
  return { due: due.take(), acknowledged: acknowledged.take() };
}

function nextPack(from: number, until: number): Uint8Array[] {
  const pack: Uint8Array[] = [];
  for (let bytes = 0, index = from; index < until; index++) {
    const body = bodies[index % bodies.length] as Uint8Array;
    bytes += body.byteLength + 4;
    if (pack.length > 0 && bytes > packBytes) break;
    pack.push(body);
  }
  return pack;
}

async function publishPack(pack: readonly Uint8Array[]): Promise<void> {
  const fence = headers();
  fence.set("Nats-Expected-Last-Subject-Sequence", String(lastSeq));
  const answer = await nats.request(subject, encodeEvents(pack), { headers: fence, timeout: 10_000 });
  const { seq, error } = answer.json<{ seq?: number; error?: { description: string } }>();
  if (seq === undefined) throw new Error(error?.description ?? "no answer");
  lastSeq = seq;
}

async function request(api: string, body: object): Promise<void> {
  const answer = (await nats.request(api, JSON.stringify(body))).json<{ error?: { description: string } }>();
  if (answer.error !== undefined) throw new Error(answer.error.description);
}
