import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { Look_One } from "@tapedeck/proto/tapedeck/v1/look";
import type { Entry } from "@tapedeck/shared/rkt/entries";
import type { ObservationOutcome } from "../inventory/observing.ts";
import type { Accepted, Mark } from "./describe-inventory.ts";
import type { Kind } from "./extinction.ts";
import type { Times } from "./pods/pod-change.ts";

export type Frame = Extract<ObservationOutcome, { what: "frame" }>;

/** One pod or image as it was answered, masked. */
export type Sighting = Times & { readonly id: string; readonly bytes: Uint8Array; readonly redacted: number };

/** What is remembered from now on (undefined: nothing), and what it tells. */
export type Step<Memory> = { readonly memory: Memory | undefined; readonly seen: readonly Frame[] };

/**
 * How the things of one channel are judged, each by itself and by what is remembered of it. Pure; what can't be read
 * throws.
 */
export type Things<Memory> = {
  readonly channel: Kind;
  /** For people: "pod". */
  readonly noun: string;
  /** Full names of the messages: the list call's answer, the answer about one, and the thing itself. */
  readonly listType: string;
  readonly answerType: string;
  readonly entryType: string;
  /** Of a list answer, or of the answer about one. */
  readonly entries: (answer: Uint8Array) => readonly Entry[] | undefined;
  /** At the first look of all: taken as it is, without a fact. */
  readonly begin: (sighting: Sighting) => Memory;
  readonly see: (memory: Memory | undefined, sighting: Sighting) => Step<Memory>;
  /** It has been seen but not believed yet, so it must be seen again even if nothing changes. */
  readonly isHeld: (memory: Memory) => boolean;
  /** The host has it, as far as is known: a look without it is news. */
  readonly isThere: (memory: Memory) => boolean;
  /** A first look missed it. */
  readonly missed: (memory: Memory) => Step<Memory>;
  /** It is gone for certain; `inferred`: concluded from long silence. */
  readonly lost: (memory: Memory, times: Times, inferred: boolean) => Step<Memory>;
  /** What an error says of a thing that was asked for because a look missed it. */
  readonly errorSays: (one: Look_One) => "there" | "gone" | "nothing";
  /** For the description; undefined for what is not there, or not believed. */
  readonly accepted: (memory: Memory) => Accepted | undefined;
  /** What the next description names it as, beside what it lists. */
  readonly mark: (memory: Memory) => Mark | undefined;
  /** From such a mark; `listed`: from its entry in the description. */
  readonly marked: (mark: Mark, listed: Memory | undefined) => Memory | undefined;
  /** What a reader of the description that was just given can't know is forgotten. */
  readonly described: (memory: Memory) => Memory | undefined;
  /** From an entry of a description. */
  readonly known: (accepted: Uint8Array) => Memory;
  /** Of which thing an event tells; undefined: of none. */
  readonly subject: (event: Event) => string | undefined;
  readonly resume: (memory: Memory | undefined, event: Event) => Memory | undefined;
};
