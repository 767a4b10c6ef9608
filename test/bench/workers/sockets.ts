import type { Socket } from "node:net";
import { now, SightingLog, type Sightings } from "../frame/arrivals.ts";
import { openWebSocket } from "../frame/web-socket.ts";

/** WebSocket clients, of the gateway or of a bare server: they count whole messages and parse none. */

export type Subscription = {
  readonly http: string;
  readonly path?: string;
  readonly count: number;
  /** The first messages of the sockets, in turns; none: they only listen. */
  readonly messages?: readonly string[];
  /** Record when each frame of the upstream arrives at each socket. */
  readonly timed?: boolean;
};

let open: Socket[] = [];
let events = 0;
let bytes = 0;
let caughtUp = 0;
let failure: string | undefined;
let expected = { events: 0, reached: () => {} };
let samples: string[] = [];
const log = new SightingLog();
const keptSamples = 2_000;

/** Resolves when all sockets are open, and those of the gateway have caught up with the log. */
export async function subscribe({ http, path = "/api/v1/ws", count, messages = [], timed = false }: Subscription) {
  [caughtUp, failure] = [0, undefined];
  const onMessage = (payload: Buffer) => take(payload, timed);
  // Not all at once: a server's backlog of connections is bounded.
  for (let index = 0; index < count; ) {
    const some = Array.from({ length: Math.min(100, count - index) }, () => {
      const message = messages.length === 0 ? undefined : messages[index++ % messages.length];
      if (messages.length === 0) index++;
      return openWebSocket(http, path, onMessage, message);
    });
    open.push(...(await Promise.all(some)));
  }
  while (messages.length > 0 && caughtUp < count) {
    if (failure !== undefined) throw new Error(failure);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** One socket reads so many events and is closed. */
export async function readOnce(http: string, path: string, message: string | undefined, count: number) {
  reset();
  const start = now();
  const socket = await openWebSocket(http, path, (payload) => take(payload, false), message);
  await arrived(count);
  const wallMs = now() - start;
  socket.destroy();
  return { count: events, bytes, wallMs };
}

/** Resolves when so many events have come to all sockets together since `reset`. */
export async function arrived(count: number): Promise<{ count: number; bytes: number }> {
  const { promise, resolve } = Promise.withResolvers<void>();
  expected = { events: count, reached: resolve };
  if (events >= count) resolve();
  await promise;
  if (failure !== undefined) throw new Error(failure);
  return { count: events, bytes };
}

/** Waits for so many timed frames, and gives up after a timeout: resolves with how many have come. */
export async function framesWithin(count: number, ms: number): Promise<number> {
  const end = now() + ms;
  while (log.count < count && now() < end) await new Promise((resolve) => setTimeout(resolve, 5));
  return log.count;
}

export function reset(): void {
  [events, bytes] = [0, 0];
  samples = [];
  expected = { events: 0, reached: () => {} };
  log.take();
}

export const sightings = (): Sightings => log.take();
/** The first events since `reset`, as text. */
export const firstEvents = (): readonly string[] => samples;

/** Opens sockets that subscribe to the whole log and read nothing. */
export async function subscribeAndStall(http: string, count: number, message: string): Promise<void> {
  for (let index = 0; index < count; index++) {
    const socket = await openWebSocket(http, "/api/v1/ws", () => {}, message);
    socket.pause();
    open.push(socket);
  }
}

/** The most that any socket has read. */
export const maxBytesRead = (): number => Math.max(0, ...open.map(({ bytesRead }) => bytesRead));

export function closeAll(): void {
  for (const socket of open) socket.destroy();
  open = [];
}

/** `{"type":"event"…` and not `{"type":"error"…`. */
const isEvent = (payload: Buffer): boolean => payload[9] === 0x65 && payload[10] === 0x76;
const isCaughtUp = (payload: Buffer): boolean => payload[9] === 0x63 && payload[10] === 0x61;
const isError = (payload: Buffer): boolean => payload[9] === 0x65 && payload[10] === 0x72;

function take(payload: Buffer, timed: boolean): void {
  if (isEvent(payload)) {
    events++;
    bytes += payload.length;
    if (timed) note(payload);
    else if (samples.length < keptSamples) samples.push(payload.toString());
    if (events === expected.events) expected.reached();
  } else if (isCaughtUp(payload)) {
    caughtUp++;
  } else if (isError(payload)) {
    failure = payload.toString();
    expected.reached();
  }
}

/** Reads three fields of an event's JSON without parsing the rest. Tapedeck's own events are no frames. */
function note(payload: Buffer): void {
  const at = now();
  const text = payload.toString("latin1", 0, 700);
  const channel = after(text, '"channel":"');
  if (channel === "tapedeck" || after(text, '"part":') !== "0") return;
  log.see(`${after(text, '"source":"').split("/")[1]} ${channel}`, Number(after(text, '"frameOrdinal":')), at);
}

function after(text: string, name: string): string {
  const start = text.indexOf(name) + name.length;
  let end = start;
  while (!stops.has(text.charCodeAt(end))) end++;
  return text.slice(start, end);
}

/** A quote, a comma, and the end of the text. */
const stops: ReadonlySet<number> = new Set([0x22, 0x2c, Number.NaN]);
