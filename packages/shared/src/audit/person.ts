import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "nats";
import { namePart } from "../source.ts";
import type { AuditEntry } from "./entry.ts";
import type { SessionExport } from "./session-exports.ts";
import { maxExports } from "./session-exports.ts";
import { auditStream, entryIn, openAuditStore, subjectOf } from "./store.ts";

/** Takes the place of an erased person in the audit log. */
export const erasedPerson = "erased";

export type Person = {
  readonly workspace: string;
  readonly developer: string;
  /** The ids of tokens that are the person's. */
  readonly tokens: readonly string[];
};

/** The entry without the person; undefined: it does not name the person. */
export function withoutPerson(entry: AuditEntry, person: Person): AuditEntry | undefined {
  const { who, by, about } = entry;
  const holds = by !== undefined && person.tokens.includes(by);
  const isCaller = holds || isNameOf(who, person);
  const isToken = typeof about.id === "string" && person.tokens.includes(about.id);
  const values = Object.entries(about).map(([name, value]) => {
    if (isToken && name === "name") return [name, erasedPerson] as const;
    if (typeof value === "number") return [name, value] as const;
    return [
      name,
      typeof value === "string" ? textWithout(value, person) : value.map((text) => textWithout(text, person)),
    ];
  });
  const changed: AuditEntry = {
    ...entry,
    ...(isCaller && { who: erasedPerson }),
    // Issuer and subject of a person; the id of a token names nobody.
    ...(isCaller && by !== undefined && !holds && { by: erasedPerson }),
    about: Object.fromEntries(values),
  };
  return JSON.stringify(changed) === JSON.stringify(entry) ? undefined : changed;
}

/** "alice", "Alice (sso.example)", "alice on this machine". */
function isNameOf(who: string, { developer }: Person): boolean {
  const [name = ""] = who.split(/ \(| on this machine$/);
  return namePart(name) === developer;
}

function textWithout(text: string, { workspace, developer }: Person): string {
  if (text === developer) return erasedPerson;
  const sources = [`${workspace}/${developer}/`, `${developer}/`];
  const own = sources.find((start) => text.startsWith(start));
  return own === undefined ? text : `${own.slice(0, -developer.length - 1)}${erasedPerson}/${text.slice(own.length)}`;
}

/**
 * Replaces the person in all entries of the workspace, and lists who has exported one of the sessions, at most 100. A
 * replaced entry is a copy at the end of the stream; the bytes of the first one are overwritten on the disk. Rejects when the
 * audit log can't be read, or is one that lets nothing be replaced.
 */
export async function removePerson(
  nats: NatsConnection,
  person: Person,
  sessions: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<readonly SessionExport[]> {
  await openAuditStore(nats);
  const jsm = await jetstreamManager(nats, { timeout: 2_000, checkAPI: false });
  const subject = subjectOf(person.workspace);
  const { last_seq } = (await jsm.streams.info(auditStream)).state;
  const exports: SessionExport[] = [];
  for (let seq = 1; !signal.aborted; ) {
    const query = { seq, next_by_subj: subject };
    const message = await jsm.streams.getMessage(auditStream, query);
    if (message === null || message.seq > last_seq) break;
    seq = message.seq + 1;
    const entry = entryIn(message.data);
    if (entry === undefined) continue;
    const changed = withoutPerson(entry, person);
    const { action, about, time, who, kind } = changed ?? entry;
    const exported = action === "session.exported" && Array.isArray(about.sessions) ? about.sessions : [];
    if (exports.length < maxExports && exported.some((session) => sessions.has(session)))
      exports.push({ time, who, kind });
    if (changed === undefined) continue;
    // The id keeps a second attempt soon after a crash from adding it twice.
    await jetstream(nats).publish(subject, JSON.stringify(changed), { msgID: `erased-${message.seq}` });
    await jsm.streams.deleteMessage(auditStream, message.seq, true);
  }
  return exports;
}
