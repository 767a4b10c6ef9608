import { expect, it } from "vitest";
import { matchingSources } from "./matching.ts";

const all = ["demo/alice/shop/skaffold", "demo/bob/shop/skaffold", "demo/bobby/blog/skaffold", "demo/bob/shop/vagrant"];
const found = (text: string) => matchingSources(text, all).sources.map((source) => source.slice("demo/".length));

it("means the sources of a whole name first, and those of a piece of a name only without one", () => {
  expect(found("alice/shop")).toEqual(["alice/shop/skaffold"]);
  expect(found("demo/bob/shop/vagrant")).toEqual(["bob/shop/vagrant"]);
  expect(found("bob/shop")).toEqual(["bob/shop/skaffold", "bob/shop/vagrant"]);
  // Not those of bobby, whose name begins so.
  expect(found("bob")).toEqual(["bob/shop/skaffold", "bob/shop/vagrant"]);
  expect(found("Shop")).toEqual(["alice/shop/skaffold", "bob/shop/skaffold", "bob/shop/vagrant"]);
  expect(found("bobb")).toEqual(["bobby/blog/skaffold"]);
  expect(found("bob/sh")).toEqual(["bob/shop/skaffold", "bob/shop/vagrant"]);
  expect(found("log")).toEqual(["bobby/blog/skaffold"]);
  expect(found("carol")).toEqual([]);
  expect(["shop", "bob/shop", "sho"].map((text) => matchingSources(text, all).isExact)).toEqual([true, true, false]);
});
