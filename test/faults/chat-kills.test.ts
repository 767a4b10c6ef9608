import { Outcome } from "@tapedeck/proto/tapedeck/v1/event";
import { sourceName } from "@tapedeck/shared/source";
import { delay } from "@tapedeck/shared/sync/delay";
import { testWriter } from "@tapedeck/shared/testing/log-messages";
import { seeded } from "@tapedeck/shared/testing/seeded";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import type { ServiceProcess } from "./service-process.ts";
import { startTwoGateways } from "./two-gateways.ts";

const kills = 20;
const maxWaiting = 40;

it("a chat gets every failure through 20 kills of gateways, and each repetition has the same id and text", async () => {
  const random = seeded("chat kills");
  await using stack = new AsyncDisposableStack();
  const { log, receiver, gateways } = await startTwoGateways(stack);
  await addSink(gateways[0], receiver.url);
  // Now and then the chat has a message, and is away before it answers.
  receiver.answer = () => (random.below(20) === 0 ? { status: 200, isLost: true } : { status: 200, body: "ok" });

  const reported = () => new Set(receiver.requests.map(({ body }) => developerIn(body)));
  const over = new AbortController();
  let sources = 0;
  // Each source fails once, and so has one message.
  const writing = (async () => {
    while (!over.signal.aborted) {
      const developer = `dev${sources++}`;
      const source = sourceName({ workspace: "default", developer, project: "shop", upstream: "skaffold" });
      const writer = testWriter(log.writer, source);
      await writer.append(1 + random.below(3), { kind: "build.started" });
      await writer.append(1, {
        kind: "loop.failed",
        outcome: Outcome.OUTCOME_FAILED,
        operation: { kind: "loop", subject: "", runner: 1, loop: sources },
      });
      await delay(20 + random.below(60));
      // So that what waits is not the rest of the test.
      if (sources >= reported().size + maxWaiting)
        await until(() => over.signal.aborted || sources < reported().size + maxWaiting, {
          message: "the chat to get some",
        });
    }
  })();
  try {
    for (let kill = 0; kill < kills; kill++) {
      await delay(random.below(400));
      const gateway = gateways[random.below(2) === 0 ? 0 : 1];
      await gateway.kill();
      await gateway.start();
      const before = reported().size;
      await until(() => reported().size > before, { message: "the chat to get more" });
    }
  } finally {
    over.abort();
    await writing;
  }
  await until(() => reported().size === sources, { message: `all ${sources} failures` });
  const byDeveloper = new Map<string, Set<string>>();
  for (const { headers, body } of receiver.requests) {
    const developer = developerIn(body);
    const seen = byDeveloper.get(developer) ?? new Set<string>();
    byDeveloper.set(developer, seen.add(`${headers["tapedeck-message"]} ${body}`));
  }
  expect([...byDeveloper.values()].filter(({ size }) => size > 1).map((seen) => [...seen])).toEqual([]);
  expect(sources).toBeGreaterThan(kills);
  // A kill repeats what came since the last write of the place, and a lost answer one message.
  console.info(`${sources} failures, ${receiver.requests.length - sources} repetitions in ${kills} kills`);
});

function developerIn(body: string): string {
  return /dev\d+/.exec(body)?.[0] ?? "";
}

async function addSink(gateway: ServiceProcess, target: string): Promise<void> {
  const body = JSON.stringify({ name: "team", target, format: "slack", start: "start" });
  await until(
    async () => {
      const response = await fetch(`http://${gateway.addresses.http}/api/v1/sinks`, { method: "POST", body });
      return response.ok;
    },
    { message: "the sink to be added" },
  );
}
