import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { LogReader } from "@tapedeck/shared/log/log";
import { logStart } from "@tapedeck/shared/log/offset";
import { workspaceFilter } from "@tapedeck/shared/log/subjects";

export type MoveLine = {
  readonly type: string;
  readonly step?: string;
  readonly all?: number;
  readonly done?: number;
  readonly error?: { readonly code: string; readonly message: string };
};

export type MoveRequest = {
  /** "host:port" of a gateway. */
  readonly http: string;
  readonly token: string;
  readonly workspace: string;
  readonly to: string;
  readonly signal?: AbortSignal;
};

/** Moves a workspace over the HTTP API; yields each line of the answer. Ends without an error when the signal aborts. */
export async function* move({ http, token, workspace, to, signal }: MoveRequest): AsyncGenerator<MoveLine, void> {
  const response = await fetch(`http://${http}/api/v1/shards/move`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ workspace, to }),
    ...(signal && { signal }),
  });
  if (!response.ok) {
    yield { type: "error", ...((await response.json()) as Pick<MoveLine, "error">) };
    return;
  }
  let rest = "";
  try {
    for await (const chunk of response.body ?? []) {
      const lines = (rest + Buffer.from(chunk).toString()).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) yield JSON.parse(line) as MoveLine;
    }
  } catch (error) {
    if (signal?.aborted !== true) throw error;
  }
}

/** All events of a workspace in a log, in order. */
export async function eventsOf(log: LogReader, workspace: string): Promise<readonly Event[]> {
  const from = { afterOffset: logStart, subjects: [workspaceFilter(workspace)] };
  const { lastOffset } = await log.bounds();
  const events: Event[] = [];
  for await (const { event } of log.history(from, lastOffset, new AbortController().signal)) events.push(event);
  return events;
}

/** The texts of a project's frames, in order. */
export function framesOf(events: readonly Event[], project: string): readonly string[] {
  return events.flatMap(({ source, channel, part, original }) => {
    const isFrame = source.split("/")[2] === project && channel === "v1" && part === 0;
    return isFrame ? [Buffer.from(original?.bytes ?? []).toString()] : [];
  });
}
