import { type GapDetail, type OrdinalRange, Outcome } from "@tapedeck/proto/tapedeck/v1/event";
import type { ControlCall, Imported } from "@tapedeck/proto/tapedeck/v1/recorder";
import { timeToJson } from "@tapedeck/shared/events/json";
import type { Moment } from "@tapedeck/shared/time/moment";
import type { Fact } from "../normalize/fact.ts";
import { bufferOf } from "./frames/original.ts";

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

export const importAddressPrefix = "session of ";

/** What stands for the upstream's address where a session comes from a file. */
export function importAddress({ source }: Imported): string {
  return `${importAddressPrefix}${source}`;
}

export function isImport({ address }: Pick<Link, "address">): boolean {
  return address.startsWith(importAddressPrefix);
}

/** A session's events follow that were recorded elsewhere: of the source, as no event of the session tells it. */
export function importBegan(connection: string, tap: string, imported: Imported): Fact {
  const { session, source, recorded_at } = imported;
  const when = recorded_at === undefined ? "" : ` since ${timeToJson(recorded_at)}`;
  const summary = `imports session ${session}, which was recorded${when} as ${source}`;
  return upstream("upstream.connected", summary, { connection, address: importAddress(imported), tap });
}

/** A later export of a session that an import has ended. */
export function importGoesOn(connection: string, imported: Imported): Fact {
  return upstreamRestored({ connection, address: importAddress(imported) });
}

export const importedEndReason = "it went on when it was exported";

/** Of a session that had no end when it was exported. */
export function importedEnd({ exported_at }: Imported): Fact {
  const when = exported_at === undefined ? "" : ` (${timeToJson(exported_at)})`;
  return { ...sessionEnded(`${importedEndReason}${when}`), inferred: true };
}

/** Its tap has gone without a word and has not come back. */
export function upstreamUnheard({ connection, address }: Link): Fact {
  const reason = "its tap has gone without a word and has not come back";
  const value = { ...upstreamValue({ connection, address, reason }), unheard: true };
  return {
    kind: "upstream.lost",
    summary: `not heard: ${reason}`,
    inferred: true,
    detail: { $case: "upstream", value },
  };
}

/** The same tap is back, and its connection goes on. */
export function upstreamHeardAgain({ connection, address }: Link): Fact {
  const value = { ...upstreamValue({ connection, address }), unheard: true };
  return {
    kind: "upstream.restored",
    summary: "its tap is back",
    inferred: true,
    detail: { $case: "upstream", value },
  };
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
  return { kind, summary: brief(summary), detail: { $case: "upstream", value: upstreamValue(fields) } };
}

function upstreamValue(fields: UpstreamFields) {
  return { channel: "", code: 0, tap: "", ...fields, reason: brief(fields.reason ?? "") };
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

/** It is over as far as anybody can tell, and nobody saw how or when it ended. */
export function sessionLost(reason: string): Fact {
  const told = brief(reason);
  return { ...session("session.lost", `the session was lost: ${told}`, { reason: told }), inferred: true };
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

/** `adopted`: the state becomes all of this, because the events do not tell it. */
export function sessionDescribed(channel: string, state: Uint8Array, adopted = false): Fact {
  const summary = adopted ? `state as told by ${channel}, which its events do not tell` : `state as told by ${channel}`;
  const states = { [channel]: bufferOf(state) };
  return { ...session("session.described", summary, { states, ...(adopted && { adopted }) }), subject: channel };
}

/** `erased`: what of Tapedeck's own channel went with it. */
export function sessionErased(id: string, ordinals: readonly OrdinalRange[]): Fact {
  return {
    ...session("session.erased", "the session was erased", { erased: { ordinals: [...ordinals] } }),
    subject: id,
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
  { dropped = {}, output, open = false }: GapFields = {},
): Fact {
  const told = brief(reason);
  return {
    kind: "session.gap",
    subject: channel,
    // What is missing of a job's output names the job.
    summary: output === undefined ? `something${channel === "" ? "" : ` of ${channel}`} may be missing: ${told}` : told,
    detail: { $case: "gap", value: { channel, reason: told, dropped: { ...dropped }, output, ...(open && { open }) } },
  };
}

type GapFields = {
  readonly dropped?: Readonly<Record<string, bigint>>;
  readonly output?: GapDetail["output"];
  /** What is missing may still be had. */
  readonly open?: boolean;
};

/** What the open gap of a channel missed is in the log. */
export function gapFilled(channel: string): Fact {
  const of = channel === "" ? "" : ` of ${channel}`;
  const value = { channel, reason: "", dropped: {}, output: undefined };
  return {
    kind: "session.gap_filled",
    subject: channel,
    summary: `all${of} that was missing has been recorded`,
    detail: { $case: "gap", value },
  };
}

/** Damage to the log itself; the session may be empty. */
export function lostFromLog(lost: NonNullable<GapDetail["lost"]>): Fact {
  const { after, before, events, ordinals } = lost;
  const channels = [...new Set(ordinals.map((range) => range.channel))];
  const channel = channels.length === 1 ? (channels[0] ?? "") : "";
  const where = after === "" ? `before ${before}` : before === "" ? `after ${after}` : `between ${after} and ${before}`;
  const reason = `the log has lost ${events} ${events === 1n ? "event" : "events"} ${where}: its files were damaged`;
  const value = { channel, reason, dropped: {}, lost };
  return { kind: "session.gap", subject: channel, summary: reason, detail: { $case: "gap", value } };
}

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
