import { plural } from "@tapedeck/client/lanes/format";
import type { ApiClient } from "./api.ts";

type SetAside = {
  readonly source: string;
  readonly events: number;
  readonly lastPosition: string;
  readonly errorCode: string;
  readonly error: string;
};

/** A line for each source with events that the tables don't have; none where the server can't be asked. */
export async function setAsideLines(api: Pick<ApiClient, "get">): Promise<readonly string[]> {
  const { setAside } = await api
    .get<{ readonly setAside: readonly SetAside[] }>("/api/v1/status")
    .catch(() => ({ setAside: [] }));
  return setAside.map(({ source, events, lastPosition, errorCode, error }) => {
    const reason = errorCode === "" ? error : `${error} (${errorCode})`;
    return `${source}: ${plural(events, "event")} not in the tables, the last one at ${lastPosition}: ${reason}`;
  });
}
