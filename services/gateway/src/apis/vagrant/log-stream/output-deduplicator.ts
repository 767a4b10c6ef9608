import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { outputIndex } from "../job-stream/job-progress.ts";
import { RecentMap } from "./recent-map.ts";

/** Recognizes output that an earlier session has recorded too, in events that are given in the log's order. */
export class OutputDeduplicator {
  readonly #lastOutputs = new RecentMap<{ readonly session: string; readonly nextIndex: number }>();

  isNew({ event }: RecordedEvent): boolean {
    const { subject: job, session } = event;
    const index = outputIndex(event);
    if (index === undefined) return true;
    const before = this.#lastOutputs.get(job);
    if (before !== undefined && before.session !== session && index < before.nextIndex) return false;
    this.#lastOutputs.set(job, { session, nextIndex: index + 1 });
    return true;
  }
}
