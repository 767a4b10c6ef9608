import { Event } from "@tapedeck/proto/skaffold/v2/skaffold";
import type { Moment } from "@tapedeck/shared/time/moment";
import { momentNow } from "@tapedeck/shared/time/moment";
import { ulid } from "ulid";
import type { TapItem } from "../../tap.ts";
import type { ImportedFrame } from "./event-log-file.ts";

/** Stands for the upstream's address where a process is told from its event log file alone. */
export const filedAddress = "file:--event-log-file";

type Append = (item: TapItem) => unknown;

/**
 * One process as its event log file has it, as a tap would have told it: one connection, the frames at their own times, the
 * end. Nothing is told of a process that has said nothing but blank lines, such as `skaffold version`.
 */
export class FiledConnection {
  readonly #append: Append;
  readonly #connection = ulid();
  #blank: ImportedFrame[] = [];
  #last: Moment | undefined;

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
      this.#tell(frames[0]?.moment, { $case: "dialled", value });
    }
    for (const { channel, bytes, moment } of frames) {
      this.#last = moment;
      this.#tell(moment, { $case: "frame", value: { channel, bytes: Buffer.from(bytes), more: false } });
    }
  }

  end(exitCode?: number): void {
    if (this.#last === undefined) return;
    // Where a session is known already that broke off.
    for (const channel of ["v1", "v2", ""]) this.#tell(this.#last, { $case: "channel_filled", value: { channel } });
    const reason = "the end of the event log file";
    const value = { reason, process_ended: true, ...(exitCode !== undefined && { exit_code: exitCode }) };
    this.#tell(this.#last, { $case: "closed", value });
  }

  #tell(at: Moment = momentNow(), what: NonNullable<TapItem["what"]>): void {
    this.#append({ connection: this.#connection, at, what });
  }
}

function isBlank({ channel, bytes }: ImportedFrame): boolean {
  if (channel !== "v2") return false;
  const event = Event.decode(bytes).event_type;
  return event?.$case === "skaffoldLogEvent" && event.value.message.trim() === "";
}
