import type { Timestamp } from "@tapedeck/proto/google/protobuf/timestamp";
import { timeToJson } from "@tapedeck/shared/events/time-text";
import { type SourceName, sourceParts } from "@tapedeck/shared/source";
import type { UpstreamName } from "@tapedeck/shared/upstreams";
import type { CallContext } from "../../call-context.ts";
import type { TimedSemaphore } from "../../limits/semaphore.ts";
import type { QueryClient } from "../../query-client.ts";
import { withSource } from "../resolve-source.ts";
import { rktState } from "../rkt/state.ts";
import { skaffoldState } from "../skaffold/state.ts";
import { timesJson } from "../state-head.ts";
import type { UpstreamState } from "../upstream-state.ts";
import { vagrantState } from "../vagrant/state.ts";

/** State of a source in its upstream's own messages, as of one position. */
export type LoadedState = {
  readonly source: string;
  /** Undefined when the source has none (at that moment). */
  readonly session?: string;
  readonly sessionEnded: boolean;
  /** For a lost source, or where a list is late: when its upstream was last heard from. */
  readonly notHeardSince?: Timestamp;
  /** When each collection of a polled source was heard last. */
  readonly heardAt: Readonly<Record<string, Timestamp>>;
  /** The position that the rows reflect. */
  readonly position: string;
  /** The moment that was asked for, if any. */
  readonly at?: string;
  readonly upstream: UpstreamName;
  readonly rows: readonly StateItem[];
  /** To be called when the state is no longer held. The end of the call does that, too. */
  readonly done: () => void;
};

export type StateItem = {
  /** "skaffold.v1", "rkt.pods" …: see query.proto. */
  readonly collection: string;
  readonly key: string;
  /** Full name of the upstream's message. */
  readonly type: string;
  readonly bytes: Uint8Array;
  /** Position of the event that made the row, or of the whole state. */
  readonly position: string;
};

/** State in the HTTP API. */
export type StateReply = {
  readonly source: string;
  readonly session: string | null;
  readonly sessionEnded: boolean;
  readonly notHeardSince: string | null;
  readonly heardAt: Readonly<Record<string, string>>;
  readonly position: string;
  readonly at: string | null;
  readonly upstream: string;
  /** The upstream's own JSON; Skaffold: `{"v1":…,"v2":…}`. */
  readonly state: object;
};

export type StateApiDeps = {
  readonly query: QueryClient;
  /** For states that may be tens of MiB. */
  readonly largeAnswers: TimedSemaphore;
};

/** Reads the state of a source, now or at a moment. Throws TapedeckError. */
export function stateReader({ query, largeAnswers }: StateApiDeps): (context: CallContext) => Promise<LoadedState> {
  return (context) =>
    withSource(query, context, undefined, async (source, readState) => {
      const upstream = sourceParts(source).upstream as UpstreamName;
      const done = upstreamStates[upstream].isLarge ? await largeAnswers.acquire(context.signal) : () => {};
      try {
        return { ...(await readWhole(readState, { source, upstream }, context)), done };
      } catch (error) {
        done();
        throw error;
      }
    });
}

/** All collections in one question, so that they are of one moment and one session. */
async function readWhole(
  readState: QueryClient["readState"],
  { source, upstream }: { readonly source: SourceName; readonly upstream: UpstreamName },
  { workspace, session: named = "", at, minPosition = "" }: CallContext,
): Promise<Omit<LoadedState, "done">> {
  const { collections } = upstreamStates[upstream];
  const [first, ...also] = collections.map(([name]) => name);
  const request = { workspace, source, session: named, at: at ?? "", min_position: minPosition };
  const { head, rows } = await readState({ ...request, collection: first ?? "", also });
  const { position, session, session_ended, not_heard_since, heard_at } = head;
  const types = new Map(collections);
  return {
    source,
    ...(session !== "" && { session }),
    sessionEnded: session_ended,
    ...(not_heard_since && { notHeardSince: not_heard_since }),
    heardAt: heard_at,
    position,
    ...(at !== undefined && { at }),
    upstream,
    rows: rows.map(({ collection = "", ...row }) => ({
      position,
      ...row,
      collection,
      type: types.get(collection) ?? "",
    })),
  };
}

/** State as JSON. */
export function stateAnswer({ session, at, rows, notHeardSince, heardAt, ...read }: LoadedState): StateReply {
  const { source, sessionEnded, position, upstream } = read;
  return {
    source,
    session: session ?? null,
    sessionEnded,
    notHeardSince: notHeardSince === undefined ? null : timeToJson(notHeardSince),
    heardAt: timesJson(heardAt),
    position,
    at: at ?? null,
    upstream,
    state: stateJson(read.upstream, rows),
  };
}

export function stateJson(upstream: UpstreamName, rows: readonly StateItem[]): object {
  const { collections, toJson } = upstreamStates[upstream];
  return toJson(collections.map(([name]) => rows.filter((row) => row.collection === name).map(({ bytes }) => bytes)));
}

/** Another upstream is another entry here. */
const upstreamStates: Record<UpstreamName, UpstreamState> = {
  skaffold: skaffoldState,
  rkt: rktState,
  vagrant: vagrantState,
};
