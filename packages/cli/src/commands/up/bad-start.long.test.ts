import { once } from "node:events";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { until } from "@tapedeck/shared/testing/until";
import { describe, expect, it } from "vitest";
import { startCli } from "../../testing/cli.ts";
import { anyServicePorts, type BadFolder, badStarts, testDataFolders } from "./testing/bad-starts.ts";

const starts = badStarts();
const { failedUp, newFolder } = starts;

const folders: readonly BadFolder[] = [
  ["a file", "data", (folder: string) => writeFileSync(join(folder, "data"), ""), /is a file and can't be the data/],
  [
    "a Postgres of another version",
    "data",
    (folder: string) => {
      mkdirSync(join(folder, "data", "postgres"), { recursive: true });
      writeFileSync(join(folder, "data", "postgres", "PG_VERSION"), "9\n");
    },
    /was created by Postgres 9, and this is Postgres \d+/,
  ],
  ["a place where there can be no folders", "/proc/tapedeck", () => {}, /\/proc\/tapedeck can't be the data folder/],
];

describe("a start that can't be", () => {
  testDataFolders(starts, folders);

  it.each([
    ["--vagrant", "127.0.0.1:9701"],
    ["--rkt", "127.0.0.1:15441"],
  ])("refuses what is no host and port: %s", async (flag, example) => {
    const { said: output } = await failedUp([flag, "50051"]);
    expect(output).toContain(`Expected HOST:PORT, such as ${example}.`);
  });

  it.each([
    ["NATS", "TAPEDECK_NATS_PORT", "nats.port"],
    ["Postgres", "TAPEDECK_POSTGRES_PORT", "postgres.port"],
  ])("ends the demo where the port of %s is taken, and names the setting", async (server, variable, setting) => {
    const busy = createServer().listen(0, "127.0.0.1");
    await once(busy, "listening");
    const { port } = busy.address() as AddressInfo;
    const ports = { TAPEDECK_NATS_PORT: "0", TAPEDECK_POSTGRES_PORT: "0", ...anyServicePorts };
    const { said: output } = await failedUp(["--demo"], { ...ports, [variable]: String(port) });
    expect(output).toBe(
      `tapedeck: port ${port} on 127.0.0.1 is taken, so ${server} can't listen there: stop what uses it, or choose another (${setting} in tapedeck.yaml, or ${variable}).\n`,
    );
    busy.close();
  });
});

it("says no more than that it stops when Ctrl-C comes before all runs", async () => {
  const cwd = newFolder();
  // The gateway waits for the signal, so that not all can run before it.
  const [hook, signalled] = [join(cwd, "wait.cjs"), join(cwd, "signalled")];
  const wait = `while (!require("node:fs").existsSync(${JSON.stringify(signalled)})) Atomics.wait(cell, 0, 0, 20);`;
  const cell = "const cell = new Int32Array(new SharedArrayBuffer(4));";
  writeFileSync(hook, `${cell}\nif (process.argv[1]?.includes("gateway")) ${wait}\n`);
  const env = {
    TAPEDECK_NATS_PORT: "0",
    TAPEDECK_POSTGRES_PORT: "0",
    ...anyServicePorts,
    NODE_OPTIONS: `--require ${hook}`,
  };
  await using cli = startCli(["up", "--no-demo"], { cwd, env });
  const areServicesStarting = () => existsSync(join(cwd, ".tapedeck", "log", "gateway.log"));
  await until(areServicesStarting, { message: "the services to be started" });
  cli.child.kill("SIGINT");
  await until(() => cli.stdout().includes("stopping"), { message: "the signal to be heard" });
  writeFileSync(signalled, "");
  expect([await cli.ended, cli.stdout(), cli.stderr()]).toEqual([0, "\nstopping …\n", ""]);
});
