import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { pages } from "./pages.ts";

it.each(Object.entries(pages))("%s is what the code says", async (path, text) => {
  const written = readFileSync(new URL(`../../../../${path}`, import.meta.url), "utf8");
  expect(written, `${path} is not what the code says: write it anew with \`npm run docs\``).toBe(await text());
});
