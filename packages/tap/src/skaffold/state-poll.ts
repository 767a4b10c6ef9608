import { LogEntry } from "@tapedeck/proto/skaffold/v1/skaffold";
import { type ApiVersion, apis } from "@tapedeck/shared/skaffold/methods";
import { startTimer, stopTimer, type Timer } from "@tapedeck/shared/sync/timers";
import { eventTypes, inProgress, isOfType } from "./v1-frame.ts";

/** Delay between a loop's end and the request: Skaffold has folded the loop's last events into its state by then. */
const afterLoopMs = 300;
const leastIntervalMs = 2_000;

/** Requests the states of both APIs from time to time: one after the other, and at most every two seconds. */
export class StatePoll {
  readonly #getState: (api: ApiVersion) => Promise<void>;
  #timer: Timer | undefined;
  #notBefore = 0;
  #isRunning = false;
  #mustRunAgain = false;
  #isStopped = false;

  constructor(getState: (api: ApiVersion) => Promise<void>) {
    this.#getState = getState;
  }

  /** Requests the states after a delay, or as soon as the interval allows. */
  request(delayMs = 0): void {
    if (this.#isRunning) this.#mustRunAgain = true;
    if (this.#isStopped || this.#isRunning || this.#timer !== undefined) return;
    this.#timer = startTimer(() => void this.#run(), Math.max(delayMs, this.#notBefore - performance.now()));
  }

  /** Takes a frame of v1. The end of a loop and a new runner may have changed the state. */
  takeFrame(bytes: Buffer): void {
    if (mayChangeState(bytes)) this.request(afterLoopMs);
  }

  stop(): void {
    this.#isStopped = true;
    stopTimer(this.#timer);
  }

  async #run(): Promise<void> {
    this.#timer = undefined;
    this.#isRunning = true;
    this.#notBefore = performance.now() + leastIntervalMs;
    for (const api of apis) if (!this.#isStopped) await this.#getState(api);
    this.#isRunning = false;
    if (this.#mustRunAgain) this.request(afterLoopMs);
    this.#mustRunAgain = false;
  }
}

function mayChangeState(bytes: Buffer): boolean {
  try {
    if (!isOfType(bytes, eventTypes.metaEvent, eventTypes.devLoopEvent)) return false;
    const event = LogEntry.decode(bytes).event?.event_type;
    // Before 1.9 metaEvents have no metadata, and 0.40 sends no loop events: its loops never end.
    if (event?.$case === "metaEvent") return true;
    return event?.$case === "devLoopEvent" && event.value.status !== inProgress;
  } catch {
    return false;
  }
}
