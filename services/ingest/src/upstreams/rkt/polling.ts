import { status } from "@grpc/grpc-js";
import {
  InspectImageRequest,
  InspectPodRequest,
  ListImagesRequest,
  ListPodsRequest,
  PublicAPIService,
} from "@tapedeck/proto/rkt/v1alpha/rkt";
import type { Look } from "@tapedeck/proto/tapedeck/v1/look";
import { type Entry, imageEntries, podEntries } from "@tapedeck/shared/rkt/entries";
import { backoff, pause } from "@tapedeck/shared/streams/pause";
import type { Connection } from "./connection.ts";
import type { Doubts } from "./list-doubts.ts";

export type Seen = NonNullable<Look["seen"]>;

export type PollOptions = {
  readonly what: Polled;
  readonly connection: Pick<Connection, "signal" | "call">;
  readonly emit: (seen: Seen) => void;
  readonly doubts: Doubts;
  readonly intervalMs: number;
  /** For each answer, and for all that is asked about one look together. */
  readonly timeoutMs: number;
  /** After a list has come, before anything is asked about it. */
  readonly onList?: () => void;
};

export type Polled = {
  readonly list: string;
  readonly listRequest: Uint8Array;
  readonly entries: (list: Uint8Array) => readonly Entry[] | undefined;
  readonly inspect: string;
  readonly inspectRequest: (id: string) => Uint8Array;
};

export const polledPods: Polled = {
  list: PublicAPIService.listPods.path,
  listRequest: ListPodsRequest.encode({ filters: [], detail: true }).finish(),
  entries: podEntries,
  inspect: PublicAPIService.inspectPod.path,
  inspectRequest: (id) => InspectPodRequest.encode({ id }).finish(),
};

export const polledImages: Polled = {
  list: PublicAPIService.listImages.path,
  listRequest: ListImagesRequest.encode({ filters: [], detail: true }).finish(),
  entries: imageEntries,
  inspect: PublicAPIService.inspectImage.path,
  inspectRequest: (id) => InspectImageRequest.encode({ id }).finish(),
};

/** While something changes; what rkt shows for 100 ms only is missed anyway. */
const busyMs = 200;
/** So many looks without a change are back to the interval. */
const quietLooks = 5;
/** All of it comes again, for a recorder that has not got what was the same since. */
const wholeEveryMs = 10_000;
const mostAsked = 50;
/** After an error. A call that we gave up goes on waiting inside the server: they must not become many. */
const failedMs = { first: 1_000, longest: 30_000 };

/** Looks at the pods or at the images again and again, one call after the other, until the connection is over. */
export async function poll(options: PollOptions): Promise<void> {
  const { what, connection, emit, doubts, intervalMs, timeoutMs, onList } = options;
  const { signal } = connection;
  const afterFailure = backoff(failedMs.first, failedMs.longest);
  let last: { readonly bytes: Buffer; readonly at: number } | undefined;
  let quiet = 0;

  while (!signal.aborted) {
    const asked = performance.now();
    const { code, message, response } = await connection.call(what.list, what.listRequest, timeoutMs);
    if (signal.aborted) return;
    if (code !== status.OK) {
      emit({ $case: "failed", value: { code, message } });
      await pause(afterFailure.next(), signal);
      continue;
    }
    afterFailure.reset();
    const answered = performance.now();
    const changed = last === undefined || !isSameList(what, last.bytes, response);
    if (changed || last === undefined || answered - last.at >= wholeEveryMs) {
      last = { bytes: response, at: answered };
      emit({ $case: "all", value: response });
    } else {
      emit({ $case: "same", value: true });
    }
    const doubtful = changed ? doubts.see(response) : doubts.again();
    onList?.();
    await ask(doubtful, options);
    quiet = changed ? 0 : quiet + 1;
    const pace = quiet < quietLooks ? Math.min(busyMs, intervalMs) : intervalMs;
    // A slow server has half of the time for itself.
    await pause(Math.max(pace, answered - asked), signal);
  }
}

async function ask(ids: readonly string[], { what, connection, emit, doubts, timeoutMs }: PollOptions): Promise<void> {
  const end = performance.now() + timeoutMs;
  for (const id of ids.slice(0, mostAsked)) {
    const left = end - performance.now();
    if (left <= 0) return;
    const { code, message, response } = await connection.call(what.inspect, what.inspectRequest(id), left);
    if (connection.signal.aborted) return;
    doubts.answered(id, { code, message });
    emit({ $case: "one", value: { id, bytes: response, code, message } });
  }
}

/** The same entries, as often, in whatever order; bytes that are no list equal nothing but themselves. */
export function isSameList({ entries }: Pick<Polled, "entries">, one: Buffer, other: Buffer): boolean {
  if (one.equals(other)) return true;
  if (one.byteLength !== other.byteLength) return false;
  const [left, right] = [one, other].map((list) =>
    entries(list)
      ?.map(({ bytes }) => bytes)
      .sort(Buffer.compare),
  );
  if (left === undefined || right === undefined || left.length !== right.length) return false;
  return left.every((entry, index) => right[index]?.equals(entry));
}
