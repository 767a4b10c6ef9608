import { getPostgreSQLEventStore, type PostgresEventStore } from "@event-driven-io/emmett-postgresql";

/** Emmett's event store on Postgres: one stream of events as JSON. */

const batch = 1_000;
let store: PostgresEventStore | undefined;
let stream = "";
let events: readonly { readonly type: string; readonly data: Record<string, unknown> }[] = [];
let version = 0n;

/** Uses this stream from now on, and these events, each of them JSON. Makes the tables. */
export async function open(url: string, name: string, texts: readonly string[]): Promise<void> {
  store = getPostgreSQLEventStore(url);
  await store.schema.migrate();
  [stream, version] = [name, 0n];
  const all = texts.map((text) => JSON.parse(text) as Record<string, unknown>);
  events = all.map((data) => ({ type: String(data.kind), data }));
}

/** Called before its Postgres stops: a broken connection would end this process. */
export async function close(): Promise<void> {
  await store?.close();
  store = undefined;
}

/** Appends as fast as possible, in transactions of a thousand. Resolves with the number of events. */
export async function append(count: number): Promise<number> {
  for (let sent = 0; sent < count; sent += batch) {
    const some = Array.from({ length: Math.min(batch, count - sent) }, (_, index) => eventAt(sent + index));
    const expected = version === 0n ? {} : { expectedStreamVersion: version };
    const { nextExpectedStreamVersion } = await opened().appendToStream(stream, some, expected);
    version = nextExpectedStreamVersion;
  }
  return count;
}

function opened(): PostgresEventStore {
  if (store === undefined) throw new Error("no store is open");
  return store;
}

const eventAt = (index: number) => events[index % events.length] as (typeof events)[number];

/** Reads the first so many events of the stream, page by page. */
export async function read(count: number): Promise<number> {
  let found = 0;
  while (found < count) {
    const page = await opened().readStream(stream, { from: BigInt(found + 1), maxCount: BigInt(batch) });
    if (page.events.length === 0) throw new Error(`the stream ended after ${found} of ${count} events`);
    found += page.events.length;
  }
  return found;
}
