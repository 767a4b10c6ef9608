import { delay } from "@tapedeck/shared/sync/delay";
import { timeoutSignal } from "@tapedeck/shared/sync/timers";
import type { QueryClient } from "../query-client.ts";
import type { CauseOf } from "./format/format.ts";

/** The output that says why may be recorded after the failure. */
const outputMs = 250;

/** A message may wait for its cause for this time, and is sent without it then. */
const timeoutMs = 400;

/** Reads why operations failed, as every list says it. Resolves with undefined where that is not known in time. */
export function causeReader(query: Pick<QueryClient, "listOperations">): CauseOf {
  return async ({ workspace, session, kind, runner, loop, position, recordedAt }, signal) => {
    // The clock of the log may be ahead of this one.
    await delay(Math.min(Math.max(0, recordedAt + outputMs - Date.now()), outputMs), signal);
    const found = query.listOperations({
      workspace,
      sessions: [session],
      kinds: [kind],
      outcomes: ["failed"],
      min_position: position,
      limit: 100,
      ...(loop > 0 && { runner, loop }),
    });
    const cause = await inTime(found, AbortSignal.any([signal, timeoutSignal(timeoutMs)]));
    const own = cause?.items.find(({ end_position: end }) => end === position)?.cause;
    if (own === undefined) return undefined;
    const { phase, subject, tries, text, reason, file, line } = own;
    const what = [phase, subject].filter((part) => part !== "").join(" ");
    return {
      what: tries > 1 && what !== "" ? `${what} (${tries} tries)` : what,
      text: text || reason,
      place: line === undefined || file === "" ? file : `${file}:${line}`,
    };
  };
}

async function inTime<Value>(value: Promise<Value>, over: AbortSignal): Promise<Value | undefined> {
  const late = new Promise<undefined>((resolve) => {
    over.addEventListener("abort", () => resolve(undefined), { once: true });
    if (over.aborted) resolve(undefined);
  });
  return Promise.race([value.catch(() => undefined), late]);
}
