import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { Kind } from "@tapedeck/shared/events/kinds";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";

/** One fact of a frame. Record adds identity, session, ordinals and observed time. */
export type Fact = {
  readonly kind: Kind;
  readonly subject?: string;
  readonly outcome?: Event["outcome"];
  readonly error?: Event["error"];
  readonly summary: string;
  /** The upstream's own time; absent: the time of the observation. */
  readonly occurredAt?: Timestamp;
  /** It happened after this, and not later than it was observed (or than occurredAt, where given). */
  readonly notBefore?: Timestamp;
  readonly operation?: Event["operation"];
  readonly inferred?: boolean;
  readonly detail?: Event["detail"];
};
