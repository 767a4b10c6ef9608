import type { HistoryItem, HistoryPage, SearchOptions } from "@tapedeck/client";
import { useState } from "preact/hooks";
import { useReading } from "./reading.ts";
import { tapedeck } from "./tapedeck.ts";

export type HistoryList = Pick<HistoryPage, "total" | "totalIsMinimum" | "nextPage"> & {
  readonly items: readonly HistoryItem[];
};

const againMs = 1_000;

/** What changes the newest items. */
const kinds = ["loop.*", "command.*", "pod.*", "session.started", "session.ended", "session.lost"] as const;

/** The items that match, the newest again when something happens, and how to read more of them. */
export function useHistory(options: SearchOptions, pageSize: number) {
  const [list, setList] = useState<HistoryList>();
  const [error, setError] = useState<string>();
  const [isReading, setReading] = useState(false);
  const key = JSON.stringify(options);
  useReading(
    [key],
    async (signal) => {
      setError(undefined);
      setList(undefined);
      const first = async () => tapedeck().search({ ...options, pageSize, signal });
      const opened = await first();
      setList(opened);
      const { developers = [], projects = [], sources = [] } = options;
      const live = { developers, projects, sources, kinds, after: opened.position, onGap: () => {}, signal };
      let isDue = false;
      for await (const _ of tapedeck().events(live)) {
        if (isDue) continue;
        isDue = true;
        setTimeout(() => {
          isDue = false;
          if (!signal.aborted)
            void first().then(
              (newest) => setList((before) => refreshed(before, newest)),
              () => {},
            );
        }, againMs);
      }
    },
    setError,
  );
  const more = async () => {
    if (list?.nextPage === undefined || isReading) return;
    setReading(true);
    try {
      const next = await tapedeck().search({ ...options, pageSize, page: list.nextPage });
      setList({ ...next, items: [...list.items, ...next.items] });
    } finally {
      setReading(false);
    }
  };
  return { list, error, isReading, more };
}

/** Adds the newest page to what was read of older pages. */
function refreshed(before: HistoryList | undefined, newest: HistoryPage): HistoryList {
  if (before === undefined || before.items.length <= newest.items.length) return newest;
  const known = new Set(newest.items.map(nameOf));
  const last = newest.items.at(-1);
  const from = before.items.findIndex((item) => last !== undefined && nameOf(item) === nameOf(last));
  const older = before.items.slice(from + 1).filter((item) => !known.has(nameOf(item)));
  return {
    ...newest,
    ...(before.nextPage !== undefined && { nextPage: before.nextPage }),
    items: [...newest.items, ...older],
  };
}

export function nameOf({ kind, session, runner, loop, startPosition }: HistoryItem): string {
  return [kind, session, runner, loop, startPosition].join(" ");
}
