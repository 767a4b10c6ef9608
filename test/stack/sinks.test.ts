import { mkdtemp, readFile } from "node:fs/promises";
import { join } from "node:path";
import { spansOf } from "@tapedeck/gateway/sinks/testing/received-spans";
import { type Receiver, startReceiver } from "@tapedeck/gateway/sinks/testing/receiver";
import { openLog } from "@tapedeck/shared/log/jetstream";
import { sourceName } from "@tapedeck/shared/source";
import { testWriter } from "@tapedeck/shared/testing/log-messages";
import { until } from "@tapedeck/shared/testing/until";
import { connect } from "nats";
import { startCli } from "tapedeck/testing/cli";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { type Stack, startStack } from "./stack.ts";

const cleanup = new AsyncDisposableStack();
afterAll(() => cleanup.disposeAsync());
let stack: Stack;
let receiver: Receiver;
let writer: ReturnType<typeof testWriter>;
let cwd: string;

beforeAll(async () => {
  const operators = JSON.stringify([
    { name: "ops", target: "https://hooks.example/", filter: { kinds: ["loop.failed"] } },
  ]);
  const env = { TAPEDECK_GATEWAY_SINK_HOSTS: "127.0.0.1", TAPEDECK_SINKS: operators };
  stack = cleanup.use(await startStack({ skaffold: [], env }));
  receiver = cleanup.use(await startReceiver());
  cwd = await mkdtemp(join(inject("serversFolder"), "sinks-"));
  const nats = cleanup.adopt(await connect({ servers: stack.parts.nats.url }), (nc) => nc.close());
  const log = cleanup.use(await openLog(nats, { workspace: "default", syncKnown: true, timeoutMs: 20_000 }));
  const source = sourceName({ workspace: "default", developer: "alice", project: "shop", upstream: "skaffold" });
  writer = testWriter(log.writer, source);
});

async function tapedeck(...args: readonly string[]) {
  const env = { TAPEDECK_URL: `http://${stack.http}`, HOOK_TOKEN: "Bearer 1234", HONEYCOMB_API_KEY: "5678" };
  await using cli = startCli(args, { cwd, env });
  return { code: await cli.ended, out: cli.stdout(), err: cli.stderr() };
}

it("tapedeck sink adds, lists, tests, pauses, rewinds and removes a sink", async () => {
  await writer.append(2, { kind: "build.started" });
  await writer.append(1, { kind: "build.failed" });
  const flags = [
    "-k",
    "*.failed",
    "--start",
    "start",
    "--header",
    "x-team: shop",
    "--header-env",
    "authorization=HOOK_TOKEN",
  ];
  const added = await tapedeck("sink", "add", "ci", receiver.url, ...flags);
  expect(added).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^added ci, which delivers to \S+ from the start of the log\nwhsec_\S+\n$/),
  });
  await until(() => receiver.accepted.length === 1, { message: "the failure" });
  expect(receiver.requests[0]?.headers).toMatchObject({ "x-team": "shop", authorization: "Bearer 1234" });

  expect(await tapedeck("sink", "test", "ci")).toEqual({ code: 0, out: "ci: its target accepts (204)\n", err: "" });
  receiver.answer = () => ({ status: 403, body: "no" });
  expect(await tapedeck("sink", "test", "ci")).toMatchObject({
    code: 1,
    err: "tapedeck: ci: its target refuses: answered 403: no.\n",
  });
  receiver.answer = () => ({ status: 204 });

  const isListed = async () => /^ci .* delivering +- /m.test((await tapedeck("sink", "list")).out);
  await until(isListed, { message: "it to be listed as up to date" });
  const { out: list } = await tapedeck("sink", "list");
  expect(list).toMatch(/^SINK +TARGET +STATE +BEHIND +PARKED +ERROR$/m);
  expect(list).toMatch(/^ci +http:\/\/127\.0\.0\.1:\d+\/… +delivering +- +0$/m);
  expect(list).toMatch(/^ops +https:\/\/hooks\.example +\S+ \(settings\)/m);

  expect(await tapedeck("sink", "pause", "ci")).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^paused ci after /),
  });
  expect(await tapedeck("sink", "rewind", "ci", "--to", "start")).toMatchObject({
    code: 0,
    out: "ci goes on from the start of the log\n",
  });
  const { http } = stack;
  const rewound = await fetch(`http://${http}/api/v1/sinks/ci/rewind`, {
    method: "POST",
    body: JSON.stringify({ to: "2126-01-31T12:00:00Z" }),
  });
  expect(await rewound.json()).toMatchObject({
    error: { field: "to", message: expect.stringContaining("in the future") },
  });
  const paused = JSON.parse((await tapedeck("sink", "resume", "ci", "--json")).out);
  expect(paused).toMatchObject({ name: "ci", filter: { kinds: ["*.failed"] }, headers: ["x-team", "authorization"] });
  await until(() => receiver.accepted.length === 2, { message: "the failure again" });
  expect(receiver.accepted[0]?.id).toBe(receiver.accepted[1]?.id);

  expect(await tapedeck("sink", "remove", "ci")).toEqual({ code: 0, out: "removed ci\n", err: "" });
  expect(await tapedeck("sink", "remove", "ops")).toMatchObject({ code: 1, err: expect.stringContaining("settings") });
  expect(await tapedeck("sink", "pause", "ci")).toMatchObject({ code: 1, err: 'tapedeck: there is no sink "ci".\n' });
});

it("tapedeck sink lists parked events, delivers them once more and gives them up", async () => {
  const before = receiver.accepted.length;
  receiver.answer = ({ events: [first] }) => ({
    status: first?.type === "dev.tapedeck.build.failed" ? 422 : 204,
    body: "no",
  });
  await tapedeck("sink", "add", "parking", receiver.url, "-k", "build.*", "--start", "now");
  await writer.append(2, { kind: "build.failed" });
  await writer.append(1, { kind: "build.succeeded" });
  await until(() => receiver.accepted.length === before + 1, { message: "the event after those that are refused" });
  const { items } = JSON.parse((await tapedeck("sink", "parked", "parking", "--json")).out);
  expect(items).toHaveLength(2);
  const { out } = await tapedeck("sink", "parked", "parking");
  expect(out).toMatch(/^POSITION +SOURCE +KIND +PARKED +TRIES +ERROR$/m);
  expect(out).toMatch(/ alice\/shop +build\.failed .* answered 422: no$/m);
  expect(await tapedeck("sink", "retry", "parking")).toMatchObject({
    code: 1,
    out: "delivered 0 of 2, 2 refused\n",
    err: `tapedeck: parking: its target refuses: answered 422: no (at ${items[0].position}).\n`,
  });
  receiver.answer = () => ({ status: 503 });
  expect(await tapedeck("sink", "retry", "parking")).toMatchObject({
    code: 1,
    out: "delivered 0 of 2, 2 wait\n",
    err: `tapedeck: parking: its target is away: answered 503 (at ${items[0].position}).\n`,
  });
  receiver.answer = () => ({ status: 204 });
  const one = await tapedeck("sink", "retry", "parking", "--position", items[0].position);
  expect(one).toEqual({ code: 0, out: "delivered 1 of 1\n", err: "" });
  expect(await tapedeck("sink", "drop", "parking")).toEqual({ code: 0, out: "dropped 1\n", err: "" });
  for (const command of ["parked", "drop"])
    expect((await tapedeck("sink", command, "parking")).out).toBe("No events are parked.\n");
});

/** The lines of a page that add a sink, with a target of this machine. */
function addLines(page: string): readonly string[][] {
  const lines = page.split("\n").filter((line) => line.startsWith("tapedeck sink add "));
  return lines.map((line) =>
    line
      .split(" ")
      .slice(1)
      .map((word) => word.replace(/^https:\/\/[^/]+/, new URL(receiver.url).origin)),
  );
}

it("tapedeck sink takes the lines of docs/otlp.md, sends traces, and warns of old ones", async () => {
  const page = await readFile(new URL("../../docs/otlp.md", import.meta.url), "utf8");
  const lines = addLines(page);
  expect(lines.length).toBeGreaterThan(1);
  for (const line of lines) {
    const added = await tapedeck(...line, "--start", "start");
    expect(added).toMatchObject({ code: 0, out: expect.stringMatching(/^added traces, which delivers to [^\n]*\n$/) });
    expect(await tapedeck("sink", "test", "traces")).toEqual({
      code: 0,
      out: "traces: its target accepts (204)\n",
      err: "",
    });
    await writer.append(1, { kind: "loop.started", operation, occurred_at: { seconds: 1_000_000_000n, nanos: 0 } });
    await writer.append(1, { kind: "loop.succeeded", operation });
    const spans = () =>
      receiver.requests.flatMap((request) => spansOf(request)).filter(({ name }) => name === "RUN shop");
    await until(() => spans().length > 0, { message: "the trace" });
    expect(receiver.requests.at(-1)?.path).toBe(new URL(line[3] ?? "").pathname);
    await tapedeck("sink", "rewind", "traces", "--to", "start");
    await tapedeck("sink", "remove", "traces");
  }
  await tapedeck("sink", "add", "old", receiver.url, "--format", "otlp", "-k", "loop.*", "--start", "start");
  expect(await tapedeck("sink", "test", "old")).toMatchObject({
    code: 0,
    err: expect.stringMatching(/^old: it delivers spans of more than a day ago next: .*\n$/),
  });
  const refused = await tapedeck("sink", "add", "no", receiver.url, "--live");
  expect(refused).toMatchObject({ code: 1, err: expect.stringContaining("live: only otlp sends spans") });
});

const operation = { kind: "loop", subject: "", runner: 1, loop: 1 };
