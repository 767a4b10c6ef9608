import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, credentials, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { type FakeSkaffold, startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { UserIntentRequest } from "@tapedeck/proto/skaffold/v2/skaffold";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { logStart } from "@tapedeck/shared/log/offset";
import { sourceFilter } from "@tapedeck/shared/log/subjects";
import { sourceName } from "@tapedeck/shared/source";
import { testCertificate } from "@tapedeck/shared/testing/certificates";
import { until } from "@tapedeck/shared/testing/until";
import { openTokenStore, type TokenStore } from "@tapedeck/shared/tokens/store";
import { makeToken, type Role } from "@tapedeck/shared/tokens/token";
import { connect } from "nats";
import { type RunningCli, startCli } from "tapedeck/testing/cli";
import { urlOf } from "tapedeck/testing/recorder";
import { installSkaffold, recordingFolder } from "tapedeck/testing/skaffold-program";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Stack, startStack } from "./stack.ts";

// Laptops and a team's Tapedeck: TLS, tokens, and nothing but `tapedeck run` and `tapedeck record` on the laptops.

const build = recordingFolder("12-skaffold-build-one-shot");
const control = recordingFolder("05-control-api-auto-off");
const folder = mkdtempSync(join(tmpdir(), "remote-record-"));
const path = installSkaffold(join(folder, "bin"));
const cleanup = new AsyncDisposableStack();
let stack: Stack;
let tokens: TokenStore;
let to: string;
let caFile: string;

beforeAll(async () => {
  const { certFile, keyFile } = await testCertificate(folder);
  caFile = certFile;
  const env = { TAPEDECK_AUTH: "tokens", TAPEDECK_TLS_CERT: certFile, TAPEDECK_TLS_KEY: keyFile };
  stack = cleanup.use(await startStack({ env }));
  const nats = cleanup.adopt(await connect({ servers: stack.parts.nats.url }), (nc) => nc.close());
  tokens = await openTokenStore(nats);
  to = `https://localhost:${stack.grpc.split(":").at(-1)}`;
});
afterAll(async () => {
  await cleanup.disposeAsync();
  rmSync(folder, { recursive: true, force: true });
});

async function token(roles: readonly Role[], developer = "dora", workspace = "acme") {
  const made = makeToken({ name: `${developer}'s`, workspace, roles: [...roles], developer, lifetimeMs: 3_600_000 });
  await tokens.create(made);
  return { text: made.text, revoke: () => tokens.revoke(made.record.id) };
}

/** A laptop, as far as a process can stand in for one. */
function laptop(bearer: string) {
  const cwd = mkdtempSync(join(folder, "laptop-"));
  const spill = join(cwd, "spill");
  const env = {
    ...{ PATH: path, TAPEDECK_SPILL: spill, TAPEDECK_URL: urlOf(to), TAPEDECK_CA: caFile, TAPEDECK_TOKEN: bearer },
    STAND_IN_RECORDING: build,
  };
  const cli = (args: readonly string[], more = {}) => startCli(args, { cwd, env: { ...env, ...more } });
  const record = (fake: FakeSkaffold, more = {}) =>
    cli(["record", "--upstream", "skaffold", "--address", fake.address, "--project", "blog"], more);
  const run = (...more: string[]) => cli(["run", "--project", "shop", ...more, "--", "skaffold", "build"]);
  const runUnasked = () =>
    cli(["run", "--project", "shop", "--", "skaffold", "build"], { TAPEDECK_ANSWER_WITHIN: "0s" });
  return {
    ...{ spill, cli, run, runUnasked, record },
  };
}

async function events(developer: string, project: string): Promise<readonly Event[]> {
  const source = sourceName({ workspace: "acme", developer, project, upstream: "skaffold" });
  const subjects = [sourceFilter(source)];
  const found: Event[] = [];
  const over = new AbortController();
  const last = await stack.log.lastMatch(subjects);
  for await (const { event } of stack.log.history({ afterOffset: logStart, subjects }, last, over.signal))
    found.push(event);
  return found;
}

const framesOf = (all: readonly Event[], channel: "v1" | "v2") =>
  all.flatMap(({ channel: of, part, original }) => (of === channel && part === 0 && original ? [original.bytes] : []));
const saidIn = (recording: string, channel: "v1" | "v2") =>
  loadRecording(recording).messages[channel].map(({ bytes }) => bytes);

async function getJson<Answer>(path: string, bearer: string): Promise<Answer> {
  const port = Number(stack.http.split(":").at(-1));
  const headers = { authorization: `Bearer ${bearer}` };
  const text = await new Promise<string>((resolve, reject) => {
    const asked = request({ host: "localhost", port, path, headers, ca: readFileSync(caFile) }, async (response) => {
      resolve((await Array.fromAsync(response)).join(""));
    });
    asked.on("error", reject).end();
  });
  return JSON.parse(text) as Answer;
}

/** A control call as an IDE makes it, without knowledge of taps. */
function execute(bearer: string, source: string): Promise<{ readonly code: number; readonly details: string }> {
  const client = new Client(to.replace("https://", ""), credentials.createSsl(readFileSync(caFile)));
  const metadata = new Metadata();
  metadata.set("authorization", `Bearer ${bearer}`);
  metadata.set("tapedeck-source", source);
  const asIs = (bytes: Buffer) => bytes;
  const intent = Buffer.from(
    UserIntentRequest.encode({ intent: { build: true, sync: false, deploy: false, devloop: false } }).finish(),
  );
  return new Promise((resolve) => {
    const method = "/proto.v2.SkaffoldV2Service/Execute";
    client.makeUnaryRequest(method, asIs, asIs, intent, metadata, (error: ServiceError | null) => {
      client.close();
      resolve({ code: error?.code ?? status.OK, details: error?.details ?? "" });
    });
  });
}

const tells = (cli: RunningCli, text: string) =>
  until(() => cli.stdout().includes(text), { message: `"${text}" to be printed` });

describe("a team's Tapedeck", () => {
  it("has each developer's recording under the name that the token gives", async () => {
    const [alice, dora, viewer] = await Promise.all([
      token(["recorder"], "alice"),
      token(["recorder"], "dora"),
      token(["viewer"]),
    ]);
    await using fake = await startFakeSkaffold({ recording: loadRecording(control) });
    await using record = laptop(dora.text).record(fake);
    const run = laptop(alice.text).run("--developer", "dora");
    expect(await run.ended).toBe(0);
    expect(run.stderr().split("\n")).toEqual([
      "tapedeck: this is recorded as alice/shop, because the token belongs to alice",
      expect.stringMatching(/^tapedeck: recording as alice\/shop, session /),
      expect.stringMatching(/^tapedeck: recorded as alice\/shop, session /),
      "",
    ]);
    await tells(record, `recording as acme/dora/blog/skaffold at ${to}`);
    await fake.playUntil({ v1: 40 });
    await until(async () => framesOf(await events("dora", "blog"), "v1").length === fake.played.v1, {
      message: "what Dora's Skaffold says",
    });
    for (const channel of ["v1", "v2"] as const) {
      expect(framesOf(await events("alice", "shop"), channel)).toEqual(saidIn(build, channel));
    }
    await stack.caughtUp();
    const { items } = await getJson<{ items: { source: string }[] }>("/api/v1/sources", viewer.text);
    expect(items.map(({ source }) => source).sort()).toEqual(["acme/alice/shop/skaffold", "acme/dora/blog/skaffold"]);
  });

  it("forwards control calls to the Skaffold beside a laptop's tap and returns its answer", async () => {
    const [recorder, controller, viewer] = await Promise.all([
      token(["recorder"], "carl"),
      token(["controller"]),
      token(["viewer"]),
    ]);
    await using fake = await startFakeSkaffold({ recording: loadRecording(control) });
    await using record = laptop(recorder.text).record(fake);
    await tells(record, "recording as acme/carl/blog/skaffold");
    await tells(record, "connected to");
    await fake.playUntil({ v1: 20 });
    const source = "carl/blog";
    await until(async () => framesOf(await events("carl", "blog"), "v1").length >= 20, { message: "its session" });
    await stack.caughtUp();
    expect(await execute(controller.text, source)).toMatchObject({ code: status.OK });
    expect(fake.calls).toMatchObject([{ api: "v1", name: "Execute" }]);
    expect(await execute(viewer.text, source)).toMatchObject({ code: status.PERMISSION_DENIED });
    expect(fake.calls).toHaveLength(1);
    await fake.end("kill");
    await tells(record, "lost the connection to Skaffold");
    expect(await execute(controller.text, source)).toMatchObject({ code: status.UNAVAILABLE });
  });

  it.skipIf(process.platform !== "linux")("opens no listening port on the laptop", async () => {
    const { text } = await token(["recorder"], "lena");
    await using fake = await startFakeSkaffold({ recording: loadRecording(build) });
    await using recording = laptop(text).record(fake);
    const running = laptop(text).cli(["run", "--project", "shop", "--", "skaffold", "dev"]);
    for (const project of ["blog", "shop"]) {
      await until(async () => (await events("lena", project)).length > 0, { message: `something of ${project}` });
    }
    expect([listeningPorts(recording.child.pid), listeningPorts(running.child.pid)]).toEqual([[], []]);
    // The check works: the fake in this process does listen.
    expect(listeningPorts(process.pid)).not.toEqual([]);
    running.child.kill("SIGTERM");
    expect(await running.ended).toBe(0);
  });

  it("ends the push of a revoked token, and gets the rest once with the next token", async () => {
    const { text, revoke } = await token(["recorder"], "rita");
    await using fake = await startFakeSkaffold({ recording: loadRecording(control) });
    const first = laptop(text);
    await using before = first.record(fake);
    await tells(before, "recording as acme/rita/blog/skaffold");
    await fake.playUntil({ v1: 20 });
    await until(async () => framesOf(await events("rita", "blog"), "v1").length >= 20, { message: "the beginning" });
    await revoke();
    await tells(before, "not recorded for now: ");
    expect(before.stdout()).toMatch(/not recorded for now: .*token.*; events are kept on this machine/);
    await fake.play();
    expect([fake.health.v1.stalled, fake.health.v2.stalled]).toEqual([false, false]);
    process.kill(before.child.pid ?? 0, "SIGINT");
    expect(await before.ended).toBe(1);

    const next = await token(["recorder"], "rita");
    await using after = first.record(fake, { TAPEDECK_TOKEN: next.text });
    const isWhole = async (channel: "v1" | "v2") =>
      framesOf(await events("rita", "blog"), channel).length >= saidIn(control, channel).length;
    await until(async () => (await isWhole("v1")) && (await isWhole("v2")), { message: "the rest" });
    process.kill(after.child.pid ?? 0, "SIGINT");
    expect(await after.ended).toBe(0);
    const all = await events("rita", "blog");
    for (const channel of ["v1", "v2"] as const) expect(framesOf(all, channel)).toEqual(saidIn(control, channel));
    expect(all.filter(({ kind }) => kind === "session.started")).toHaveLength(1);
    expect(fake.hung).toEqual([]);
  });

  it("has all of it once although the tap was killed, because the next one is the same tap", async () => {
    const { text } = await token(["recorder"], "kim");
    const { record } = laptop(text);
    await using fake = await startFakeSkaffold({ recording: loadRecording(control) });
    const frames = async () => framesOf(await events("kim", "blog"), "v1").length;
    const first = record(fake);
    await tells(first, "recording as acme/kim/blog/skaffold");
    await fake.playUntil({ v1: 20 });
    await until(async () => (await frames()) === fake.played.v1, { message: "the beginning" });
    process.kill(first.child.pid ?? 0, "SIGKILL");
    await first.ended;
    await fake.playUntil({ v1: 40 });
    await using second = record(fake);
    await tells(second, "recording as acme/kim/blog/skaffold");
    await fake.play();
    await until(async () => (await frames()) === saidIn(control, "v1").length, { message: "the rest" });
    second.child.kill("SIGINT");
    expect(await second.ended).toBe(0);
    const all = await events("kim", "blog");
    for (const channel of ["v1", "v2"] as const) expect(framesOf(all, channel)).toEqual(saidIn(control, channel));
    const taps = all.flatMap(({ detail }) =>
      detail?.$case === "upstream" && detail.value.tap ? [detail.value.tap] : [],
    );
    expect([taps.length, new Set(taps).size]).toEqual([2, 1]);
    expect(all.filter(({ kind }) => kind === "session.started")).toHaveLength(1);
  });

  it("refuses a push without a recorder's token, and the tap reports it in one line", async () => {
    const refused = [
      [await token(["viewer"]), /needs a token with the role recorder/],
      [{ text: `tdk_${"x".repeat(43)}` }, /token/],
      [{ text: "" }, /a token is needed/],
    ] as const;
    await Promise.all(
      refused.map(async ([{ text }, words]) => {
        const { spill, runUnasked } = laptop(text);
        const ran = runUnasked();
        expect(await ran.ended).toBe(0);
        const [now = "", end = ""] = ran.stderr().split("\n");
        expect(now).toMatch(words);
        expect(now).toMatch(/^tapedeck: not recorded for now: .*; events are kept on this machine$/);
        expect(end).toMatch(
          /^tapedeck: not recorded yet \(.*\): the recording waits in .* `tapedeck run` to there, or/,
        );
        expect(ran.stderr()).not.toContain("tdk_x");
        expect(readdirSync(spill)).toHaveLength(1);
      }),
    );
  });
});

/** The process's own listening sockets, on any address. */
function listeningPorts(pid: number | undefined): readonly string[] {
  const held = new Set(
    readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? [];
      } catch {
        return [];
      }
    }),
  );
  return ["tcp", "tcp6"].flatMap((list) =>
    readFileSync(`/proc/${pid}/net/${list}`, "latin1")
      .split("\n")
      .map((line) => line.trim().split(/\s+/))
      .flatMap(([, local = "", , state, , , , , , inode = ""]) => (state === "0A" && held.has(inode) ? [local] : [])),
  );
}
