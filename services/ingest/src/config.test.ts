import { hostname } from "node:os";
import { parseSettings } from "@tapedeck/shared/service/settings";
import { expect, it } from "vitest";
import { readConfig, sourceDurations, spillOfEach, upstreamSettings } from "./config.ts";

const yaml = (text: string) => () => readConfig({ env: {}, file: parseSettings("tapedeck.yaml", text) });

it("a source needs an address, the rest has defaults", () => {
  const [source] = yaml("sources: [{ address: '127.0.0.1:50051', labels: { pr: 7 } }]")().sources;
  expect(source).toMatchObject({ upstream: "skaffold", redact: "on", logs: "on", standby: false, labels: { pr: "7" } });
  expect(source?.developer).not.toBe("");
});

it("off is off, as a word and as YAML's false", () => {
  const { sources } = yaml("sources: [{ address: 'a:1', project: a, redact: off, logs: false }]")();
  expect(sources[0]).toMatchObject({ redact: "off", logs: "off" });
});

it("a rkt host is named by this machine, is polled every second, and its logs only where asked for", () => {
  const [host] = yaml("sources: [{ upstream: rkt, address: '127.0.0.1:15441', interval: 250ms }]")().sources;
  expect(host).toMatchObject({ developer: hostname(), project: "host", logs: "off", redact: "on" });
  const settings = { interval: "250", timeout: "10000", load: "2", extinctionHold: "600000" };
  expect(host && upstreamSettings(host)).toEqual(settings);
});

it("the cost of polling a rkt host is limited by a percentage", () => {
  const load = (given: string) => yaml(`sources: [{ upstream: rkt, address: 'a:1', load: ${given} }]`)().sources[0];
  expect(load("0.5")).toMatchObject({ load: 0.5 });
  expect(() => load("0")).toThrow(/load: expected 0.1 or more/);
  expect(() => load("much")).toThrow(/load: expected percent of a processor/);
});

it("the durations among the settings of sources are known by name, of every upstream", () => {
  expect([...sourceDurations].toSorted()).toEqual(["extinction_hold", "interval", "timeout"]);
});

it("text stays for ever unless something else is said", () => {
  expect(yaml("")().retention).toEqual({ facts: undefined, text: undefined });
  expect(yaml("retention: { text: 30d }")().retention).toEqual({ facts: undefined, text: 2_592_000 });
  const env = { TAPEDECK_RETENTION_TEXT: "1500ms" };
  expect(readConfig({ env }).retention).toEqual({ facts: undefined, text: 2 });
});

const MiB = 1024 * 1024;

it("the bounds of the spill are those of all sources together", () => {
  const { spill } = yaml("")();
  expect(spillOfEach(spill, 1)).toEqual({ ...spill, memoryBytes: 64 * MiB, diskBytes: 1024 * MiB });
  expect(spillOfEach(spill, 0)).toEqual(spillOfEach(spill, 1));
  expect(spillOfEach(spill, 3)).toMatchObject({ memoryBytes: 22_369_621, diskBytes: 357_913_941 });
});

it("a source's part of the spill is never too small to be of use, nor more than all", () => {
  const { spill } = yaml("")();
  expect(spillOfEach(spill, 100)).toMatchObject({ memoryBytes: 1 * MiB, diskBytes: 16 * MiB });
  const small = yaml("ingest: { spill: { memoryBytes: 0, diskBytes: 5000 } }")().spill;
  expect(spillOfEach(small, 100)).toMatchObject({ memoryBytes: 0, diskBytes: 5_000 });
});

it.each([
  ["sources: { a: 1 }", "tapedeck.yaml: sources: expected a list of sources"],
  ["sources: [{ project: a }]", "tapedeck.yaml: sources.0.address: expected host:port, such as 127.0.0.1:50051"],
  ["sources: [{ address: here }]", "sources.0.address: expected host:port"],
  ["sources: [{ address: 'a:70000' }]", "sources.0.address: expected host:port"],
  ["sources: [{ address: 'a:1', redact: perhaps }]", 'sources.0.redact: expected "on" or "off"'],
  ["sources: [{ address: 'a:1', upstream: make }]", "sources.0.upstream: expected one of skaffold, rkt"],
  ["sources: [{ address: 'a:1', interval: 1s }]", "sources.0: unknown: interval"],
  [
    "sources: [{ upstream: rkt, address: 'a:1', interval: 1 }]",
    'sources.0.interval: expected a duration such as "500ms"',
  ],
  ["sources: [here]", "sources.0: expected { address, … }"],
  ["sources: [{ address: 'a:1', adress: 'b:2' }]", "unknown: adress"],
  ["sources: [{ address: 'a:1', project: Shop }, { address: 'b:2', project: shop }]", "/shop/skaffold is listed twice"],
  ["retention: { text: 0d }", "retention.text: expected 1s or more"],
  ["retention: { text: forever }", 'retention.text: "forever" is not a duration'],
  ["ingest: { grpc: { port: many } }", 'tapedeck.yaml: ingest.grpc.port: "many" is not'],
])("%s is a problem", (text, reason) => {
  expect(yaml(text)).toThrow(reason);
});

it.each(["grpc", "health"])(
  "a listener beyond loopback (%s) is for the services, which know each other by their key",
  (name) => {
    const text = `ingest: { ${name}: { host: 0.0.0.0 } }`;
    expect(yaml(text)).toThrow(
      `ingest.${name}.host: "0.0.0.0" is beyond loopback, which needs services.key (it is for Tapedeck's own services only)`,
    );
    expect(yaml(`${text}\nservices: { key: abc }`)).not.toThrow();
    expect(yaml(`${text}\ninsecure: true`)).not.toThrow();
  },
);

it("its health is answered to a caller that names a host of the gateway's", () => {
  expect(yaml("gateway: { hosts: [deck.example.com] }")().health.hosts).toEqual(["deck.example.com"]);
});
