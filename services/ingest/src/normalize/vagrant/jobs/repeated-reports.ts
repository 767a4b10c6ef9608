import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { timestampKey } from "@tapedeck/shared/time/timestamp";
import type { ObservationOutcome } from "../../inventory/observing.ts";
import { completeEvent } from "./job-output.ts";

/**
 * Keeps events about unreadable bytes and unknown messages from being recorded twice, when the recorder before this one
 * was stopped right after it recorded them. Nothing that is remembered of jobs shows that they are in the log.
 */
export class RepeatedReports {
  /** The observation of the last such events of the log, and how many of it have not come again. */
  #at = "";
  #count = 0;

  resume(event: Event): void {
    if (event.kind !== "upstream.unreadable" && !isUnknownMessage(event)) return;
    const at = timestampKey(event.observed_at);
    this.#count = at === this.#at ? this.#count + 1 : 1;
    this.#at = at;
  }

  /** The outcome, unless the log has it. */
  once(outcome: ObservationOutcome, at: Timestamp): readonly ObservationOutcome[] {
    if (this.#count === 0 || this.#at !== timestampKey(at)) return [outcome];
    this.#count -= 1;
    return [];
  }
}

function isUnknownMessage({ detail }: Event): boolean {
  return detail?.$case === "mirror" && detail.value.what !== completeEvent;
}
