import { afterEach, expect, it, vi } from "vitest";
import { showErasure } from "./show.ts";
import { showDeveloperErasure } from "./show-developer.ts";

afterEach(() => vi.restoreAllMocks());

async function* once<Value>(value: Value) {
  yield value;
}

/** What is printed when so many are erased. */
async function printed(count: number): Promise<readonly string[]> {
  const write = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  const { signal } = new AbortController();
  const source = "default/alice/shop/skaffold";
  await showErasure(once({ state: "done" as const, source, events: count, removed: count }), { session: "s", signal });
  const done = { state: "done" as const, sessions: count, erased: count };
  await showDeveloperErasure(once(done), { developer: "alice", signal });
  return write.mock.calls.map(([text]) => String(text));
}

it("an erasure counts one event or session in the singular", async () => {
  expect(await printed(1)).toEqual(["erased session s of alice/shop/skaffold: 1 event\n", "erased alice: 1 session\n"]);
  vi.restoreAllMocks();
  expect(await printed(2)).toEqual([
    "erased session s of alice/shop/skaffold: 2 events\n",
    "erased alice: 2 sessions\n",
  ]);
});
