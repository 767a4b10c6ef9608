import { type ELDHistogram, monitorEventLoopDelay } from "node:perf_hooks";
import { Gauge, type Registry } from "@prometheus-io/client";
import { startInterval, stopTimer, type Timer } from "../sync/timers.ts";

/** Every reader gets a hold for so long at least, and for twice as long at most. */
const windowMs = 60_000;

const gauges: Readonly<Record<string, readonly [help: string, of: (delays: ELDHistogram) => number]>> = {
  min: ["The minimum recorded event loop delay.", ({ min }) => min],
  max: ["The maximum recorded event loop delay.", ({ max }) => max],
  mean: ["The mean of the recorded event loop delays.", ({ mean }) => mean],
  stddev: ["The standard deviation of the recorded event loop delays.", ({ stddev }) => stddev],
  p50: ["The 50th percentile of the recorded event loop delays.", (delays) => delays.percentile(50)],
  p90: ["The 90th percentile of the recorded event loop delays.", (delays) => delays.percentile(90)],
  p99: ["The 99th percentile of the recorded event loop delays.", (delays) => delays.percentile(99)],
};

/**
 * How long the turns of the event loop took, under the names of the client's own metrics, which it replaces: those take
 * a timer that wakes the process 100 times a second, and each read resets them for every other reader.
 */
export function reportLoopDelay(register: Registry): void {
  const delays = new RecentDelays(windowMs);
  for (const [name, [help, of]] of Object.entries(gauges)) {
    const fullName = `nodejs_eventloop_lag_${name}_seconds`;
    register.removeSingleMetric(fullName);
    new Gauge({
      name: fullName,
      help,
      registers: [register],
      collect() {
        // The smallest and the mean value of an empty set are no numbers.
        this.set(delays.recorded.count === 0 ? 0 : of(delays.recorded) / 1e9);
      },
    });
  }
}

/** The turns of the event loop in the last one to two windows. */
export class RecentDelays implements Disposable {
  #older = startRecording();
  #newer = startRecording();
  readonly #timer: Timer;

  constructor(windowMs: number) {
    this.#timer = startInterval(() => this.#turnOver(), windowMs).unref();
  }

  [Symbol.dispose](): void {
    stopTimer(this.#timer);
    this.#older.disable();
    this.#newer.disable();
  }

  get recorded(): ELDHistogram {
    return this.#older;
  }

  #turnOver(): void {
    const older = this.#older;
    this.#older = this.#newer;
    this.#newer = older;
    older.reset();
  }
}

/** Records each turn of the loop as it ends, without a timer: an idle process stays asleep. */
function startRecording(): ELDHistogram {
  const histogram = monitorEventLoopDelay({ samplePerIteration: true });
  histogram.enable();
  return histogram;
}
