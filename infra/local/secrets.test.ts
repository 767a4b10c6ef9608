import { readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { temporaryFolder } from "../testing/temporary-folder.ts";
import { loadSecrets } from "./secrets.ts";

it("secrets are made once and stay", async () => {
  const file = join(await temporaryFolder(), "deep", "secrets");
  const first = await loadSecrets(file);
  expect(new Set(Object.values(first)).size).toBe(3);
  expect(Object.values(first).every((secret) => secret.length >= 43)).toBe(true);
  expect(await loadSecrets(file)).toEqual(first);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
});

it("callers that come at the same time get the same secrets, and nothing is left over", async () => {
  const dir = await temporaryFolder();
  const all = await Promise.all(Array.from({ length: 20 }, () => loadSecrets(join(dir, "secrets"))));
  expect(new Set(all.map((secrets) => secrets.servicesKey)).size).toBe(1);
  expect(await readdir(dir)).toEqual(["secrets"]);
});

it.each(["", "{", "null", '{"natsPassword":"a"}'])("a damaged file (%j) is an error that names it", async (text) => {
  const file = join(await temporaryFolder(), "secrets");
  await writeFile(file, text);
  await expect(loadSecrets(file)).rejects.toThrow(`${file} can't be used`);
});
