import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { type Scenario, scenario } from "@tapedeck/query/testing/scenario";
import { logStart } from "@tapedeck/shared/log/offset";
import { workspaceFilter } from "@tapedeck/shared/log/subjects";
import { sourceName } from "@tapedeck/shared/source";
import { until } from "@tapedeck/shared/testing/until";
import { connect } from "nats";
import { startCli } from "tapedeck/testing/cli";
import { urlOf } from "tapedeck/testing/recorder";
import { recordingFolder } from "tapedeck/testing/skaffold-program";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { httpCall } from "../stack/http-call.ts";
import { startStack } from "../stack/stack.ts";
import { startTwoShards, type TwoShards } from "./two-shards.ts";

// One gateway serves two logs. `team-b` begins in the shard `two`, all others in home.

const folder = mkdtempSync(join(tmpdir(), "shards-"));
const cleanup = new AsyncDisposableStack();
let on: TwoShards;
let [ofA, ofB] = ["", ""];

const shopOf = (workspace: string) =>
  scenario(sourceName({ workspace, developer: "alice", project: "shop", upstream: "skaffold" }));
const [a, b] = [shopOf("team-a"), shopOf("team-b")];

/** The events of a further session with one failed build. */
function failing(shop: Scenario, session: string) {
  const before = shop.events.length;
  const dev = shop.session(session);
  dev.started();
  dev.configured();
  dev.loopStarted();
  dev.build("web", "started");
  dev.build("web", "failed");
  dev.ended();
  return shop.events.slice(before);
}

beforeAll(async () => {
  on = cleanup.use(await startTwoShards({ workspaces: ["team-b"] }));
  ofA = await on.token("team-a", "admin");
  ofB = await on.token("team-b", "admin");
  await on.seed("home", failing(a, "01KABC0000000000000000000A"));
  await on.seed("two", failing(b, "01KABC0000000000000000000B"));
});
afterAll(async () => {
  await cleanup.disposeAsync();
  rmSync(folder, { recursive: true, force: true });
});

const call = (path: string, token: string, method = "GET", at = on.home.http) =>
  httpCall(at, method, path, { authorization: `Bearer ${token}` });
const json = async (path: string, token: string) => JSON.parse((await call(path, token)).body);
const epochOf = (position: string) => position.split("-").at(-1);

describe("a call goes to the shard of its caller's workspace", () => {
  it.each(["/api/v1/events?after=start", "/api/v1/operations", "/api/v1/sources", "/api/v1/sessions", "/api/v1/state"])(
    "%s",
    async (path) => {
      for (const [token, own, other, stack] of [
        [ofA, "team-a", "team-b", on.home],
        [ofB, "team-b", "team-a", on.two],
      ] as const) {
        const { status, body } = await call(path, token);
        expect([status, body.includes(own), body.includes(other)]).toEqual([200, true, false]);
        expect(epochOf(JSON.parse(body).position)).toBe(stack.log.epoch);
      }
    },
  );

  it("as a stream does, from history to what is live", async () => {
    const over = new AbortController();
    const response = await fetch(`http://${on.home.http}/api/v1/stream?after=start&kind=build.*`, {
      headers: { authorization: `Bearer ${ofB}`, accept: "application/x-ndjson" },
      signal: over.signal,
    });
    const text = { read: "" };
    const read = async () => {
      for await (const chunk of response.body ?? []) text.read += Buffer.from(chunk).toString();
    };
    const reading = read().catch(() => {});
    await until(() => text.read.includes('"caught_up"'), { message: "history" });
    await on.seed("two", failing(b, "01KABC0000000000000000000C"));
    const failed = () =>
      text.read
        .split("\n")
        .slice(0, -1)
        .filter((line) => JSON.parse(line).event?.kind === "build.failed");
    await until(() => failed().length === 2, { message: "both failures", deadlineMs: 20_000 });
    expect(text.read).not.toContain("team-a");
    over.abort();
    await reading;
  });

  it("with a position of the other shard it is refused, and learns where to begin", async () => {
    const { position } = await json("/api/v1/events?last=1", ofA);
    const { status, body } = await call(`/api/v1/events?after=${position}`, ofB);
    expect(status).toBe(409);
    expect(JSON.parse(body).error).toMatchObject({
      code: "position_foreign",
      message: `position ${position} is from another log: this one is ${on.two.log.epoch}; begin again at "start" or a time`,
    });
  });
});

it("records a tap of each workspace in its shard, through one gateway", async () => {
  const recording = loadRecording(recordingFolder("12-skaffold-build-one-shot"));
  for (const [workspace, own, other] of [
    ["team-a", on.home, on.two],
    ["team-b", on.two, on.home],
  ] as const) {
    await using fake = await startFakeSkaffold({ recording });
    const project = `recorded-${workspace}`;
    const args = ["record", "--upstream", "skaffold", "--address", fake.address, "--project", project];
    const env = {
      TAPEDECK_URL: urlOf(on.home.grpc),
      TAPEDECK_GRPC_PORT: on.home.grpc.split(":").at(-1),
      TAPEDECK_TOKEN: await on.token(workspace, "recorder"),
      TAPEDECK_SPILL: join(folder, workspace),
    };
    await using cli = startCli(args, { cwd: folder, env });
    await until(() => cli.stdout().includes(`recording as ${workspace}/alice/${project}/skaffold`), {
      message: "the welcome",
    });
    await fake.play();
    const subjects = [`tapedeck.v2.${workspace}.alice.${project}.>`];
    const frames = async () => {
      await own.caughtUp();
      const { items } = await json(
        `/api/v1/events?after=start&project=${project}&kind=build.*&limit=500`,
        ofOf(workspace),
      );
      return items.length > 0;
    };
    await until(frames, { message: `what ${workspace} builds` });
    expect(await other.log.lastMatch(subjects)).toBe(0);
    cli.child.kill("SIGINT");
    expect(await cli.ended).toBe(0);
  }
});

const ofOf = (workspace: "team-a" | "team-b") => (workspace === "team-a" ? ofA : ofB);

describe("a workspace stays where it began", () => {
  it("for a gateway whose settings list it elsewhere", async () => {
    const http = await on.gateway([{ name: "two", workspaces: ["team-a"] }]);
    for (const [token, own] of [
      [ofA, "team-a"],
      [ofB, "team-b"],
    ] as const) {
      const { status, body } = await call("/api/v1/sources", token, "GET", http);
      expect([status, body.includes(own)]).toEqual([200, true]);
    }
  });

  it("for a gateway that does not know its shard any more, which says so", async () => {
    const http = await on.gateway([{ name: "other" }]);
    expect((await call("/api/v1/sources", ofA, "GET", http)).status).toBe(200);
    const { status, body } = await call("/api/v1/sources", ofB, "GET", http);
    expect([status, JSON.parse(body).error.message]).toEqual([
      500,
      'the workspace "team-b" is in the shard "two", which the setting shards does not have: ask the operator of this Tapedeck',
    ]);
  });
});

describe("calls that concern all workspaces", () => {
  it("is not backed up in parts", async () => {
    const { status, body } = await call("/api/v1/backup", await on.adminOfAll());
    expect([status, JSON.parse(body).error.message]).toEqual([400, expect.stringContaining("several shards")]);
  });

  it("is rebuilt, one shard after the other", async () => {
    const { status, body } = await call("/api/v1/rebuild", await on.adminOfAll(), "POST");
    const lines = body
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect([status, lines.at(-1)]).toEqual([200, { type: "complete" }]);
    const eventCount = async ({ log }: TwoShards["home"]) => {
      const over = new AbortController().signal;
      const all = { afterOffset: logStart, subjects: [] };
      return (await Array.fromAsync(log.history(all, (await log.bounds()).lastOffset, over))).length;
    };
    const messages = async ({ log }: TwoShards["home"]) => (await log.bounds()).messages;
    const all = (await messages(on.home)) + (await messages(on.two));
    const events = (await eventCount(on.home)) + (await eventCount(on.two));
    expect(lines.at(-2)).toEqual({ type: "progress", messages: all, done: all, events });
    expect((await json("/api/v1/operations?outcome=failed", ofB)).items.length).toBeGreaterThan(0);
  });

  it("is not rebuilt by the admin of one of them", async () => {
    expect((await call("/api/v1/rebuild", ofB, "POST")).status).toBe(403);
  });
});

it("erases a session in its own shard", async () => {
  await on.seed("two", failing(b, "01KABC0000000000000000000D"));
  const { status, body } = await call("/api/v1/sessions/01KABC0000000000000000000D", ofB, "DELETE");
  expect([status, JSON.parse(body.trim().split("\n").at(-1) ?? "")]).toEqual([200, { type: "complete" }]);
  await on.two.caughtUp();
  expect((await json("/api/v1/sessions", ofB)).items.map(({ session }: { session: string }) => session)).not.toContain(
    "01KABC0000000000000000000D",
  );
});

it("has nothing of one shard's workspace in the other's log", async () => {
  expect(await on.home.log.lastMatch([workspaceFilter("team-b")])).toBe(0);
  expect(await on.two.log.lastMatch([workspaceFilter("team-a")])).toBe(0);
});

it("a shard that is away concerns its own workspaces alone", async () => {
  await on.two.parts.nats.stop();
  await until(async () => (await call("/api/v1/events?after=start", ofB)).status === 503, { message: "its absence" });
  expect((await call("/api/v1/events?after=start", ofA)).status).toBe(200);
  const away = await call("/readyz", "");
  expect([away.status, JSON.parse(away.body)]).toMatchObject([
    200,
    { ready: true, checks: { log: "ok", query: "ok", "shard two": "away" } },
  ]);
  await on.two.parts.nats.restart();
  await until(async () => (await call("/api/v1/events?after=start", ofB)).status === 200, { message: "its return" });
});

it("without shards there is no map", async () => {
  await using stack = await startStack({ env: { TAPEDECK_AUTH: "none" } });
  expect((await stack.httpCall("GET", "/api/v1/sources")).status).toBe(200);
  const connection = await connect({ servers: stack.parts.nats.url });
  const names = await (await jetstreamManager(connection)).streams.names().next();
  await connection.close();
  expect(names).toEqual(expect.arrayContaining(["TAPEDECK"]));
  expect(names).not.toContain("KV_TAPEDECK_SHARDS");
});
