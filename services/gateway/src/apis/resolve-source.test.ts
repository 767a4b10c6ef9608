import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { expect, it } from "vitest";
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
