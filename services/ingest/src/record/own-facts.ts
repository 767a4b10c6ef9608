import { type GapDetail, Outcome } from "@tapedeck/proto/tapedeck/v1/event";
import type { ControlCall, Imported } from "@tapedeck/proto/tapedeck/v1/recorder";
import { timeToJson } from "@tapedeck/shared/events/json";
import type { Fact, Moment } from "../upstreams/upstream.ts";
import { bufferOf } from "./original.ts";

// What Tapedeck itself says on channel "tapedeck".

/** A reason comes from upstreams and taps, and an event must fit the log however long it is. */
function brief(reason: string): string {
  return reason.length <= 10_000 ? reason : `${reason.slice(0, 9_999).toWellFormed()}…`;
}

export function sourceAdded(developer: string, project: string): Fact {
  return {
    kind: "source.added",
    summary: `${developer}/${project} is recorded`,
    detail: { $case: "source_detail", value: { developer_name: developer, project_name: project } },
  };
}

/** Carries the source's cursor on where the message before it may expire. */
export function sourceCheckpoint(): Fact {
  return { kind: "source.checkpoint", summary: "how far the source is recorded" };
}

type Link = { readonly connection: string; readonly address: string };

export function upstreamConnected({ connection, address }: Link, tap: string): Fact {
  return upstream("upstream.connected", `connected to ${address}`, { connection, address, tap });
}

const importPrefix = "session of ";

/** What stands for the upstream's address where a session comes from a file. */
export function importAddress({ source }: Imported): string {
  return `${importPrefix}${source}`;
}

export function isImport({ address }: Pick<Link, "address">): boolean {
  return address.startsWith(importPrefix);
}

/** A session's events follow that were recorded elsewhere: of the source, as no event of the session tells it. */
export function importBegan(connection: string, tap: string, imported: Imported): Fact {
  const { session, source, recorded_at } = imported;
  const when = recorded_at === undefined ? "" : ` since ${timeToJson(recorded_at)}`;
  const summary = `imports session ${session}, which was recorded${when} as ${source}`;
  return upstream("upstream.connected", summary, { connection, address: importAddress(imported), tap });
}

/** Of a session that had no end when it was exported. */
export function importedEnd({ exported_at }: Imported): Fact {
  const when = exported_at === undefined ? "" : ` (${timeToJson(exported_at)})`;
  return { ...sessionEnded(`it went on when it was exported${when}`), inferred: true };
}

/** The connection turned out to be one to the session's process. */
export function upstreamRestored({ connection, address }: Link): Fact {
  return upstream("upstream.restored", `${address} is taken for the same process as before`, { connection, address });
}

export function upstreamLost({ connection, address }: Link, reason: string, inferred = false): Fact {
  return { ...upstream("upstream.lost", `disconnected: ${reason}`, { connection, address, reason }), inferred };
}

export function channelLost(
  { connection, address }: Link,
  ended: { channel: string; code: number; reason: string },
): Fact {
  const { channel, reason } = ended;
  return upstream("upstream.lost", `channel ${channel} ended: ${reason}`, { connection, address, ...ended });
}

type UpstreamFields = Link & {
  readonly reason?: string;
  readonly channel?: string;
  readonly code?: number;
  readonly tap?: string;
};

function upstream(kind: Fact["kind"], summary: string, fields: UpstreamFields): Fact {
  const value = { channel: "", code: 0, tap: "", ...fields, reason: brief(fields.reason ?? "") };
  return { kind, summary: brief(summary), detail: { $case: "upstream", value } };
}

export type SessionStart = {
  readonly labels: Readonly<Record<string, string>>;
  readonly redact: "on" | "off";
  /** Of the upstream's program, where it is known at the start. */
  readonly version?: string;
};

export function sessionStarted({ labels, redact, version = "" }: SessionStart): Fact {
  return session("session.started", "a new session", {
    labels: { ...labels },
    redact,
    upstream_version: brief(version),
  });
}

export function sessionEnded(reason: string): Fact {
  return session("session.ended", `the session ended: ${brief(reason)}`, { reason: brief(reason) });
}

export type Fingerprint = { readonly at: Moment; readonly sha: string };

/** By this a later connection, or an import, finds the session again. */
export function sessionIdentified(channel: string, { at, sha }: Fingerprint): Fact {
  return {
    ...session(
      "session.identified",
      channel === "identity" ? "known by its own name" : `known by the first message of ${channel}`,
      {
        fingerprint_channel: channel,
        fingerprint_at: at,
        fingerprint_sha256: Buffer.from(sha, "hex"),
      },
    ),
    subject: channel,
  };
}

export function sessionDescribed(channel: string, state: Uint8Array): Fact {
  return {
    ...session("session.described", `state as told by ${channel}`, { states: { [channel]: bufferOf(state) } }),
    subject: channel,
  };
}

type SessionFields = Extract<NonNullable<Fact["detail"]>, { $case: "session_detail" }>["value"];

function session(kind: Fact["kind"], summary: string, fields: Partial<SessionFields>): Fact {
  return {
    kind,
    summary,
    detail: {
      $case: "session_detail",
      value: {
        ...{ labels: {}, redact: "", upstream_version: "", reason: "", states: {} },
        ...{ fingerprint_channel: "", fingerprint_sha256: Buffer.alloc(0), ...fields },
      },
    },
  };
}

export function sessionGap(
  channel: string,
  reason: string,
  { dropped = {}, output }: { readonly dropped?: Readonly<Record<string, bigint>>; readonly output?: GapOutput } = {},
): Fact {
  const told = brief(reason);
  return {
    kind: "session.gap",
    subject: channel,
    // What is missing of a job's output names the job.
    summary: output === undefined ? `something${channel === "" ? "" : ` of ${channel}`} may be missing: ${told}` : told,
    detail: { $case: "gap", value: { channel, reason: told, dropped: { ...dropped }, output } },
  };
}

type GapOutput = GapDetail["output"];

/** Of a channel that repeats only a part to a new connection. */
export function lostBetween(channel: string): Fact {
  return sessionGap(channel, "what was said between two connections may be lost");
}

export function controlRequested(
  call: string,
  { method, request, forwarded_method, forwarded_request, who }: ControlCall,
): Fact {
  return {
    kind: "control.requested",
    subject: method,
    summary: `${who || "somebody"} asks ${method}`,
    detail: {
      $case: "control",
      value: { method, call, who, request, forwarded_method, forwarded_request, code: 0, message: "" },
    },
  };
}

export type ControlResult = {
  /** The step as it went to the upstream. */
  readonly method: string;
  readonly request: Uint8Array;
  readonly code: number;
  readonly message: string;
};

export function controlAnswered(
  call: string,
  asked: ControlCall,
  { method, request, code, message: said }: ControlResult,
): Fact {
  const accepted = code === 0;
  const message = brief(said);
  return {
    kind: accepted ? "control.accepted" : "control.rejected",
    subject: asked.method,
    outcome: accepted ? Outcome.OUTCOME_SUCCEEDED : Outcome.OUTCOME_FAILED,
    summary: accepted ? `${method} was accepted` : `${method} was rejected: ${message}`,
    detail: {
      $case: "control",
      value: {
        ...{ method: asked.method, call, who: asked.who, request: asked.request },
        ...{ forwarded_method: method, forwarded_request: bufferOf(request), code, message },
      },
    },
  };
}
