import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { kindNoun } from "./kinds.ts";

/** Kinds that earlier versions recorded under another name, by that name. The log keeps the name that was recorded. */
const renamedKinds: ReadonlyMap<string, string> = new Map([["host.described", "inventory.described"]]);

/** Message types of `original`, likewise. The bytes are the same. */
const renamedTypes: ReadonlyMap<string, string> = new Map([
  ["tapedeck.v1.Look", "tapedeck.v1.Observation"],
  ["tapedeck.v1.Things", "tapedeck.v1.Resources"],
]);

/** Converts an event of any earlier version to the form that this version records. */
export function upcast(event: Event): Event {
  const kind = renamedKinds.get(event.kind) ?? event.kind;
  const type = event.original && renamedTypes.get(event.original.type);
  if (kind === event.kind && type === undefined) return event;
  return { ...event, kind, ...(event.original && type && { original: { ...event.original, type } }) };
}

/** The subject nouns under which the log has events of a kind, including the nouns of its former names. */
export function recordedNouns(kind: string): readonly string[] {
  const former = [...renamedKinds].flatMap(([from, to]) => (to === kind ? [kindNoun(from)] : []));
  return [kindNoun(kind), ...former];
}
