import { startReceiver } from "@tapedeck/gateway/sinks/testing/receiver";
import { Outcome } from "@tapedeck/proto/tapedeck/v1/event";
import { openLog } from "@tapedeck/shared/log/jetstream";
import { sourceName } from "@tapedeck/shared/source";
import { delay } from "@tapedeck/shared/sync/delay";
import { testWriter } from "@tapedeck/shared/testing/log-messages";
import { connectThroughRestarts } from "@tapedeck/shared/testing/nats-connection";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { startStack } from "../stack/stack.ts";

const seconds = 30;
const perSecond = 100;
/** Every tenth event is a failure, each of a source of its own: a source has one message a minute. */
const failuresPerSecond = 10;

it.each([
  ["whose step and cause are known", "src/total.go:7:2: undefined: total", ["build", "loop"]],
  ["of which no more is known", "exit status 1", ["loop"]],
] as const)(
  "a failure %s is posted to a chat about a second after it was recorded, at 100 events/s",
  {
    timeout: 300_000,
  },
  async (_, message, kinds) => {
    await using stack = await startStack({ skaffold: [], env: { TAPEDECK_GATEWAY_SINK_HOSTS: "127.0.0.1" } });
    await using receiver = await startReceiver();
    const arrivedAt = new Map<string, number>();
    receiver.answer = ({ body }) => {
      arrivedAt.set(/dev\d+/.exec(body)?.[0] ?? "", performance.now());
      return { status: 200, body: "ok" };
    };
    await using cleanup = new AsyncDisposableStack();
    const nats = cleanup.adopt(await connectThroughRestarts(stack.parts.nats.url), (nc) => nc.close());
    const log = cleanup.use(await openLog(nats, { workspace: "default", syncKnown: true, timeoutMs: 20_000 }));
    const body = JSON.stringify({ name: "team", target: receiver.url, format: "slack" });
    expect((await stack.httpCall("POST", "/api/v1/sinks", {}, body)).status).toBe(201);
    const writerOf = (developer: string) =>
      testWriter(log.writer, sourceName({ workspace: "default", developer, project: "shop", upstream: "skaffold" }));
    const noise = writerOf("noise");
    const recordedAt = new Map<string, number>();
    const began = performance.now();
    for (let failure = 0; failure < seconds * failuresPerSecond; failure++) {
      await delay(Math.max(0, began + (failure * 1_000) / failuresPerSecond - performance.now()));
      await noise.append(perSecond / failuresPerSecond - kinds.length, { kind: "build.started" });
      const writer = writerOf(`dev${failure}`);
      for (const kind of kinds)
        await writer.append(1, {
          kind: `${kind}.failed`,
          session: `s${failure}`,
          outcome: Outcome.OUTCOME_FAILED,
          error: { code: "X", message, suggestions: [] },
          operation: { kind, subject: "", runner: 1, loop: 1 },
        });
      recordedAt.set(`dev${failure}`, performance.now());
    }
    const took = performance.now() - began;
    await until(() => arrivedAt.size === recordedAt.size, { message: "every failure" });
    const latencies = [...recordedAt].map(([of, at]) => (arrivedAt.get(of) ?? 0) - at).toSorted((a, b) => a - b);
    const quantile = (part: number) => Math.round(latencies[Math.floor(part * (latencies.length - 1))] ?? 0);
    const rate = Math.round((latencies.length * (perSecond / failuresPerSecond) * 1_000) / took);
    console.info(
      `${latencies.length} failures at ${rate} events/s: p50 ${quantile(0.5)} ms, p99 ${quantile(0.99)} ms, most ${quantile(1)} ms`,
    );
    // The goal is 1 s. A busy machine takes longer.
    expect(quantile(0.99)).toBeLessThan(5_000);
  },
);
