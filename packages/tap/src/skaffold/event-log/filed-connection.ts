import { Event } from "@tapedeck/proto/skaffold/v2/skaffold";
import type { Closed } from "@tapedeck/proto/tapedeck/v1/recorder";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { timestampNow } from "@tapedeck/shared/time/timestamp";
import { ulid } from "ulid";
import type { TapItem } from "../../tap.ts";
import type { ImportedFrame } from "./event-log-file.ts";

/** The address of a process that is recorded from its event log file alone. */
const filedAddress = "file:--event-log-file";

/** How the process that wrote the file ended. */
export type ProcessEnd = Partial<Pick<Closed, "exit_code" | "command_run">>;

type Append = (item: TapItem) => unknown;

/**
 * Emits one process from its event log file in the way a tap would have: one connection, the frames at their own times, and
 * the end. Emits nothing for a process that wrote only blank lines, such as `skaffold version`.
 */
export class FiledConnection {
  readonly #append: Append;
  readonly #connection = ulid();
  #blank: ImportedFrame[] = [];
  #last: Timestamp | undefined;

  constructor(append: Append) {
    this.#append = append;
  }

  frame(frame: ImportedFrame): void {
    if (this.#last === undefined && isBlank(frame)) {
      this.#blank.push(frame);
      return;
    }
    const frames = [...this.#blank.splice(0), frame];
    if (this.#last === undefined) {
      const value = { address: filedAddress, channels: ["v1", "v2"] };
      this.#emit(frames[0]?.timestamp, { $case: "dialled", value });
    }
    for (const { channel, bytes, timestamp } of frames) {
      this.#last = timestamp;
      this.#emit(timestamp, { $case: "frame", value: { channel, bytes: Buffer.from(bytes), more: false } });
    }
  }

  /** `ended`: what is known of the end of its process. */
  end(ended: ProcessEnd = {}): void {
    if (this.#last === undefined) return;
    // For a recorded session of this process that has gaps.
    for (const channel of ["v1", "v2", ""]) this.#emit(this.#last, { $case: "channel_filled", value: { channel } });
    const reason = "the end of the event log file";
    const value = { reason, process_ended: true, ...ended };
    this.#emit(this.#last, { $case: "closed", value });
  }

  #emit(at: Timestamp = timestampNow(), what: NonNullable<TapItem["what"]>): void {
    this.#append({ connection: this.#connection, at, what });
  }
}

function isBlank({ channel, bytes }: ImportedFrame): boolean {
  if (channel !== "v2") return false;
  const event = Event.decode(bytes).event_type;
  return event?.$case === "skaffoldLogEvent" && event.value.message.trim() === "";
}
