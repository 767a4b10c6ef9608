import { createClient, RESP_TYPES } from "@redis/client";
import { now, SightingLog, type Sightings } from "../frame/arrivals.ts";

/** Redis Streams through their usual client: one stream, with writers and readers. */

const batchBytes = 64 * 1024;
const pageSize = 1_000;
const arrived = new SightingLog();
let publisher: Awaited<ReturnType<typeof connected>>;
let key = "";
let bodies: readonly Buffer[] = [];
/** Entries of all paces so far: each has a number of its own. */
let paced = 0;

async function connected(port: number) {
  const client = createClient({ socket: { host: "127.0.0.1", port }, disableOfflineQueue: true });
  client.on("error", () => {});
  await client.connect();
  return client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
}

/** Uses this stream from now on, and the bytes of these events. */
export async function open(port: number, stream: string, events: readonly Uint8Array[]): Promise<void> {
  publisher ??= await connected(port);
  key = stream;
  bodies = events.map((event) => Buffer.from(event));
}

const add = (number: number): Promise<unknown> =>
  publisher.xAdd(key, "*", { n: String(number), event: bodies[number % bodies.length] as Buffer });

/**
 * Appends as fast as possible: a pipeline of as many bytes as a record batch, then the next. Resolves with their
 * number.
 */
export async function append(count: number): Promise<number> {
  for (let sent = 0; sent < count; ) {
    const batch: Promise<unknown>[] = [];
    for (let bytes = 0; bytes < batchBytes && sent < count; sent++) {
      bytes += bodies[sent % bodies.length]?.byteLength ?? 0;
      batch.push(add(sent));
    }
    await Promise.all(batch);
  }
  return count;
}

/** Appends at a fixed rate, each entry separately. The client sends without waiting for earlier answers. */
export async function pace(perSecond: number, seconds: number): Promise<{ due: Sightings; acknowledged: Sightings }> {
  const [due, acknowledged] = [new SightingLog(), new SightingLog()];
  const total = Math.round(perSecond * seconds);
  const start = now();
  const answers: Promise<void>[] = [];
  for (let sent = 0; sent < total; ) {
    const ready = Math.min(total, Math.floor(((now() - start) / 1_000) * perSecond) + 1);
    for (; sent < ready; sent++) {
      const number = paced + sent;
      due.see("peer v1", number, start + (sent * 1_000) / perSecond);
      answers.push(add(number).then(() => acknowledged.see("peer v1", number, now())));
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await Promise.all(answers);
  paced += total;
  return { due: due.take(), acknowledged: acknowledged.take() };
}

/** Reads the first so many entries of the stream, page by page. */
export async function read(count: number): Promise<{ count: number; bytes: number }> {
  let [found, bytes, from] = [0, 0, "-"];
  while (found < count) {
    const page = await publisher.xRange(key, from, "+", { COUNT: Math.min(pageSize, count - found) });
    const last = page?.at(-1);
    if (page === null || last === undefined) throw new Error(`the stream ended after ${found} of ${count} entries`);
    for (const { message } of page) bytes += message.event?.length ?? 0;
    found += page.length;
    from = `(${last.id}`;
  }
  return { count: found, bytes };
}

/** Starts so many readers of all new entries, each on its own connection. */
export async function listen(port: number, stream: string, readers: number): Promise<void> {
  for (let index = 0; index < readers; index++) {
    const client = await connected(port);
    const [newest] = (await client.xRevRange(stream, "+", "-", { COUNT: 1 })) ?? [];
    const reading = async () => {
      for (let id = String(newest?.id ?? "0-0"); ; ) {
        const [found] = (await client.xRead({ key: stream, id }, { BLOCK: 0, COUNT: pageSize })) ?? [];
        const at = now();
        for (const { message } of found?.messages ?? []) arrived.see("peer v1", Number(String(message.n)), at);
        id = String(found?.messages.at(-1)?.id ?? id);
      }
    };
    reading().catch(() => process.exit(1));
  }
}

/** Waits until all readers together have so many entries, and gives up after a timeout. */
export async function cameWithin(count: number, ms: number): Promise<Sightings> {
  const end = now() + ms;
  while (arrived.count < count && now() < end) await new Promise((resolve) => setTimeout(resolve, 5));
  return arrived.take();
}
