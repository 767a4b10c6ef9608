import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { Observation_One } from "@tapedeck/proto/tapedeck/v1/observation";
import type { InventoryEntry, InventoryRules, Judgement, Times } from "../inventory/inventory-rules.ts";
import type { InventoryKind } from "./extinction.ts";

/**
 * A description's mark of an item beside its entry: it is gone, by an event since the last description; or its end was
 * recorded, and then it was observed again.
 */
export type Mark = "gone" | "returned";

/** An entry as accepted, and how many secrets were masked in it. */
export type Accepted = { readonly bytes: Uint8Array; readonly redacted: number };

/** How the pods, or the images, of a host are judged. Pure; what can't be decoded throws. */
export type HostRules<Memory> = InventoryRules<Memory> & {
  readonly channel: InventoryKind;
  /** For people: "pod". */
  readonly noun: string;
  /** Full names of the messages: the list call's answer, and the answer about one item. */
  readonly listType: string;
  readonly answerType: string;
  /** The entries of a list answer, or of the answer about one. */
  readonly entries: (answer: Uint8Array) => readonly InventoryEntry[] | undefined;
  /** A first list lacks it. */
  readonly missed: (memory: Memory) => Judgement<Memory>;
  /** It is certainly gone; `inferred`: concluded from long silence. */
  readonly lost: (memory: Memory, times: Times, inferred: boolean) => Judgement<Memory>;
  /** The meaning of an error about an item that was requested because a list lacks it. */
  readonly meaningOfError: (one: Observation_One) => "there" | "gone" | "nothing";
  /** For the description; undefined for an item that is absent, or not believed. */
  readonly accepted: (memory: Memory) => Accepted | undefined;
  /** The item's mark in the next description, beside what it lists. */
  readonly mark: (memory: Memory) => Mark | undefined;
  /** The memory from such a mark; `listed`: from its entry in the description. */
  readonly marked: (mark: Mark, listed: Memory | undefined) => Memory | undefined;
  /** The memory without what a reader of the description that was just recorded can't know. */
  readonly described: (memory: Memory) => Memory | undefined;
  /** The memory from an entry of a description. */
  readonly known: (accepted: Uint8Array) => Memory;
  /** The item that an event is about; undefined: none. */
  readonly subject: (event: Event) => string | undefined;
  readonly resume: (memory: Memory | undefined, event: Event) => Memory | undefined;
};
