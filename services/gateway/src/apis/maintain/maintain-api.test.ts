import type { EraseRequest, EraseResponse } from "@tapedeck/proto/tapedeck/v1/maintain";
import { expect, it } from "vitest";
import type { MaintainClient } from "../../maintain-client.ts";
import { type MaintainDeps, maintainApi } from "./maintain-api.ts";

/** An ingest whose erasures never come to their end. */
function endless() {
  const begun: string[] = [];
  async function* erase({ session, source }: EraseRequest, signal: AbortSignal): AsyncGenerator<EraseResponse, void> {
    begun.push(session);
    yield { source, state: "removing", removed: 0n };
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
  }
  const deps: MaintainDeps = {
    query: { listSessions: async () => ({ items: [] }) as never, workspaces: async () => ({ items: [] }) },
    services: { erase } as Pick<MaintainClient, "erase"> as MaintainClient,
    nats: () => {
      throw new Error("not asked for");
    },
    workspaces: async () => [],
    auditStore: () => Promise.reject(new Error("not asked for")),
    tokens: () => Promise.reject(new Error("not asked for")),
    audit: () => {},
  };
  return { begun, api: maintainApi(deps) };
}

const contextWith = (signal: AbortSignal) =>
  ({ workspace: "default", who: "alice", kind: "local", everywhere: true, signal }) as never;

it("an erasure beyond the limit is refused before anything of it is begun", async () => {
  const { api, begun } = endless();
  const callers = Array.from({ length: 5 }, () => new AbortController());
  const erase = (session: string, at: number) =>
    api.erase(session, contextWith((callers[at] as AbortController).signal));
  for (const at of [0, 1, 2, 3]) {
    const progress = await erase(`s${at}`, at);
    expect(await progress[Symbol.asyncIterator]().next()).toMatchObject({
      value: { state: "removing", events: undefined },
    });
  }
  await expect(erase("s4", 4)).rejects.toMatchObject({ code: "limit_exceeded" });
  expect(begun).toEqual(["s0", "s1", "s2", "s3"]);
  // A caller who leaves makes room, once.
  callers[0]?.abort();
  await erase("s4", 4);
  await expect(erase("s5", 1)).rejects.toMatchObject({ code: "limit_exceeded" });
  expect(begun).toEqual(["s0", "s1", "s2", "s3", "s4"]);
});
