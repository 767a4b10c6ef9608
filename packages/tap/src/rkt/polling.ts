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
import { backoff, pause } from "@tapedeck/shared/sync/delay";
import { pauseMs } from "../polling/pace.ts";
import type { Connection } from "./connection.ts";
import type { Doubts } from "./list-doubts.ts";

export type Seen = NonNullable<Look["seen"]>;

export type PollOptions = {
  readonly what: Polled;
  readonly connection: Pick<Connection, "signal" | "call">;
  readonly emit: (seen: Seen) => void;
  readonly doubts: Doubts;
  readonly intervalMs: number;
  /** What both lists together may cost of one of the host's processors: 0.02 is 2 %. */
  readonly load: number;
  /** See `pauseMs`. */
  readonly roundTripMs: number;
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
  /** Of what both lists together may cost; pods are many, and change. */
  readonly share: number;
};

export const polledPods: Polled = {
  list: PublicAPIService.listPods.path,
  listRequest: ListPodsRequest.encode({ filters: [], detail: true }).finish(),
  entries: podEntries,
  inspect: PublicAPIService.inspectPod.path,
  inspectRequest: (id) => InspectPodRequest.encode({ id }).finish(),
  share: 0.8,
};

export const polledImages: Polled = {
  list: PublicAPIService.listImages.path,
  listRequest: ListImagesRequest.encode({ filters: [], detail: true }).finish(),
  entries: imageEntries,
  inspect: PublicAPIService.inspectImage.path,
  inspectRequest: (id) => InspectImageRequest.encode({ id }).finish(),
  share: 0.2,
};

/** So many looks without a change are back to the interval. */
const quietLooks = 5;
/** What they took says what a look costs. */
const recentLooks = 5;
/** All of it comes again, for a recorder that has not got what was the same since. */
const wholeEveryMs = 10_000;
const mostAsked = 50;
/** After an error. A call that we gave up goes on waiting inside the server: they must not become many. */
const failedMs = { first: 1_000, longest: 30_000 };

/** Looks at the pods or at the images again and again, one call after the other, until the connection is over. */
export async function poll(options: PollOptions): Promise<void> {
  const { what, connection, emit, doubts, intervalMs, load, roundTripMs, timeoutMs, onList } = options;
  const { signal } = connection;
  const afterFailure = backoff(failedMs.first, failedMs.longest);
  let last: { readonly bytes: Buffer; readonly at: number } | undefined;
  let quiet = 0;
  let tookMs: readonly number[] = [];

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
    const askedMs = await ask(doubtful, options);
    quiet = changed ? 0 : quiet + 1;
    tookMs = [...tookMs, answered - asked].slice(-recentLooks);
    const isChanging = quiet < quietLooks;
    const share = load * what.share;
    await pause(pauseMs({ tookMs, askedMs, roundTripMs, share, intervalMs, isChanging }), signal);
  }
}

/** Resolves with what each answer took, in ms. */
async function ask(ids: readonly string[], options: PollOptions): Promise<readonly number[]> {
  const { what, connection, emit, doubts, timeoutMs } = options;
  const end = performance.now() + timeoutMs;
  const tookMs: number[] = [];
  for (const id of ids.slice(0, mostAsked)) {
    const asked = performance.now();
    if (end <= asked) break;
    const { code, message, response } = await connection.call(what.inspect, what.inspectRequest(id), end - asked);
    if (connection.signal.aborted) break;
    tookMs.push(performance.now() - asked);
    doubts.answered(id, { code, message });
    emit({ $case: "one", value: { id, bytes: response, code, message } });
  }
  return tookMs;
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
