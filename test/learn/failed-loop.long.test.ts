import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { until } from "@tapedeck/shared/testing/until";
import { startCli } from "tapedeck/testing/cli";
import { startUp, type TestUp } from "tapedeck/testing/up";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { typedPage } from "./typed-page.ts";

/** What the page says that each command shows. */
const shown: readonly (readonly [command: string, output: RegExp])[] = [
  ["npx tapedeck status", /^bob\/shop\/skaffold +recording/m],
  ["npx tapedeck wait --for loop.failed -s bob/shop --timeout 5m", /bob\/shop +loop\.failed +loop \d+ failed: /],
  ["npx tapedeck why -s bob/shop", /^bob\/shop +loop \d+ +failed .*\nbeside\n.* facts? (?:are|is) equal/ms],
  ["npx tapedeck logs -s bob/shop -n 20", /deploy|render|Watching for changes/i],
  ["npx tapedeck compare bob/shop alice/shop", /branch: fix\/manifests; main in alice\/shop/],
  ["npx tapedeck loops -s bob/shop --limit 5", /failed/],
  ["npx tapedeck state -s bob/shop --at 10s", /^as of .*\n +build /ms],
  ["npx tapedeck wait --for loop.succeeded -s bob/shop --timeout 5m", /bob\/shop +loop\.succeeded/],
  ["npx tapedeck stats green", /^PHASE +RED/m],
  ["npx tapedeck open -s bob/shop", /^http:\/\/127\.0\.0\.1:\d+\/\?source=bob\/shop$/m],
];

const page = typedPage("failed-loop.md");
const cleanup = new AsyncDisposableStack();
let cwd: string;
let up: TestUp;

beforeAll(async () => {
  cwd = await mkdtemp(join(inject("serversFolder"), "failed-loop-"));
  up = await startUp({ cwd });
  cleanup.defer(async () => void (await up.stop()));
}, 300_000);
afterAll(() => cleanup.disposeAsync());

/** What a command prints, once it matches. */
async function typed(command: string, output = /^/): Promise<string | undefined> {
  await using cli = startCli(command.split(" ").slice(2), { cwd, env: { ...up.env, NO_COLOR: "1" } });
  const code = await cli.ended;
  expect({ command, code, stderr: cli.stderr() }).toEqual({ command, code: 0, stderr: "" });
  return output.test(cli.stdout()) ? cli.stdout() : undefined;
}

it("the page types the commands that are tested here, in their order", () => {
  expect(page.commands.filter((line) => line.startsWith("npx "))).toEqual(shown.map(([command]) => command));
});

it("each command of the tutorial shows in the demo what the page says", { timeout: 900_000 }, async () => {
  for (const [command, output] of shown) {
    // The sources of the demo connect one after the other.
    const isFirst = command === shown[0]?.[0];
    const printed = isFirst ? await until(() => typed(command, output), { message: command }) : await typed(command);
    expect(printed, command).toMatch(output);
  }
});
