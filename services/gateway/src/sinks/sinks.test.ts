import { silentLogger } from "@tapedeck/shared/service/logger";
import type { SinkStore } from "@tapedeck/shared/sinks/sink-store";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { Sinks, type SinksDeps } from "./sinks.ts";

/** Sinks whose store is read at once, but for the first time. */
class HeldSinks extends Sinks {
  reads = 0;
  readonly #first = Promise.withResolvers<void>();

  override store(): SinkStore {
    const all = async () => {
      if (++this.reads === 1) await this.#first.promise;
      return [];
    };
    return { all } as unknown as SinkStore;
  }

  answerFirst(): void {
    this.#first.resolve();
  }
}

it("calls share a read that has not begun yet, and none that has", async () => {
  const link = { opened: new Promise<never>(() => {}), nats: () => {}, workspaces: () => {} };
  const deps = { settings: { allowed: [], page: "", sinks: [] }, link, logger: silentLogger };
  await using sinks = new HeldSinks(deps as unknown as SinksDeps);
  const first = sinks.all();
  await until(() => sinks.reads === 1, { message: "the read" });
  const others = Array.from({ length: 20 }, () => sinks.all());
  sinks.answerFirst();
  await first;
  await Promise.all(others);
  expect(sinks.reads).toBe(2);
});
