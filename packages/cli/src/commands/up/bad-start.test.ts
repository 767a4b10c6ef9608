import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { anyServicePorts, type BadFolder, badStarts, testDataFolders } from "./testing/bad-starts.ts";

const starts = badStarts();

const { failedUp } = starts;

const folders: readonly BadFolder[] = [
  [
    "a folder of something else",
    "data",
    (folder: string) => mkdirSync(join(folder, "data", "photos"), { recursive: true }),
    /data holds something else \(photos\) and can't be the data folder: choose an empty one with --data\.\n$/,
  ],
];

describe("a start that can't be", () => {
  it("reports everything that is wrong with the settings at once, before anything starts", async () => {
    const { said: output, cwd } = await failedUp([], { TAPEDECK_INGEST_GRPC_PORT: "x" }, (folder) => {
      writeFileSync(
        join(folder, "tapedeck.yaml"),
        `gateway:
  http: { port: many }
  colour: red
sources:
  - { developer: alice, project: shop, address: nowhere }
  - { developer: bob, project: shop, address: 127.0.0.1:50051, upstream: make }
endpoints:
  - { source: alice/shop }
limits: { connections: 0, query: 0s }
`,
      );
    });
    expect(output.split("\n")).toEqual([
      "tapedeck: 8 settings are wrong:",
      "  tapedeck.yaml: endpoints.0: expected grpc or http with an address",
      '  tapedeck.yaml: gateway.http.port: "many" is not a whole number from 0 to 65535',
      expect.stringMatching(/^ {2}tapedeck.yaml: limits.connections: 0 is not a whole number from 1 to /),
      expect.stringMatching(/^ {2}tapedeck.yaml: limits.query: "0s" is not a duration such as .*, of at least 10ms$/),
      '  TAPEDECK_INGEST_GRPC_PORT: "x" is not a whole number from 0 to 65535',
      "  tapedeck.yaml: sources.0.address: expected host:port, such as 127.0.0.1:50051",
      expect.stringContaining("  tapedeck.yaml: sources.1.upstream: expected one of skaffold"),
      "  tapedeck.yaml: gateway.colour: unknown; gateway has grpc, hosts, http, origins, pageUrl, sinkHosts",
      "",
    ]);
    expect(readdirSync(cwd)).toEqual(["tapedeck.yaml"]);
  });

  it("names the ports that are taken", async () => {
    const busy = await Promise.all([listen(), listen(), listen()]);
    const [http, health, nats] = busy.map((server) => (server.address() as AddressInfo).port);
    const env = {
      TAPEDECK_GATEWAY_HTTP_PORT: `${http}`,
      TAPEDECK_QUERY_HEALTH_PORT: `${health}`,
      TAPEDECK_NATS_PORT: `${nats}`,
    };
    const { said: output } = await failedUp(["--no-demo"], env);
    expect(output).toMatch(
      /^tapedeck: \d ports are taken: stop what uses them \(another Tapedeck\?\), or choose others:\n/,
    );
    expect(output).toMatch(
      new RegExp(`^  127\\.0\\.0\\.1:${http} +the gateway's HTTP +TAPEDECK_GATEWAY_HTTP_PORT$`, "m"),
    );
    expect(output).toMatch(
      new RegExp(`^  127\\.0\\.0\\.1:${health} +query's health +TAPEDECK_QUERY_HEALTH_PORT$`, "m"),
    );
    expect(output).toMatch(new RegExp(`^  127\\.0\\.0\\.1:${nats} +NATS +TAPEDECK_NATS_PORT$`, "m"));
    for (const server of busy) server.close();
  });

  it("names one that is taken, and the setting that chooses another", async () => {
    const busy = await listen();
    const { port } = busy.address() as AddressInfo;
    const { said: output } = await failedUp(["--no-demo"], {
      ...anyServicePorts,
      TAPEDECK_INGEST_GRPC_PORT: `${port}`,
    });
    expect(output).toBe(
      `tapedeck: port ${port} on 127.0.0.1 is taken, so ingest can't listen there: stop what uses it, or choose another (ingest.grpc.port in tapedeck.yaml, or TAPEDECK_INGEST_GRPC_PORT).\n`,
    );
    busy.close();
  });

  it("knows a variable that means nothing, and flags that go with none", async () => {
    const env = { TAPEDECK_GATEWAY_HTTP_PROT: "7", TAPEDECK_LOG_LEVEL: "loud" };
    const { said: output } = await failedUp(["--developer", "alice", "--redact", "off", "--host-name", "node-1"], env);
    expect(output.split("\n")).toEqual([
      "tapedeck: 5 settings are wrong:",
      '  TAPEDECK_LOG_LEVEL: "loud" is not one of trace, debug, info, warn, error, fatal, silent',
      "  TAPEDECK_GATEWAY_HTTP_PROT: unknown setting",
      "  --developer: only valid with --skaffold or --vagrant (or set it in tapedeck.yaml)",
      "  --host-name: only valid with --rkt (or set it in tapedeck.yaml)",
      "  --redact: only valid with --skaffold, --vagrant or --rkt (or set it in tapedeck.yaml)",
      "",
    ]);
  });

  it("does not play a demo and record at once", async () => {
    const flags = ["--skaffold", "127.0.0.1:50051", "--vagrant", "127.0.0.1:9701", "--rkt", "127.0.0.1:15441"];
    const { said: output } = await failedUp(["--demo", ...flags]);
    expect(output).toContain("--demo: the demo does not record your own Skaffold: omit --demo or --skaffold");
    expect(output).toContain("--demo: the demo does not record your own Vagrant: omit --demo or --vagrant");
    expect(output).toContain("--demo: the demo does not record your own rkt host: omit --demo or --rkt");
  });

  testDataFolders(starts, folders);

  it.each([["--skaffold", "127.0.0.1:50051"]])("refuses what is no host and port: %s", async (flag, example) => {
    const { said: output } = await failedUp([flag, "50051"]);
    expect(output).toContain(`Expected HOST:PORT, such as ${example}.`);
  });
});

async function listen() {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}
