import { StateHead } from "@tapedeck/proto/tapedeck/v1/query";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { storedOffset } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import { describe, expect, it } from "vitest";
import type { QueryClient } from "../query-client.ts";
import { withSource } from "./resolve-source.ts";

const only = "acme/alice/shop/skaffold";

/** Query with one source; it counts the lists that it was asked for. */
function listing() {
  let lists = 0;
  const query: Pick<QueryClient, "listSources"> = {
    async listSources({ sources = [only], developers = ["alice"] }) {
      lists++;
      const isMeant = sources.includes(only) && developers.includes("alice");
      return { items: isMeant ? [{ source: only, upstream: "skaffold" } as never] : [], next_page: "", position: "" };
    },
  };
  return { query: query as QueryClient, lists: () => lists };
}

const known = async (source: string) => {
  if (source !== only) throw new TapedeckError("unknown_source", "query's own words");
  return source;
};

it.each([
  ["alice/shop", "skaffold", 0],
  ["Alice/Shop/skaffold", undefined, 0],
  [only, "skaffold", 0],
  ["alice/shop", undefined, 1],
  [undefined, "skaffold", 1],
] as const)("%s for an API of %s is the source, with %i questions before", async (source, upstream, questions) => {
  const { query, lists } = listing();
  const context = { workspace: "acme", ...(source !== undefined && { source }) };
  expect(await withSource(query, context, upstream, known)).toBe(only);
  expect(lists()).toBe(questions);
});

it.each([
  ["bob/shop", "skaffold", /no skaffold source "bob\/shop" has been recorded/],
  ["bob/shop/skaffold", undefined, /no source "bob\/shop\/skaffold" has been recorded/],
  ["bob/shop/other", undefined, /no source "bob\/shop\/other" has been recorded/],
  ["bob/shop/rkt", "skaffold", /no skaffold source "bob\/shop\/rkt" has been recorded/],
  ["else/alice/shop/skaffold", "skaffold", /no skaffold source "else\/alice\/shop\/skaffold" has been recorded/],
] as const)("%s for an API of %s is refused in the words of the list", async (source, upstream, message) => {
  const refused = withSource(listing().query, { workspace: "acme", source }, upstream, known);
  await expect(refused).rejects.toMatchObject({ code: "unknown_source", message: expect.stringMatching(message) });
});

it("lets other refusals of the use through at once", async () => {
  const { query, lists } = listing();
  const use = async () => {
    throw new TapedeckError("before_first", "not begun");
  };
  await expect(withSource(query, { workspace: "acme", source: only }, "skaffold", use)).rejects.toMatchObject({
    code: "before_first",
  });
  expect(lists()).toBe(0);
});

describe("a call that leaves the choice open", () => {
  const alice = { source: only, began: 10 };
  const bob = { source: "acme/bob/shop/skaffold", began: 30 };
  const at = (offset: number, epoch = "aaaaaa") => formatPosition({ epoch, offset: storedOffset(offset) });

  /** Query with these sources, which answers for any of them; it counts its answers. */
  function growing() {
    const state = { sources: [alice], checkpoint: 20, epoch: "aaaaaa", lists: 0, reads: 0, afterList: () => {} };
    const query: Pick<QueryClient, "listSources" | "readState"> = {
      async listSources() {
        state.lists++;
        const items = state.sources.map(({ source }) => ({ source, upstream: "skaffold" }) as never);
        const answer = { items, next_page: "", position: at(state.checkpoint, state.epoch) };
        state.afterList();
        return answer;
      },
      async readState({ source = "", session, with_newest_source }) {
        state.reads++;
        if (!state.sources.some((one) => one.source === source)) throw new TapedeckError("unknown_source", "gone");
        if (session === "of bob" && source !== bob.source) throw new TapedeckError("unknown_session", "not of it");
        const newest = Math.max(...state.sources.map(({ began }) => began));
        const newest_source = with_newest_source === true ? at(newest, state.epoch) : "";
        return { head: StateHead.fromPartial({ source, newest_source }), rows: [] };
      },
    };
    const call = (session = "") =>
      withSource(query as QueryClient, { workspace: "acme" }, "skaffold", async (source, readState) => {
        return (await readState({ source, session })).head.source;
      });
    return { state, call };
  }

  it("asks once for the choice, while no other source begins", async () => {
    const { state, call } = growing();
    for (let n = 0; n < 3; n++) expect(await call()).toBe(only);
    expect([state.lists, state.reads]).toEqual([1, 3]);
  });

  it("is ambiguous as soon as the tables have another source", async () => {
    const { state, call } = growing();
    await call();
    state.sources.push(bob);
    await expect(call()).rejects.toMatchObject({ code: "ambiguous_source" });
  });

  it("is ambiguous, too, if the other source begins between the choice and the answer", async () => {
    const { state, call } = growing();
    state.afterList = () => {
      if (state.sources.length === 1) state.sources.push(bob);
    };
    await expect(call()).rejects.toMatchObject({ code: "ambiguous_source" });
  });

  it("gets the source that took the place of the chosen one", async () => {
    const { state, call } = growing();
    await call();
    state.sources = [bob];
    state.checkpoint = 40;
    expect([await call(), await call()]).toEqual([bob.source, bob.source]);
    expect(state.lists).toBe(2);
  });

  it("is not refused because of what only the former choice lacks", async () => {
    const { state, call } = growing();
    await call();
    state.sources.push(bob);
    await expect(call("of bob")).rejects.toMatchObject({ code: "ambiguous_source" });
  });

  it("is chosen anew in another log", async () => {
    const { state, call } = growing();
    await call();
    state.epoch = "bbbbbb";
    expect(await call()).toBe(only);
    expect(state.lists).toBe(2);
  });
});
