import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { expect, it } from "vitest";
import { startCli } from "../../testing/cli.ts";

const progress = (step: string) => `${JSON.stringify({ type: "progress", step, all: 1, done: 0 })}\n`;
const error = `${JSON.stringify({ type: "error", error: { message: "NATS is unavailable" } })}\n`;
const closed = "nothing is recorded in team-a until it is in two: the gateways retry by themselves";

/** Moves at a gateway that answers this, and then breaks off, or waits for Ctrl-C. */
async function moved(lines: string, how: "breaks off" | "is stopped" = "breaks off") {
  const server = createServer((_, response) => {
    if (how === "breaks off") response.end(lines);
    else response.write(lines, () => cli.child.kill("SIGINT"));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const options = { cwd: tmpdir(), env: { TAPEDECK_URL: url, TAPEDECK_TOKEN: "tdk_x" } };
  await using cli = startCli(["shard", "move", "team-a", "--to", "two"], options);
  try {
    return { code: await cli.ended, stdout: cli.stdout(), stderr: cli.stderr() };
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

it.each([
  ["before writers wait", progress("copying") + error, false],
  ["while writers wait", progress("copying") + progress("fencing") + error, true],
  ["while writers wait, by a lost connection", progress("fencing") + progress("copying"), true],
  ["after the switch", progress("fencing") + progress("switched") + progress("removing") + error, false],
])("a move that ends %s says whether anything is recorded", async (_, lines, isClosed) => {
  const { code, stderr } = await moved(lines);
  expect([code, stderr.includes(closed)]).toEqual([1, isClosed]);
});

it("a move that is stopped while writers wait says that it goes on", async () => {
  const { stdout, stderr } = await moved(progress("fencing"), "is stopped");
  expect(stderr).toContain("the gateway continues until team-a is in two: nothing is recorded in it until then");
  expect(stdout).toBe("stopped: the gateway finishes the move\n");
});

it.each([
  ["before writers wait", progress("copying"), "the same command continues the move"],
  ["after the switch", progress("switched") + progress("removing"), "the gateway finishes the move"],
])("a move that is stopped %s says who goes on", async (_, lines, who) => {
  expect((await moved(lines, "is stopped")).stdout).toBe(`stopped: ${who}\n`);
});
