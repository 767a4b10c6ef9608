import { PassThrough } from "node:stream";
import { expect, it } from "vitest";
import { Progress } from "./progress.ts";

/** What stands in for stderr, and what was written there. */
function stream(isTTY: boolean) {
  const to = Object.assign(new PassThrough(), { isTTY, columns: 100, cursorTo: () => true, clearLine: () => true });
  let text = "";
  to.on("data", (chunk: Buffer) => {
    text += chunk;
  });
  return { to: to as unknown as NodeJS.WriteStream, text: () => text };
}

it("writes a line now and then in a pipe, and none for what is soon done", () => {
  const { to, text } = stream(false);
  let time = 0;
  using progress = new Progress({ what: "importing a.log", unit: "events", total: 50_000, to, now: () => time });
  for (const [at, done] of [
    [10, 100],
    [2_999, 20_000],
    [3_000, 20_001],
    [4_000, 30_000],
    [6_001, 49_999],
  ] as const) {
    time = at;
    progress.reached(done);
  }
  expect(text()).toBe(
    "importing a.log: 20,001 of 50,000 events (40 %)\nimporting a.log: 49,999 of 50,000 events (99 %)\n",
  );
});

it("says how much there is where nobody knows of how much", () => {
  const { to, text } = stream(false);
  let time = 0;
  using progress = new Progress({ what: "backup", unit: "bytes", to, now: () => time });
  time = 5_000;
  progress.reached(3 * 1_024 ** 2);
  expect(text()).toBe("backup: 3.0 MiB\n");
});

it("draws a bar on a terminal, and takes it away", () => {
  const { to, text } = stream(true);
  {
    using progress = new Progress({ what: "importing a.log", unit: "events", total: 10, to });
    progress.reached(5);
    expect(text()).toContain("importing a.log: 5 of 10 events (50 %)");
    expect(text()).toContain("█░");
  }
  expect(text()).not.toContain("100 %");
});
