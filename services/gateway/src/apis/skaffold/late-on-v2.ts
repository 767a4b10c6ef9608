import type { EventJson } from "@tapedeck/shared/events/json";
import { parseFilter } from "@tapedeck/shared/filter/filter";
import type { EventsPageRequest } from "../tapedeck/events-page.ts";
import type { Page } from "../tapedeck/lists.ts";

/** A loop that has ended on v1. `end`: the position of that. */
export type EndedLoop = {
  readonly session: string;
  readonly runner: number;
  readonly loop: number;
  readonly end: string;
};

export type LateOnV2 = {
  /** Up to here v2 reports what belongs to the loop, or to what was before it. */
  readonly position: string;
  /** v2 has reported the end of the loop, or something of a later one. */
  readonly isOver: boolean;
  /** Whether more than tasks were reported: the state of v2 is another one than at the loop's end on v1. */
  readonly changesState: boolean;
};

type ReadEvents = (request: EventsPageRequest) => Promise<Page<EventJson>>;

const pageSize = 300;
/** A loop has a few mirrors for each artifact. */
const maxPages = 10;

/** What v2 reports of a loop may be recorded after v1's end of it: v1 and v2 are two streams. */
export async function lateOnV2(
  events: ReadEvents,
  { session, runner, loop, end }: EndedLoop,
  { workspace, signal }: Pick<EventsPageRequest, "workspace" | "signal">,
): Promise<LateOnV2> {
  const filter = parseFilter({ sessions: [session], kinds: ["mirror.received"] });
  let late: LateOnV2 = { position: end, isOver: false, changesState: false };
  let after: string | undefined = end;
  for (let pages = 0; after !== undefined && pages < maxPages; pages++) {
    const page: Page<EventJson> = await events({ workspace, signal, filter, after, limit: pageSize });
    for (const { channel, position, operation = {}, detail = {}, injected = false } of page.items) {
      if (channel !== "v2" || injected) continue;
      const isTask = detail.what === "taskEvent";
      const [ofRunner, ofLoop] = [Number(operation.runner ?? 0), Number(operation.loop ?? 0)];
      if (ofRunner > runner || (ofRunner === runner && ofLoop > loop)) return { ...late, isOver: true };
      const isEnd = isTask && /^DevLoop\b/.test(String(detail.taskId)) && detail.status !== "InProgress";
      const isOver = isEnd && ofRunner === runner && ofLoop === loop;
      late = { position, isOver, changesState: late.changesState || !isTask };
      if (isOver) return late;
    }
    after = page.nextPage;
  }
  return late;
}
