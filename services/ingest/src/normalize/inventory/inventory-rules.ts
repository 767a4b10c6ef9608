import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import type { ObservationOutcome } from "./observing.ts";

export type FrameOutcome = Extract<ObservationOutcome, { what: "frame" }>;

/** When something was observed, and the last observation before that which would have shown it otherwise. */
export type Times = { readonly at: Timestamp; readonly after: Timestamp | undefined };

/** An item of a list, encoded as the upstream encoded it. */
export type InventoryEntry = { readonly id: string; readonly bytes: Uint8Array };

/** An item as it was answered, masked. */
export type Sighting = Times & InventoryEntry & { readonly redacted: number };

/** What to remember of an item from now on (undefined: nothing), and what to record about it. */
export type Judgement<Memory> = {
  readonly memory: Memory | undefined;
  readonly outcomes: readonly FrameOutcome[];
};

/**
 * How an upstream's items are judged, each by itself and by what is remembered of it. A message that can't be decoded
 * throws.
 */
export type InventoryRules<Memory> = {
  /** Full name of an item's message. */
  readonly entryType: string;
  /** One list proves what it shows. Otherwise an observation may have concealed a change until a later one showed it. */
  readonly isConclusive: boolean;
  /** The memory of an item in the first list of all, which reports nothing. */
  readonly adopt: (sighting: Sighting) => Memory;
  readonly judge: (memory: Memory | undefined, sighting: Sighting) => Judgement<Memory>;
  /** The item was observed but is not believed yet, so it is judged again even if its bytes are the same. */
  readonly isHeld: (memory: Memory) => boolean;
  /** The upstream has the item, as far as is known: a list without it is news. */
  readonly isPresent: (memory: Memory) => boolean;
};
