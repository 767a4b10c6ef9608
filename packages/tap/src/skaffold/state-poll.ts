import { LogEntry } from "@tapedeck/proto/skaffold/v1/skaffold";
import { type Api, apis } from "@tapedeck/shared/skaffold/methods";

export type Describing = {
  /** Asks now, or as soon as it may. */
  readonly ask: () => void;
  /** Looks at a frame of v1: after the end of a loop, and after a new runner, there may be something new to know. */
  readonly see: (bytes: Buffer) => void;
  readonly stop: () => void;
};

/** From a loop's end to the question: what belongs to the loop has then been folded into Skaffold's state. */
const afterLoopMs = 300;
const leastIntervalMs = 2_000;

/** Asks for the states of both APIs now and then: one after the other, never more often than every two seconds. */
export function describing(getState: (api: Api) => Promise<void>): Describing {
  let timer: NodeJS.Timeout | undefined;
  let notBefore = 0;
  let asking = false;
  let again = false;
  let stopped = false;

  function ask(delay = 0): void {
    if (asking) again = true;
    if (stopped || asking || timer !== undefined) return;
    timer = setTimeout(() => void run(), Math.max(delay, notBefore - performance.now()));
  }

  async function run(): Promise<void> {
    timer = undefined;
    asking = true;
    notBefore = performance.now() + leastIntervalMs;
    for (const api of apis) if (!stopped) await getState(api);
    asking = false;
    if (again) ask(afterLoopMs);
    again = false;
  }

  return {
    ask: () => ask(),
    see: (bytes) => {
      if (changesState(bytes)) ask(afterLoopMs);
    },
    stop: () => {
      stopped = true;
      clearTimeout(timer);
    },
  };
}

function changesState(bytes: Buffer): boolean {
  try {
    const event = LogEntry.decode(bytes).event?.event_type;
    // Before 1.9 without metadata; and 0.40 tells nothing else: no loop of it ever ends.
    if (event?.$case === "metaEvent") return true;
    return event?.$case === "devLoopEvent" && event.value.status !== "In Progress";
  } catch {
    return false;
  }
}
