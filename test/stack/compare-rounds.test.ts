import { scenario, writeTogether } from "@tapedeck/query/testing/scenario";
import { sourceName } from "@tapedeck/shared/source";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type SeededStack, startSeededStack } from "./seeded-stack.ts";

// Skaffolds without loops, in whose failed rounds several steps failed.

const cleanup = new AsyncDisposableStack();
let seeded: SeededStack;

function sourceOf(developer: string) {
  const own = scenario(sourceName({ workspace: "acme", developer, project: "shop", upstream: "skaffold" }));
  own.add({ kind: "upstream.connected" });
  return { ...own, begin: (session: string, at: number) => began(own.session(session), at) };
}

function began(session: ReturnType<ReturnType<typeof scenario>["session"]>, at: number) {
  session.started({ branch: "main" }, at);
  session.configured(at);
  const build = (artifact: string, verb: "succeeded" | "failed", from: number, to: number) => {
    session.build(artifact, "started", from);
    session.build(artifact, verb, to);
  };
  return { ...session, build };
}

/** web fails, and api, which waited for its turn and was never built before, begins and fails at once. */
function waiting() {
  const alice = sourceOf("alice");
  const good = alice.begin("01GOOD", 0);
  good.build("web", "succeeded", 1_000, 2_000);
  good.ended("process ended", 3_000);
  const failed = alice.begin("02FAILED", 10_000);
  failed.build("worker", "failed", 11_000, 12_000);
  failed.build("web", "failed", 20_000, 25_000);
  failed.build("api", "failed", 25_000.3, 25_000.7);
  return alice.events;
}

/** api fails, and in the next round only web is built. */
function afterEachOther() {
  const bob = sourceOf("bob");
  const session = bob.begin("03BOTH", 0);
  session.build("web", "succeeded", 1_000, 2_000);
  session.build("api", "failed", 2_100, 3_000);
  session.build("web", "failed", 10_000, 11_000);
  return bob.events;
}

beforeAll(async () => {
  seeded = cleanup.use(await startSeededStack());
  for (const events of [waiting(), afterEachOther()]) await writeTogether(seeded.log, events, 64);
  await seeded.stack.caughtUp();
});
afterAll(() => cleanup.disposeAsync());

async function get(path: string) {
  const { status, body } = await seeded.stack.httpCall("GET", `/api/v1/${path}`);
  expect(status, body).toBe(200);
  return JSON.parse(body);
}

it("a failed round is the step that failed first in it, beside the last good one of that artifact", async () => {
  const { left, right, differences } = await get("compare?left=alice/shop");
  const [api] = (await get("operations?source=alice/shop&subject=api")).items;
  expect(left).toMatchObject({ session: "02FAILED", position: api.endPosition });
  expect(left.failure).toMatchObject({ phase: "build", subject: "web", error: "web does not build" });
  const [good] = (await get("operations?source=alice/shop&subject=web&outcome=succeeded")).items;
  expect(right).toMatchObject({ session: "01GOOD", position: good.endPosition, failure: null });
  const texts = (differences as readonly { readonly text: string }[]).map(({ text }) => text);
  expect(texts).toContain("build web failed: web does not build; it succeeded in session 01GOOD");
});

it("a failure of an earlier round is not that of the newest", async () => {
  const { left, right } = await get("compare?left=bob/shop");
  const [failed, good] = (await get("operations?source=bob/shop&subject=web")).items;
  expect(left).toMatchObject({ position: failed.endPosition, failure: { phase: "build", subject: "web" } });
  expect(right).toMatchObject({ session: "03BOTH", position: good.endPosition });
});
