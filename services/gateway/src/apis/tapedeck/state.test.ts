import { offsetOf } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import { expect, it } from "vitest";
import { timedSemaphore } from "../../limits/semaphore.ts";
import type { QueryClient } from "../../query-client.ts";
import { stateAnswer, stateReader } from "./state.ts";

const head = { position: "e-3", session: "01A", session_ended: false, not_heard_since: undefined };

/** Where the newest source began, and how far the tables are. */
const newest = formatPosition({ epoch: "aaaaaa", offset: offsetOf(1) });

/** Query, with one source of an upstream; it keeps what it was asked for. */
function queryOf(upstream: string) {
  const requests: string[] = [];
  const source = `acme/alice/shop/${upstream}`;
  const query: Pick<QueryClient, "listSources" | "readState"> = {
    listSources: async () => ({ items: [{ source, upstream } as never], next_page: "", position: newest }),
    async readState({ collection = "", also = [], at = "", session = "" }) {
      if (at === "never") throw new Error("away");
      requests.push(`${[collection, ...also]} ${at} ${session}`);
      return { head: { ...head, source, heard_at: {}, newest_source: newest }, rows: [] };
    },
  };
  return { requests: requests, query: query as QueryClient };
}

const context = (signal = new AbortController().signal) => ({
  workspace: "acme",
  who: "test",
  kind: "token" as const,
  signal,
});
const oneAtOnce = () => timedSemaphore({ atOnce: 1, timeoutMs: 20, what: "large answers" });

it("is of one moment and one session: all collections are asked for at once", async () => {
  const { requests, query } = queryOf("skaffold");
  const read = await stateReader({ query, largeAnswers: oneAtOnce() })({ ...context(), at: "e-9" });
  expect(requests).toEqual(["skaffold.v1,skaffold.v2 e-9 "]);
  expect(stateAnswer(read)).toEqual({
    source: "acme/alice/shop/skaffold",
    session: "01A",
    sessionEnded: false,
    notHeardSince: null,
    heardAt: {},
    position: "e-3",
    at: "e-9",
    upstream: "skaffold",
    state: { v1: expect.anything(), v2: expect.anything() },
  });
});

it("waits its turn where it may be large, until the one before is let go of or its call is over", async () => {
  const { query } = queryOf("vagrant");
  const read = stateReader({ query, largeAnswers: oneAtOnce() });
  const call = new AbortController();
  const first = await read(context());
  await expect(read(context())).rejects.toMatchObject({ code: "limit_exceeded" });
  first.done();
  await expect(read({ ...context(), at: "never" })).rejects.toThrow("away");
  await read(context(call.signal));
  call.abort();
  await read(context());
});

it("waits for nobody where it is small", async () => {
  const { query } = queryOf("rkt");
  const read = stateReader({ query, largeAnswers: oneAtOnce() });
  expect((await Promise.all([read(context()), read(context())])).map(({ position }) => position)).toEqual([
    "e-3",
    "e-3",
  ]);
});
