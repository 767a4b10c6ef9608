import { hostname } from "node:os";
import { SettingsError, settingsReader } from "@tapedeck/shared/service/settings";
import { expect, it } from "vitest";
import { type SinkDefaults, sinkSettings } from "./settings.ts";

const where: SinkDefaults = {
  workspace: "acme",
  page: undefined,
  http: { host: "127.0.0.1", port: 7052 },
  hasTls: false,
};

const read = (sinks: readonly object[], hosts = "") => {
  const reader = settingsReader({ env: { TAPEDECK_SINKS: JSON.stringify(sinks), TAPEDECK_GATEWAY_SINK_HOSTS: hosts } });
  const settings = sinkSettings(reader, where);
  reader.assertValid();
  return settings;
};

const errorsOf = (sinks: readonly object[], hosts = ""): readonly string[] => {
  try {
    read(sinks, hosts);
    return [];
  } catch (error) {
    if (error instanceof SettingsError) return error.errors;
    throw error;
  }
};

const target = "https://hooks.example/";

it("takes a sink with its defaults, and one with everything", () => {
  const secret = `whsec_${"A".repeat(40)}`;
  const rest = { mode: "structured", start: "2026-01-31T12:00:00Z", headers: { "x-team": "shop" }, secret };
  const { sinks } = read([
    { name: "ops", target },
    { name: "all", workspace: "globex", target, filter: { kinds: ["*.failed"], developers: ["Alice"] }, ...rest },
  ]);
  const defaults = { format: "webhook", mode: "batched", start: "now", filter: {}, headers: {} };
  expect(sinks).toMatchObject([
    { workspace: "acme", sink: "ops", definition: { target, ...defaults } },
    {
      workspace: "globex",
      sink: "all",
      definition: { filter: { kinds: ["*.failed"], developers: ["alice"] }, ...rest },
    },
  ]);
});

it.each([
  [{ name: "Ops", target }, /0\.name: expected 1–63/],
  [{ name: "ops", target: "http://hooks.example/" }, /0\.target: is without TLS/],
  [{ name: "ops", target: "https://10.0.0.1/" }, /0\.target: 10\.0\.0\.1 is not a public address/],
  [{ name: "ops", target, filter: { kinds: ["build.exploded"] } }, /filter.*matches no kind/],
  [{ name: "ops", target, filter: { kind: ["*.failed"] } }, /filter.*unknown/],
  [{ name: "ops", target, start: "yesterday" }, /start: "yesterday" is neither start, now, a position \(such as /],
  [{ name: "ops", target, start: "2126-01-31T12:00:00Z" }, /start: 2126-01-31T12:00:00Z is in the future: /],
  [
    { name: "ops", target, headers: { "x-team": "x", "Content-Type": "x", host: "x" } },
    /headers: the request itself sets Content-Type, host$/,
  ],
  [{ name: "ops", target, headers: { "x y": "x" } }, /headers/],
  [{ name: "ops", target, headers: { x: "a\nb" } }, /headers.*is not printable ASCII/],
  [{ name: "ops", target, secret: "whsec_short" }, /secret: does not have 24 to 64 bytes/],
  [{ name: "ops", target, format: "fax" }, /0\.format: "fax" is not one of webhook, otlp, slack, chat$/],
  [{ name: "ops", target, mode: "single" }, /0\.mode: "single" is not one of batched, structured$/],
  [{ name: "ops", target, retries: 3 }, /retries/],
])("refuses %j", (sink, message) => {
  expect(errorsOf([sink])).toEqual([expect.stringMatching(message)]);
});

it.each([
  [
    { format: "otlp", filter: { kinds: ["build.failed"] } },
    /otlp sends nothing for build\.failed, .*: write loop\.failed$/,
  ],
  [
    { format: "otlp", filter: { kinds: ["deploy.failed", "log.written"] } },
    /deploy\.failed, log\.written, .*loop\.failed$/,
  ],
  [
    { format: "otlp", filter: { kinds: ["log.written"] } },
    /kinds: otlp sends nothing for log\.written, .*: write loop\.\*$/,
  ],
  [{ format: "otlp", filter: { kinds: ["build.started"] } }, /kinds: otlp sends nothing for build\.started, /],
  [
    { format: "otlp", filter: { subjects: ["web"] } },
    /subjects: a trace is sent when its run ends, and the end of a loop/,
  ],
  [{ format: "otlp", filter: { kinds: ["loop.failed"], subjects: ["web"] } }, /subjects: loop\.failed has no subject$/],
  [
    { format: "otlp", filter: { kinds: ["loop.*"], subjects: ["web"] } },
    /subjects: loop\.succeeded, loop\.failed have no subject$/,
  ],
  [{ cdevents: true, filter: { kinds: ["log.written"] } }, /a webhook of CDEvents sends nothing for log\.written, /],
  [
    { filter: { kinds: ["build.failed"], outcomes: ["succeeded"] } },
    /outcomes: no build\.failed has the outcome succe/,
  ],
  [
    { filter: { kinds: ["*.started"], outcomes: ["failed"] } },
    /outcomes: no .*build\.started, .* has the outcome failed/,
  ],
  [{ filter: { sessions: ["notaulid"] } }, /sessions: "notaulid" is not the id of a session$/],
  [{ format: "slack", filter: { sessions: ["notaulid"] } }, /sessions: "notaulid" is not the id of a session$/],
])("refuses %j, whose filter can never match", (sink, message) => {
  expect(errorsOf([{ name: "ops", target, ...sink }])).toEqual([expect.stringMatching(message)]);
});

it.each([
  { format: "otlp", filter: { kinds: ["*.failed"] } },
  { format: "otlp", filter: { kinds: ["build.failed", "loop.failed"] } },
  { format: "otlp", filter: { kinds: ["session.ended"] } },
  { format: "otlp", live: true, filter: { kinds: ["build.started"] } },
  { format: "otlp", filter: { kinds: ["command.finished"], subjects: ["up"], outcomes: ["failed"] } },
  { format: "otlp", filter: { outcomes: ["failed"], sessions: ["01M7XB1CJJ74KGYJT57DM4N80H"] } },
  { cdevents: true, filter: { kinds: ["*.failed"], subjects: ["web"] } },
  { filter: { kinds: ["job.succeeded"], outcomes: ["failed"] } },
  { filter: { kinds: ["log.written"], subjects: ["web"] } },
  { format: "slack", filter: { sessions: ["01M7XB1CJJ74KGYJT57DM4N80H"] } },
])("takes %j, whose filter can match", (sink) => {
  expect(errorsOf([{ name: "ops", target, ...sink }])).toEqual([]);
});

it("says at once what is wrong with each sink, whatever is wrong with others", () => {
  const sinks = [
    { name: "Ops", target, format: "fax" },
    { name: "team", target: "http://hooks.example/", format: "chat", template: { text: "{{txt}}" } },
    { name: "local", target: "https://127.0.0.1/" },
    { name: "traces", target, format: "otlp", cdevents: true },
  ];
  expect(errorsOf(sinks)).toEqual([
    expect.stringMatching(/0\.name: /),
    expect.stringMatching(/0\.format: /),
    expect.stringMatching(/1\.template: has \{\{txt\}\}/),
    expect.stringMatching(/1\.target: is without TLS/),
    expect.stringMatching(/2\.target: 127\.0\.0\.1 is not a public address/),
    expect.stringMatching(/3\.cdevents: only webhook sends CDEvents/),
  ]);
});

it.each([
  ["http://127.0.0.1:9900/x", "127.0.0.1:9900"],
  ["https://Receiver.example", "receiver.example"],
  ["receiver:8080/hook", "receiver:8080"],
  ["receiver.", "receiver"],
  ["127.1:80", "127.0.0.1:80"],
])("refuses the host %s, which allows nothing, and says what to write", (host, meant) => {
  expect(errorsOf([], host)).toEqual([
    `gateway.sinkHosts: "${host}" is not a host, such as receiver or receiver:8080: write ${meant}`,
  ]);
});

it.each(["*.example", "a host", "receiver:x"])("refuses the host %s, which allows nothing", (host) => {
  expect(errorsOf([], host)).toEqual([`gateway.sinkHosts: "${host}" is not a host, such as receiver or receiver:8080`]);
});

it.each(["receiver", "Receiver:8080", "receiver:443", "127.0.0.1", "::1", "[::1]:8080"])(
  "takes the host %s",
  (host) => {
    expect(errorsOf([], host)).toEqual([]);
  },
);

it("refuses two of one name in a workspace", () => {
  const one = { name: "ops", target };
  expect(errorsOf([one, { ...one, workspace: "globex" }])).toEqual([]);
  expect(errorsOf([one, one])).toEqual(["sinks.1.name: ops is listed twice"]);
});

it.each([
  ["https://tapedeck.example:7052/", "https://tapedeck.example:7052"],
  ["https://tools.example/tapedeck", "https://tools.example/tapedeck"],
  [undefined, "http://127.0.0.1:7052"],
])("takes %s as the address of the page", (written, page) => {
  const reader = settingsReader({ env: { TAPEDECK_GATEWAY_PAGE_URL: written } });
  expect(sinkSettings(reader, where)).toMatchObject({ page, givenPage: written && page });
});

it.each(["0.0.0.0", "::"])("links to this machine by its name where HTTP listens at %s, with a doubt", (host) => {
  const of = (env: NodeJS.ProcessEnv, page?: string) =>
    sinkSettings(settingsReader({ env }), { ...where, page, http: { host, port: 7052 }, hasTls: true });
  expect(of({})).toMatchObject({
    page: `https://${hostname()}:7052`,
    pageDoubt: expect.stringContaining("gateway.pageUrl is missing"),
  });
  expect(of({ TAPEDECK_GATEWAY_PAGE_URL: "https://deck.example" }).pageDoubt).toBeUndefined();
  const anyPort = sinkSettings(settingsReader({ env: {} }), { ...where, http: { host: "127.0.0.1", port: 0 } });
  expect(anyPort.pageDoubt).toContain("gateway.pageUrl is missing");
  expect(of({}, "https://deck.example")).toMatchObject({ page: "https://deck.example", pageDoubt: undefined });
});

it.each(["tapedeck.example", "ftp://tapedeck.example", "https://tapedeck.example/?a=b"])(
  "refuses %s as the address of the page",
  (written) => {
    const reader = settingsReader({ env: { TAPEDECK_GATEWAY_PAGE_URL: written } });
    sinkSettings(reader, where);
    expect(() => reader.assertValid()).toThrow("is not the address of the page");
  },
);
