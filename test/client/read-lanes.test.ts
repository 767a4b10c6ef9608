import { connect } from "@tapedeck/client";
import { headlineOf } from "@tapedeck/client/lanes/headline";
import { groupOf, maxLoops } from "@tapedeck/client/lanes/now";
import { readLanes } from "@tapedeck/client/lanes/read-lanes";
import { scenario, startedAt, writeTogether } from "@tapedeck/query/testing/scenario";
import { sourceName } from "@tapedeck/shared/source";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type SeededStack, startSeededStack } from "../stack/seeded-stack.ts";

const cleanup = new AsyncDisposableStack();
let seeded: SeededStack;

const name = (developer: string) => sourceName({ workspace: "acme", developer, project: "shop", upstream: "skaffold" });

/** A source with a session that runs. */
function sourceOf(developer: string) {
  const own = scenario(name(developer));
  own.add({ kind: "upstream.connected" });
  const session = own.session(`0${developer.toUpperCase()}`);
  session.started({ branch: "main" });
  session.configured();
  const forwarded = (local_port: number, at?: number) =>
    own.add(
      {
        kind: "port.forwarded",
        session: session.session,
        channel: "v1",
        detail: { $case: "port", value: { local_port, resource_name: "web" } },
      },
      at,
    );
  return { ...own, session, forwarded };
}

beforeAll(async () => {
  seeded = cleanup.use(await startSeededStack());
  const quiet = sourceOf("quiet");
  quiet.session.loopStarted(1_000);
  quiet.forwarded(8080, 1_500);
  quiet.session.build("web", "started", 2_000);
  quiet.session.build("web", "failed", 3_000);
  quiet.session.loopEnded("failed", 3_001);
  const once = sourceOf("once");
  once.session.build("api", "started", 4_000);
  once.session.build("api", "failed", 5_000);
  once.session.ended("process ended", 5_100);
  const busy = sourceOf("busy");
  for (let at = 10_000; at < 10_000 + 1_100 * 10; at += 10) {
    busy.session.loopStarted(at);
    busy.session.build("web", "started", at + 1);
    busy.session.build("web", "succeeded", at + 5);
    busy.session.loopEnded("succeeded", at + 6);
  }
  for (let count = 0; count < 1_100; count++) busy.forwarded(9_000 + (count % 2));
  for (const { events } of [quiet, once, busy]) await writeTogether(seeded.log, events, 64);
  await seeded.stack.caughtUp();
});
afterAll(() => cleanup.disposeAsync());

it("a loop that fails and is quiet is found behind a thousand newer loops and ports, with its error and its ports", async () => {
  using client = connect({ url: `http://${seeded.stack.http}` });
  const { now } = await readLanes(client, {}, new AbortController().signal);
  const rows = ["quiet", "once", "busy"].map((developer) => now.get(name(developer)) ?? expect.fail(developer));
  const at = startedAt + 60_000;
  expect(rows.map((row) => [groupOf(row, at), headlineOf(row, at).step, headlineOf(row, at).text])).toEqual([
    ["failing", "build web", "web does not build"],
    ["failing", "build api", "api does not build"],
    ["idle", "", "ready in 6 ms"],
  ]);
  expect(rows.map(({ ports, labels }) => [ports.map(({ local }) => local), labels])).toEqual([
    [[8080], { branch: "main" }],
    [[], { branch: "main" }],
    [[9000, 9001], { branch: "main" }],
  ]);
  expect(rows.map(({ session }) => session)).toEqual(["0QUIET", undefined, "0BUSY"]);
  expect(rows.map(({ loops }) => loops.length)).toEqual([1, 1, maxLoops]);
});
