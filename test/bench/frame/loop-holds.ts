import type { Bench } from "./bench.ts";
import type { Sample } from "./sample.ts";
import type { Stack } from "./stack.ts";

/** The longest that a service may keep others waiting. The measure itself has a resolution of 5 ms. */
const maxMs = 25;

/** Collects how long each service's event loop was held during the runs of a part. */
export class LoopHolds {
  readonly #stack: Pick<Stack, "loopHolds">;
  readonly #held: Record<string, number[]> = {};

  constructor(stack: Pick<Stack, "loopHolds">) {
    this.#stack = stack;
  }

  async during(run: () => Promise<Sample>): Promise<Sample> {
    await this.#stack.loopHolds();
    const sample = await run();
    for (const [name, ms] of Object.entries(await this.#stack.loopHolds())) {
      this.#held[name] ??= [];
      this.#held[name].push(ms);
    }
    return sample;
  }

  /** One line for each service. The calibration was idle at the same time, so it shows what the machine itself held up. */
  report(bench: Bench, during: string): void {
    const { idle = [], ...services } = this.#held;
    for (const [name, held] of Object.entries(services)) {
      bench.add(
        {
          name: `longest hold of ${name}'s event loop: ${during}`,
          unit: "ms",
          calibration: "an idle process at the same time",
          targets: [{ of: "value", atMost: maxMs }],
        },
        held,
        idle,
      );
    }
  }
}
