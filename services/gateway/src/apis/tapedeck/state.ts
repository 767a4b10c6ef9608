import type { Timestamp } from "@tapedeck/proto/google/protobuf/timestamp";
import type { Source } from "@tapedeck/proto/tapedeck/v1/lists";
import { timeToJson } from "@tapedeck/shared/events/time-text";
import type { UpstreamName } from "@tapedeck/shared/upstreams";
import type { CallContext } from "../../call-context.ts";
import type { TimedSemaphore } from "../../limits/semaphore.ts";
import type { QueryClient } from "../../query-client.ts";
import { resolveSource } from "../resolve-source.ts";
import { rktState } from "../rkt/state.ts";
import { skaffoldState } from "../skaffold/state.ts";
import type { StateCollection, UpstreamState } from "../upstream-state.ts";
import { vagrantState } from "../vagrant/state.ts";

/** State of a source in its upstream's own messages, as of one position. */
export type StateRead = {
  readonly source: string;
  /** Undefined when the source has none (at that moment). */
  readonly session?: string;
  readonly sessionEnded: boolean;
  /** For a lost source: when its upstream was last heard of. */
  readonly notHeardSince?: Timestamp;
  /** The position that the rows reflect. */
  readonly position: string;
  /** The moment that was asked for, if any. */
  readonly at?: string;
  readonly upstream: UpstreamName;
  readonly rows: readonly StateRow[];
  /** To be called when the state is no longer held. The end of the call does that, too. */
  readonly done: () => void;
};

export type StateRow = {
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
export type StateAnswer = {
  readonly source: string;
  readonly session: string | null;
  readonly sessionEnded: boolean;
  readonly notHeardSince: string | null;
  readonly position: string;
  readonly at: string | null;
  readonly upstream: string;
  /** The upstream's own JSON; Skaffold: `{"v1":…,"v2":…}`. */
  readonly state: object;
};

export type StateDeps = {
  readonly query: QueryClient;
  /** For states that may be tens of MiB. */
  readonly largeAnswers: TimedSemaphore;
};

/** Reads the state of a source, now or at a moment. Throws TapedeckError. */
export function stateReader({ query, largeAnswers }: StateDeps): (context: CallContext) => Promise<StateRead> {
  return async (context) => {
    const source = await resolveSource(query, context);
    const { isLarge } = upstreamStates[source.upstream as UpstreamName];
    const done = isLarge ? await largeAnswers.acquire(context.signal) : () => {};
    try {
      return { ...(await read(source, context)), done };
    } catch (error) {
      done();
      throw error;
    }
  };

  async function read({ source, ...of }: Source, context: CallContext): Promise<Omit<StateRead, "done">> {
    const upstream = of.upstream as UpstreamName;
    const ask = async ([collection, type]: StateCollection, at: string, session: string) => {
      const { head, rows } = await query.readState({
        workspace: context.workspace,
        source,
        session,
        at,
        min_position: context.minPosition ?? "",
        collection,
      });
      return { head, rows: rows.map((row) => ({ position: head.position, ...row, collection, type })) };
    };
    const [one, ...others] = upstreamStates[upstream].collections;
    const first = await ask(one, context.at ?? "", context.session ?? "");
    // The other collections are read at the first one's position, so that the answer is one moment, and in its session:
    // without a session, Vagrant's jobs would be those of all sessions.
    const { position, session, session_ended, not_heard_since } = first.head;
    const rest = await Promise.all(others.map((collection) => ask(collection, position, session)));
    return {
      source,
      ...(session !== "" && { session }),
      sessionEnded: session_ended,
      ...(not_heard_since && { notHeardSince: not_heard_since }),
      position,
      ...(context.at !== undefined && { at: context.at }),
      upstream,
      rows: [first, ...rest].flatMap(({ rows }) => rows),
    };
  }
}

/** State as JSON. */
export function stateAnswer({ session, at, rows, notHeardSince, ...read }: StateRead): StateAnswer {
  const { source, sessionEnded, position, upstream } = read;
  return {
    source,
    session: session ?? null,
    sessionEnded,
    notHeardSince: notHeardSince === undefined ? null : timeToJson(notHeardSince),
    position,
    at: at ?? null,
    upstream,
    state: stateJson(read.upstream, rows),
  };
}

export function stateJson(upstream: UpstreamName, rows: readonly StateRow[]): object {
  const { collections, toJson } = upstreamStates[upstream];
  return toJson(collections.map(([name]) => rows.filter((row) => row.collection === name).map(({ bytes }) => bytes)));
}

/** Another upstream is another entry here. */
const upstreamStates: Record<UpstreamName, UpstreamState> = {
  skaffold: skaffoldState,
  rkt: rktState,
  vagrant: vagrantState,
};
