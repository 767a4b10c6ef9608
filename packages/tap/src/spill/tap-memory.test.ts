import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "@tapedeck/shared/testing/temporary-folder";
import { expect, it } from "vitest";

import type { Remembered } from "../tap.ts";
import { fileMemory } from "./tap-memory.ts";

const source = "default/alice/shop/skaffold";
const fail = (cause: unknown) => expect.fail(String(cause));
const plain: Remembered = { address: "127.0.0.1:50051", connection: "C1" };
const broken: Remembered = {
  ...plain,
  broken: { channels: ["v2"], heard: { channel: "v1", at: 1_795_190_102_123.25 } },
};

it("the next tap loads what this one saved, and there is no other file", async () => {
  await using tidy = await temporaryFolder();
  const folder = join(tidy.folder, "made");
  expect(fileMemory(folder, source, fail).load()).toBeUndefined();
  for (const remembered of [broken, { ...plain, broken: { channels: ["v1", "v2"] } }, plain]) {
    fileMemory(folder, source, fail).save(remembered);
    expect(fileMemory(folder, source, fail).load()).toEqual(remembered);
  }
  expect(fileMemory(folder, "default/bob/shop/skaffold", fail).load()).toBeUndefined();
  expect(readdirSync(folder)).toHaveLength(1);
});

it("a memory that can't be understood is empty, and a failure to save it is reported", async () => {
  await using tidy = await temporaryFolder();
  writeFileSync(join(tidy.folder, "default.alice.shop.skaffold.upstream.json"), '{"address":');
  expect(fileMemory(tidy.folder, source, fail).load()).toBeUndefined();
  const notAFolder = join(tidy.folder, "default.alice.shop.skaffold.upstream.json");
  const errors: unknown[] = [];
  fileMemory(notAFolder, source, (cause) => errors.push(cause)).save(plain);
  expect(errors).toHaveLength(1);
});
