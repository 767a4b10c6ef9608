import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { expect, it } from "vitest";
import { startCli } from "../../testing/cli.ts";

const complete = async (words: readonly string[], env: NodeJS.ProcessEnv = {}) => {
  const cli = startCli(["complete", "--", ...words], { cwd: tmpdir(), env });
  expect(await cli.ended).toBe(0);
  return cli.stdout().split("\n").slice(0, -1);
};

/** A shell takes each line for a word, and bash expands what it holds. */
const line = /^(?:[a-z0-9/_-]+\t.*|:\d+)$/;

it("answers one line for each word, and nothing that a shell would run", async () => {
  for (const words of [[""], ["imp"], ["import", "--"], ["run", "--"], ["wait", "--"], ["token", ""]]) {
    const lines = await complete(words);
    expect(lines.length).toBeGreaterThan(1);
    for (const each of lines) expect(each).toMatch(line);
  }
});

it("takes no names from a server that a shell would run", async () => {
  const names = ["alice/shop", "$(touch x)/shop", "`touch x`/shop", "bob/sh op"];
  const items = names.map((name) => ({ source: `default/${name}/skaffold` }));
  const server = createServer((_, response) => {
    response.setHeader("content-type", "application/json").end(JSON.stringify({ items }));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const env = { TAPEDECK_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
  // A busy machine may need the half second that a shell waits for names.
  await expect.poll(() => complete(["logs", "-s", ""], env)).toEqual(["alice/shop\t", ":4"]);
  server.close();
});
