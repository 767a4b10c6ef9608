import { z } from "zod";
import { callerKind } from "./caller-kind.ts";

/**
 * The actions in the audit log: sign-ins, and whatever changed something or took much away. Reading is not recorded.
 */
export const auditActions = [
  "sign-in.accepted",
  "sign-in.refused",
  "control.called",
  "control.refused",
  "token.created",
  "token.revoked",
  "token.renewed",
  "session.exported",
  "tables.exported",
  "session.erasure-begun",
  "session.erased",
  "developer.erasure-begun",
  "developer.erased",
  "workspace.removed",
  "workspace.retention-changed",
  "sink.added",
  "sink.paused",
  "sink.resumed",
  "sink.rewound",
  "sink.target-changed",
  "sink.removed",
  "sink.tested",
  "sink.parked-retried",
  "sink.parked-dropped",
  "tables.rebuilt",
  "log.backed-up",
  "log.restored",
  "log.epoch-renewed",
  "sql-role.created",
  "sql-role.dropped",
] as const;

/** The longest text of an entry; what is longer is cut. */
const textLength = 300;

/** One entry, as it is stored and as `/api/v1/audit` gives it. It never holds a token, a JWT or a cookie. */
export const auditEntry = z.object({
  /** RFC 3339, UTC, by the clock of the process that wrote it. */
  time: z.iso.datetime(),
  action: z.enum(auditActions),
  kind: callerKind.describe(
    "What the caller is, whatever its name looks like: a `token`, one that a `machine` holds, a `person` of the identity provider, an `address` without credentials, a `local` user of the server's machine, or `several` callers that one entry counts.",
  ),
  /** The name of a token, "alice (sso.example)" for a person of the identity provider, an address, or who is on the machine itself. `kind` says which. */
  who: z.string(),
  /** The workspace that it concerns; "-" for none, such as that of a refused caller. */
  workspace: z.string(),
  /** The id of the token, or issuer and subject of the person. */
  by: z.string().optional(),
  /** The object of the action: docs/team.md lists it. */
  about: z.record(z.string(), z.union([z.string(), z.number(), z.array(z.string())])),
});

/** An entry of the audit log: an action, its time and its object, and who did it. */
export type AuditEntry = Readonly<z.infer<typeof auditEntry>>;

/** Makes an entry of now. Texts are bounded, because callers have written some of them. */
export function auditEntryOf({ about, who, ...entry }: Omit<AuditEntry, "time">, now = new Date()): AuditEntry {
  const cutAbout = Object.entries(about).map(([name, value]) => {
    if (typeof value === "number") return [name, value] as const;
    return [name, typeof value === "string" ? cut(value) : value.slice(0, 50).map(cut)] as const;
  });
  return { time: now.toISOString(), ...entry, who: cut(who), about: Object.fromEntries(cutAbout) };
}

function cut(text: string): string {
  return text.length <= textLength ? text : `${text.slice(0, textLength).replace(/[\uD800-\uDBFF]$/, "")}…`;
}
