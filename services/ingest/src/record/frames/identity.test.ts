import { sourceName } from "@tapedeck/shared/source";
import { expect, it } from "vitest";
import { keyedHash, keyOfSource } from "./identity.ts";

const key = Buffer.alloc(32, 1);
const frame = Buffer.from("password=hunter2");
const hashFor = (developer: string, of: Uint8Array = key) =>
  keyedHash(
    keyOfSource(of, sourceName({ workspace: "acme", developer, project: "shop", upstream: "skaffold" })),
    frame,
  );

it("equal frames of two sources have hashes that don't show it, and those of one source the same", () => {
  expect(hashFor("alice")).toEqual(hashFor("alice"));
  expect(hashFor("alice")).not.toEqual(hashFor("bob"));
});

it("a guess can't be tried out without the key", () => {
  expect(hashFor("alice")).not.toEqual(hashFor("alice", Buffer.alloc(32, 2)));
  expect(hashFor("alice")).not.toEqual(keyedHash(new Uint8Array(), frame));
});
