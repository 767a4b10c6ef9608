import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { ownChannel } from "@tapedeck/shared/events/kinds";
import { importAddressPrefix, importedEndReason } from "../own-facts/import-facts.ts";

export type MovedTo = {
  /** Its id here. */
  readonly session: string;
  /** The one under which it was recorded first. */
  readonly origin: string;
  /** Added to those that it has. */
  readonly labels: Readonly<Record<string, string>>;
};

/** An event of an imported session, as one of the session that it becomes here. */
export function movedTo({ session, origin, labels }: MovedTo, event: Event): Event {
  const { kind, detail } = event;
  if (kind !== "session.started" || detail?.$case !== "session_detail") return { ...withoutDamage(event), session };
  const { origin_session: _, ...rest } = detail.value;
  const value = {
    ...rest,
    labels: { ...rest.labels, ...labels },
    ...(origin !== session && { origin_session: origin }),
  };
  return { ...event, session, detail: { ...detail, value } };
}

/**
 * Another log's losses have no meaning in this one: its positions, and the ordinals of its own channel, are different
 * here.
 */
export function withoutDamage(event: Event): Event {
  const { detail } = event;
  if (detail?.$case !== "gap" || detail.value.lost === undefined) return event;
  const { lost: _, ...value } = detail.value;
  return { ...event, detail: { ...detail, value } };
}

/**
 * Events added to a session by an import, here or where it was exported, and not by the recorder: that it ended where
 * its export ended, and that it continues with a later one.
 */
export function isOfImport({ channel, kind, inferred, detail }: Event): boolean {
  if (channel !== ownChannel) return false;
  if (detail?.$case === "upstream") return detail.value.address.startsWith(importAddressPrefix);
  if (kind !== "session.ended" || detail?.$case !== "session_detail") return false;
  return inferred && detail.value.reason.startsWith(importedEndReason);
}
