import type { NatsConnection } from "nats";
import { ensureEnds, type LogEnds, type LogEndsOptions, openEnds } from "../record/journal/ends.ts";

/** The ends of a log on a NATS that no ingest has used. */
export async function openTestEnds(nc: NatsConnection, options: LogEndsOptions): Promise<LogEnds> {
  await ensureEnds(nc);
  return openEnds(nc, options);
}
