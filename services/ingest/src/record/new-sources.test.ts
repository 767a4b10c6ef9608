import { credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { type Item, type PushResponse, RecorderClient } from "@tapedeck/proto/tapedeck/v1/recorder";
import { endSubjects, endsStream } from "@tapedeck/shared/log/subjects";
import { SettingsError } from "@tapedeck/shared/service/settings";
import { startTestNats, type TestNats } from "@tapedeck/shared/testing/nats";
import { until } from "@tapedeck/shared/testing/until";
import { timestampNow } from "@tapedeck/shared/time/timestamp";
import { connect } from "nats";
import { afterAll, beforeAll, expect, it } from "vitest";
import { readConfig } from "../config.ts";
import { type Ingest, startIngest } from "../ingest.ts";
import { testLogger } from "../testing/ingest-harness.ts";

const cleanup = new AsyncDisposableStack();
let nats: TestNats;
let ingest: Ingest;
/** Another ingest of the same log. */
let other: Ingest;

async function start(perWorkspace: number): Promise<Ingest> {
  const env = {
    TAPEDECK_NATS_URL: nats.url,
    TAPEDECK_INGEST_GRPC_PORT: "0",
    TAPEDECK_INGEST_HEALTH_PORT: "0",
    TAPEDECK_SERVICES_KEY: "key",
    TAPEDECK_INGEST_SOURCES_PER_TOKEN_HOUR: "2",
    TAPEDECK_INGEST_SOURCES_PER_WORKSPACE: String(perWorkspace),
    TAPEDECK_INGEST_REQUIRE_REDACT: "true",
  };
  const started = cleanup.use(await startIngest(readConfig({ env }), testLogger));
  await until(async () => (await fetch(`http://${started.addresses.health}/readyz`)).ok, { message: "ingest" });
  return started;
}
beforeAll(async () => {
  nats = cleanup.use(await startTestNats());
  ingest = await start(3);
  other = await start(3);
});
afterAll(() => cleanup.disposeAsync());

type SourceRequest = {
  readonly workspace: string;
  readonly token?: string;
  readonly developer: string;
  readonly redact?: string;
  /** Default: the first ingest. */
  readonly at?: string;
};

/** Records an event of a source. Resolves with "recorded", or with the refusal. */
async function record({ workspace, token, developer, redact = "on", at: address }: SourceRequest): Promise<string> {
  const client = new RecorderClient(address ?? ingest.addresses.grpc, credentials.createInsecure());
  const metadata = new Metadata();
  metadata.set("tapedeck-key", "key");
  metadata.set("tapedeck-workspace", workspace);
  if (token !== undefined) metadata.set("tapedeck-token", token);
  const call = client.push(metadata);
  const outcome = new Promise<string>((resolve) => {
    call.on("error", ({ code, details }: ServiceError) => resolve(`${code} ${details}`));
    call.on("data", ({ body }: PushResponse) => body?.$case === "committed" && resolve("recorded"));
  });
  const hello = { developer, project: "shop", upstream: "skaffold", tap: `T-${developer}`, labels: {}, redact };
  call.write({ body: { $case: "hello", value: { ...hello, first_index: 1n, settings: {} } } });
  const at = timestampNow();
  const dialled: Item["what"] = { $case: "dialled", value: { address: "127.0.0.1:1", channels: ["v1"] } };
  const frame: Item["what"] = { $case: "frame", value: { channel: "v1", bytes: Buffer.from("x"), more: false } };
  call.write({ body: { $case: "item", value: { index: 1n, connection: "C", at, what: dialled } } });
  call.write({ body: { $case: "item", value: { index: 2n, connection: "C", at, what: frame } } });
  const result = await outcome;
  call.on("error", () => {});
  call.end();
  client.close();
  return result;
}

it("a token makes no more new sources than it may, and goes on with those that exist", async () => {
  const of = (developer: string, token = "t1") => record({ workspace: "acme", token, developer });
  expect(await of("a")).toBe("recorded");
  expect(await of("b")).toBe("recorded");
  expect(await of("c")).toMatch(/^8 this token has made 2 sources within an hour.*ingest\.sources\.perTokenHour/);
  expect(await of("c", "t2")).toBe("recorded");
});

it("a workspace has no more sources than it may", async () => {
  for (const [index, developer] of ["a", "b", "c"].entries()) {
    expect(await record({ workspace: "globex", token: `g${index}`, developer })).toBe("recorded");
  }
  const refusal = await record({ workspace: "globex", token: "g9", developer: "d" });
  expect(refusal).toMatch(/^8 the workspace "globex" has 3 sources.*ingest\.sources\.perWorkspace/);
  expect(await record({ workspace: "initech", token: "g9", developer: "d" })).toBe("recorded");
});

it("redact: off is refused where an operator forbids it, and all refusals are counted", async () => {
  const refusal = await record({ workspace: "initech", developer: "e", redact: "off" });
  expect(refusal).toMatch(/^7 .*redact: off.*ingest\.requireRedact/);
  const metrics = await (await fetch(`http://${ingest.addresses.health}/metrics`)).text();
  for (const bound of ["sources of the token", "sources of the workspace", "redact"]) {
    expect(metrics).toContain(`tapedeck_ingest_recordings_refused_total{bound="${bound}",service="ingest"} 1`);
  }
});

it("a name that could pass for another one is refused", async () => {
  const refusal = await record({ workspace: "initech", developer: "kim\u202E" });
  expect(refusal).toMatch(/^3 the developer's name has the character U\+202E/);
});

it("a configured source may not have it either", () => {
  const env = {
    TAPEDECK_INGEST_REQUIRE_REDACT: "true",
    TAPEDECK_SOURCES: JSON.stringify([
      { upstream: "skaffold", developer: "a", project: "b", address: "127.0.0.1:1", redact: "off" },
    ]),
  };
  expect(() => readConfig({ env })).toThrow(SettingsError);
  expect(() => readConfig({ env })).toThrow(/ingest\.requireRedact/);
});

it("a workspace that gets many sources at once, at two ingests, has no more than it may", async () => {
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, index) =>
      record({
        workspace: "hooli",
        token: `h${index}`,
        developer: `d${index}`,
        ...(index % 2 === 0 && { at: other.addresses.grpc }),
      }),
    ),
  );
  expect(answers.filter((answer) => answer === "recorded")).toHaveLength(3);
  expect(answers.filter((answer) => answer.startsWith('8 the workspace "hooli" has 3 sources'))).toHaveLength(5);
});

it("a source that its workspace has no room for is none that its token made", async () => {
  for (const developer of ["a", "b", "c"]) await record({ workspace: "stark", token: developer, developer });
  for (const developer of ["d", "e"]) {
    expect(await record({ workspace: "stark", token: "t4", developer })).toMatch(/^8 the workspace/);
  }
  expect(await record({ workspace: "wayne", token: "t4", developer: "a" })).toBe("recorded");
  expect(await record({ workspace: "wayne", token: "t4", developer: "b" })).toBe("recorded");
});

it("a token that makes many sources at once makes no more than it may", async () => {
  const developers = Array.from({ length: 8 }, (_, index) => `d${index}`);
  const answers = await Promise.all(
    developers.map((developer) => record({ workspace: "umbrella", token: "t3", developer })),
  );
  expect(answers.filter((answer) => answer === "recorded")).toHaveLength(2);
});

it("more sources without an event than one message holds are refused with a sentence, until some are a day old", async () => {
  const roomy = await start(100_000);
  const of = (developer: string) => record({ workspace: "crowded", developer, at: roomy.addresses.grpc });
  const nc = await connect({ servers: nats.url });
  const waiting = (ageMs: number) =>
    Array.from({ length: 10_000 }, (_, index) => [`${"x".repeat(100)}${index}`, Date.now() - ageMs]);
  const publish = (entries: (string | number)[][]) =>
    jetstream(nc).publish(endSubjects("crowded").reserved, JSON.stringify(Object.fromEntries(entries)));
  await publish(waiting(0));
  expect(await of("late")).toMatch(/^8 10000 new sources of the workspace "crowded" wait for their first event/);
  await publish(waiting(24 * 3_600_000 + 1));
  expect(await of("late")).toBe("recorded");
  await nc.close();
});

it("a source that can't be counted now is to try again", async () => {
  const nc = await connect({ servers: nats.url });
  const { streams } = await jetstreamManager(nc, { checkAPI: false });
  await streams.update(endsStream, { max_msg_size: 10 });
  expect(await record({ workspace: "soylent", developer: "a" })).toMatch(/^14 the log is unavailable: try again/);
  await streams.update(endsStream, { max_msg_size: -1 });
  expect(await record({ workspace: "soylent", developer: "a" })).toBe("recorded");
  await nc.close();
});
