import type { ChangedFiles, OrdinalRange } from "@tapedeck/proto/tapedeck/v1/event";
import type { Labelled } from "@tapedeck/proto/tapedeck/v1/recorder";
import { asBuffer } from "@tapedeck/shared/as-buffer";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import type { Fact } from "../../normalize/fact.ts";
import { shorten } from "./shorten.ts";

export type SessionStart = {
  readonly labels: Readonly<Record<string, string>>;
  readonly redact: "on" | "off";
  /** Version of the upstream's program, if known at the start. */
  readonly version?: string;
};

export function sessionStarted({ labels, redact, version = "" }: SessionStart): Fact {
  return sessionFact("session.started", "a new session", {
    labels: { ...labels },
    redact,
    upstream_version: shorten(version),
  });
}

/** `ended`: what the tap knows of the end of the process and of the command around it. */
export function sessionEnded(reason: string, ended: Pick<SessionFields, "exit_code" | "command_run"> = {}): Fact {
  return sessionFact("session.ended", `the session ended: ${shorten(reason)}`, { reason: shorten(reason), ...ended });
}

/** `labels`: those that may differ from the session's own since a dev loop began; "": the session has none of this name. */
export function sessionLabelled({ labels, since, changed_files }: Labelled): Fact {
  const values = Object.entries(labels).map(([name, value]) => (value === "" ? `no ${name}` : `${name} ${value}`));
  const changed = changed_files === undefined ? "" : `changed: ${filesText(changed_files)}; `;
  const summary = shorten(`${changed}labels: ${values.join(", ")}`);
  return {
    ...sessionFact("session.labelled", summary, { labels: { ...labels }, changed_files }),
    ...(since && { occurredAt: since }),
  };
}

function filesText({ files, more }: ChangedFiles): string {
  const named = files.slice(0, 3).map(({ path }) => path);
  const others = files.length - named.length + more;
  return others === 0 ? named.join(", ") : `${named.join(", ")} and ${others} more`;
}

/** The session is presumably over, but its end was not observed. */
export function sessionLost(reason: string): Fact {
  const shortened = shorten(reason);
  return {
    ...sessionFact("session.lost", `the session was lost: ${shortened}`, { reason: shortened }),
    inferred: true,
  };
}

export type Fingerprint = { readonly at: Timestamp; readonly sha: string };

/** A later connection or import finds the session by this fingerprint. */
export function sessionIdentified(channel: string, { at, sha }: Fingerprint): Fact {
  return {
    ...sessionFact(
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

/** `adopted`: this becomes the recorded state, because the events do not lead to it. */
export function sessionDescribed(channel: string, state: Uint8Array, adopted = false): Fact {
  const summary = adopted
    ? `state as reported by ${channel}, which its events do not show`
    : `state as reported by ${channel}`;
  const states = { [channel]: asBuffer(state) };
  return { ...sessionFact("session.described", summary, { states, ...(adopted && { adopted }) }), subject: channel };
}

/**
 * `ordinals`: the events of Tapedeck's own channel that were erased with the session. `isExpired`: because it ended longer ago than
 * its workspace keeps facts.
 */
export function sessionErased(id: string, ordinals: readonly OrdinalRange[], isExpired = false): Fact {
  const summary = isExpired ? "the session was older than its workspace keeps facts" : "the session was erased";
  return {
    ...sessionFact("session.erased", summary, { erased: { ordinals: [...ordinals], expired: isExpired } }),
    subject: id,
  };
}

type SessionFields = Extract<NonNullable<Fact["detail"]>, { $case: "session_detail" }>["value"];

function sessionFact(kind: Fact["kind"], summary: string, fields: Partial<SessionFields>): Fact {
  return {
    kind,
    summary,
    detail: {
      $case: "session_detail",
      value: {
        labels: {},
        redact: "",
        upstream_version: "",
        reason: "",
        states: {},
        fingerprint_channel: "",
        fingerprint_sha256: Buffer.alloc(0),
        ...fields,
      },
    },
  };
}
