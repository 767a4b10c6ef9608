import { GetJobStreamResponse, job_StateToJSON } from "@tapedeck/proto/vagrant/vagrant";
import type { CallContext } from "../../../call-context.ts";
import { type JobStreamOptions, jobStream } from "../job-stream/job-stream.ts";
import type { JobHarness } from "./job-harness.ts";

/** What a message says: "open", "UNKNOWN>RUNNING", "buffered one two", "live three", "complete". */
export function short(bytes: Uint8Array): string {
  const { event } = GetJobStreamResponse.decode(bytes);
  switch (event?.$case) {
    case "state": {
      const { previous, current, canceling } = event.value;
      return `${job_StateToJSON(previous)}>${job_StateToJSON(current)}${canceling ? " canceling" : ""}`;
    }
    case "terminal": {
      const texts = event.value.events.map(({ event: one }) => (one?.$case === "line" ? one.value.msg : "?"));
      return `${event.value.buffered ? "buffered" : "live"} ${texts.join(" ")}`;
    }
    default:
      return event?.$case ?? `unknown ${Buffer.from(bytes).toString("hex")}`;
  }
}

/** Reads a job's stream as it comes. `end`: "OK", or the code of the error that ended it. */
export async function openJob(
  on: JobHarness,
  job_id: string,
  context: Partial<CallContext> = {},
  options: JobStreamOptions = {},
) {
  const { head, messages } = await jobStream(on.deps, { job_id }, on.context(context), options);
  const got: string[] = [];
  const bytes: Buffer[] = [];
  const read = async () => {
    for await (const message of messages) {
      bytes.push(Buffer.from(message));
      got.push(short(message));
    }
  };
  const end = read().then(
    () => "OK",
    (error: { code?: unknown }) => String(error.code ?? error),
  );
  return { head, got, bytes, end };
}
