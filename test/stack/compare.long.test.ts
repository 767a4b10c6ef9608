import { tmpdir } from "node:os";
import { promisify } from "node:util";
import { credentials, type ServiceError } from "@grpc/grpc-js";
import { connect } from "@tapedeck/client";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import type { Timestamp } from "@tapedeck/proto/google/protobuf/timestamp";
import { type CompareRequest, type CompareResponse, TapedeckClient } from "@tapedeck/proto/tapedeck/v1/tapedeck";
import { msOfTimestamp } from "@tapedeck/shared/time/timestamp";
import { startCli } from "tapedeck/testing/cli";
import { recordingFolder } from "tapedeck/testing/skaffold-program";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Stack, startStack } from "./stack.ts";

// Why a loop failed, and how it differs from another one, in the work of real Skaffolds.

type Item = Readonly<Record<string, string>> & { readonly runner: number; readonly loop: number };
type Failure = {
  readonly phase: string;
  readonly error: string;
  readonly cause: { readonly text: string } | null;
  readonly output: readonly { readonly text: string }[];
};
type Side = Readonly<Record<"name" | "source" | "session" | "outcome" | "position" | "startPosition", string>> & {
  readonly loop: number;
  readonly failure: Failure | null;
};
type Difference = {
  readonly kind: string;
  readonly subject: string;
  readonly text: string;
  readonly evidence: readonly {
    readonly side: string;
    readonly session: string;
    readonly position: string;
    readonly text: string;
  }[];
};
type Comparison = {
  readonly left: Side;
  readonly right: Side | null;
  readonly differences: readonly Difference[];
  readonly equal: number;
  readonly same: readonly { readonly kind: string; readonly subject: string; readonly value: string }[];
  readonly position: string;
};

type Done = (error: ServiceError | null, answer?: CompareResponse) => void;

const cleanup = new AsyncDisposableStack();
let stack: Stack;

beforeAll(async () => {
  const recorded = (name: string) => startFakeSkaffold({ recording: loadRecording(recordingFolder(name)) });
  const bob = cleanup.use(await recorded("04-deploy-failure-then-recovery"));
  const alice = cleanup.use(await recorded("10-status-check-port-forward-sync-app-logs"));
  const old = cleanup.use(await recorded("20-old-v1.39.18"));
  const oldest = cleanup.use(await recorded("21-old-v0.40.0"));
  const build = cleanup.use(await recorded("12-skaffold-build-one-shot"));
  const run = cleanup.use(await recorded("12b-skaffold-run-one-shot"));
  const skaffold = [
    { developer: "bob", address: bob.address },
    { developer: "alice", address: alice.address },
    { developer: "olga", address: old.address },
    { developer: "vera", address: oldest.address },
    { developer: "bill", address: build.address },
    { developer: "rita", address: run.address },
  ];
  stack = cleanup.use(await startStack({ skaffold }));
  await stack.connected();
  const all = [bob, alice, old, oldest, build, run];
  await Promise.all(all.map((one) => one.play()));
  await stack.drained(...all);
});
afterAll(() => cleanup.disposeAsync());

const get = async (path: string) => {
  const { status, headers, body } = await stack.httpCall("GET", `/api/v1/${path}`);
  return { status, headers, body: JSON.parse(body) };
};
const compare = async (query: string): Promise<Comparison> => (await get(`compare?${query}`)).body;
const loops = async (query: string): Promise<readonly Item[]> =>
  (await get(`operations?kind=loop&limit=1000&${query}`)).body.items;
const nameOf = ({ session, runner, loop }: Item) => `${session}.${runner}.${loop}`;

describe("a source alone", () => {
  it("is its newest failed loop beside the last good one before it", async () => {
    const { left, right, differences, equal } = await compare("left=bob/shop");
    const [failed] = await loops("source=bob/shop&outcome=failed");
    expect(left).toMatchObject({ session: failed?.session, loop: failed?.loop, outcome: "failed" });
    const good = await loops("source=bob/shop&outcome=succeeded");
    const [before] = good.filter((loop) => (loop.startPosition ?? "") < left.startPosition);
    expect(right).toMatchObject({ loop: before?.loop, outcome: "succeeded", failure: null });
    expect(differences[0]?.text).toMatch(/^render failed: MalformedYAMLError: .*; it succeeded in loop \d+$/);
    expect(equal).toBeGreaterThan(5);
    const { headers, body } = await get("compare?left=bob/shop");
    expect(headers["tapedeck-position"]).toBe(body.position);
  });

  it("says of a deploy that only failed what its output said", async () => {
    const failed = (await loops("source=bob/shop&outcome=failed")).at(-1);
    const said = 'error: unable to recognize "STDIN": no matches for kind "Deploymint" in version "apps/v1"';
    const { left, differences } = await compare(`left=${failed && nameOf(failed)}`);
    expect(left.failure).toMatchObject({
      phase: "deploy",
      error: "kubectl apply: exit status 1",
      cause: { text: said },
      output: expect.arrayContaining([
        { text: expect.stringContaining(said), position: expect.any(String), isCause: true },
      ]),
    });
    expect(differences[0]?.text).toBe(`deploy failed: ${said}; it succeeded in loop 1`);
  });

  it("has evidence that is in the log where it says", async () => {
    const failed = (await loops("source=bob/shop&outcome=failed")).at(-1);
    for (const { kind, evidence } of (await compare(`left=${failed && nameOf(failed)}`)).differences) {
      expect(evidence.length).toBeGreaterThan(0);
      for (const { session, position, text } of evidence) {
        const { items } = (await get(`events?session=${session}&until=${position}&last=1`)).body;
        expect(items[0]).toMatchObject({ session, position });
        if (kind === "failure") expect(JSON.stringify(items[0])).toContain(JSON.stringify(text).slice(1, -1));
      }
    }
  });

  it("names the resource that was not ready, before it says that the check failed", async () => {
    const [failed] = await loops("source=alice/shop&outcome=failed");
    const { left, differences } = await compare(`left=${failed && nameOf(failed)}`);
    expect(left.failure?.phase).toBe("check");
    expect(differences[0]?.text).toBe(
      'deployment/web: failed: error: deployment "api" exceeded its progress deadline; ready in loop 4',
    );
  });

  it("without loops, is its newest failed step beside the last good one of the same artifact", async () => {
    const { left, right, differences } = await compare("left=vera/shop");
    expect(left).toMatchObject({ unit: "session", loop: 0, failure: { phase: "build", subject: "api" } });
    expect(right).toMatchObject({ unit: "session", session: left.session, failure: null });
    const builds: readonly Item[] = (await get(`operations?kind=build&subject=api&source=vera/shop`)).body.items;
    // The newest build was good again.
    expect(builds.map(({ outcome, endPosition }) => [outcome, endPosition])).toEqual([
      ["succeeded", expect.any(String)],
      ["failed", left.position],
      ["succeeded", expect.any(String)],
    ]);
    // That of the round before, in which only web was built.
    const deploys: readonly Item[] = (await get("operations?kind=deploy&source=vera/shop")).body.items;
    expect(deploys.map(({ endPosition }) => endPosition)).toEqual([
      expect.any(String),
      right?.position,
      expect.any(String),
    ]);
    expect(differences[0]?.text).toBe(
      `build api failed: build artifact: building custom artifact: exit status 3; it succeeded in ${right?.session}@${right?.position}`,
    );
  });

  it("without loops, has failed only as far as its newest steps did", async () => {
    const { left } = await compare("left=vera/shop&right=vera/shop");
    expect(left).toMatchObject({ unit: "session", failure: null });
  });

  it("has nothing beside it where nothing was good before", async () => {
    const [first] = (await loops("source=bob/shop")).toReversed();
    const { right, differences } = await compare(`left=${first && nameOf(first)}`);
    expect([right, differences]).toEqual([null, []]);
  });
});

describe("two sides", () => {
  it("of two developers are the newest loops of both", async () => {
    const { left, right, differences } = await compare("left=alice/shop&right=olga/shop");
    expect([left.name, right?.name]).toEqual(["alice/shop", "olga/shop"]);
    for (const side of [left, right]) {
      const [newest] = await loops(`source=${side?.source}`);
      expect(side).toMatchObject({ session: newest?.session, loop: newest?.loop });
    }
    expect(differences.map(({ kind }) => kind)).toContain("version");
  });

  it("may be a source at a moment, a session and a loop", async () => {
    const all = await loops("source=bob/shop");
    const second = all.at(-2);
    const at = await compare(`left=bob/shop@${second?.endPosition}&right=${second?.session}`);
    expect(at.left).toMatchObject({ loop: second?.loop, position: second?.endPosition });
    expect(at.right).toMatchObject({ loop: all[0]?.loop });
    const { left, right, differences, equal, same } = await compare(
      `left=${second && nameOf(second)}&right=${second && nameOf(second)}`,
    );
    expect([left.session, differences]).toEqual([right?.session, []]);
    expect(equal).toBeGreaterThan(5);
    expect(same).toHaveLength(equal);
    expect(same).toContainEqual({ kind: "version", subject: "version", value: expect.stringMatching(/^v2/) });
    const time = await compare(`left=bob/shop@${encodeURIComponent(new Date().toISOString())}&right=bob/shop`);
    expect(time.left).toEqual(time.right);
  });
});

describe("`skaffold build` and `skaffold run` of v2, which report no loops", () => {
  it.each(["bill/shop", "rita/shop"])("failed at nothing, where all was good: %s", async (source) => {
    const { left, right, differences } = await compare(`left=${source}`);
    expect(left).toMatchObject({ unit: "session", loop: 0, failure: null });
    expect([right, differences]).toEqual([null, []]);
  });

  it("are compared as sessions, which differ in nothing that could explain a failure", async () => {
    const { left, right, differences, equal, same } = await compare("left=rita/shop&right=bill/shop");
    expect([left, right]).toMatchObject([
      { unit: "session", failure: null },
      { unit: "session", failure: null },
    ]);
    expect(differences.map(({ kind, subject, text }) => [kind, subject, text])).toEqual([]);
    expect(equal).toBeGreaterThan(3);
    expect(same).toContainEqual({ kind: "version", subject: "version", value: "v2.14.2" });
  });
});

it.each([
  ["left=nobody/shop", 404, "unknown_source"],
  ["left=01NOTHING", 404, "unknown_session"],
  ["left=01NOTHING.1.1", 404, "unknown_session"],
  ["left=BOB.1.999", 404, "not_found"],
  ["", 409, "ambiguous_source"],
  ["left=@", 400, "invalid_argument"],
  ["left=bob/shop@soon", 400, "invalid_argument"],
  ["left=bob/shop@2020-01-01T00:00:00Z", 404, "before_first"],
  ["left=BOB@2020-01-01T00:00:00Z", 404, "before_first"],
  ["left=a/b/c/d/e", 400, "invalid_argument"],
  ["left=bob/shop&right=other/bob/shop/skaffold", 404, "unknown_source"],
  ["left=bob/shop&colour=red", 400, "invalid_argument"],
])("%s is refused", async (query, status, code) => {
  const session = (await loops("source=bob/shop"))[0]?.session ?? "";
  const answer = await get(`compare?${query.replace("BOB", session)}`);
  expect([answer.status, answer.body.error?.code]).toEqual([status, code]);
});

it("is the same over gRPC", async () => {
  const client = cleanup.adopt(new TapedeckClient(stack.grpc, credentials.createInsecure()), (one) => one.close());
  const ask = promisify(client.compare.bind(client) as (request: CompareRequest, done: Done) => void);
  for (const [left, right] of [
    ["bob/shop", "alice/shop"],
    ["olga/shop", "bob/shop"],
    ["alice/shop", ""],
  ] as const) {
    // Skaffold's own description at rest may be recorded between two requests.
    const { position, ...http } = await compare(`left=${left}${right === "" ? "" : `&right=${right}`}`);
    const answer = await ask({ left, right, min_position: position, at: "" });
    if (answer === undefined) throw new Error("no answer");
    const { position: later, ...grpc } = answer;
    expect(later >= position).toBe(true);
    expect(plain(grpc)).toEqual(plain(http));
    expect(http.differences.length).toBeGreaterThan(0);
  }
  const nobody = { left: "nobody/shop", right: "", min_position: "", at: "" };
  await expect(ask(nobody)).rejects.toMatchObject({ code: 5 });
});

it("is as of a position in each API, where a newer loop does not count", async () => {
  const [newest, older] = await loops("source=bob/shop&outcome=failed");
  const at = older?.endPosition ?? "";
  expect((await compare("left=bob/shop")).left).toMatchObject({ loop: newest?.loop });
  const then = await compare(`left=bob/shop&at=${at}`);
  expect(then).toMatchObject({ position: at, left: { loop: older?.loop, position: at } });
  using tapedeck = connect({ url: `http://${stack.http}` });
  expect(await tapedeck.compare("bob/shop", { at })).toEqual(then);
  const client = cleanup.adopt(new TapedeckClient(stack.grpc, credentials.createInsecure()), (one) => one.close());
  const ask = promisify(client.compare.bind(client) as (request: CompareRequest, done: Done) => void);
  expect(plain(await ask({ left: "bob/shop", right: "", min_position: "", at }))).toEqual(plain(then));
  expect((await get("compare?left=bob/shop&at=2020-01-01T00:00:00Z")).status).toBe(404);
});

/** An answer of either API: names of JSON, times in milliseconds, without what is empty. */
function plain(value: unknown, name = ""): unknown {
  if (typeof value === "bigint") return Number(value);
  if (name.endsWith("At") && typeof value === "string") return Date.parse(value);
  if (Array.isArray(value)) return value.map((one) => plain(one));
  if (typeof value !== "object" || value === null) return value;
  if ("seconds" in value && "nanos" in value) return Math.floor(msOfTimestamp(value as Timestamp));
  const entries = Object.entries(value).filter(
    ([key, one]) => key !== "_unknownFields" && one !== null && one !== undefined && one !== "",
  );
  return Object.fromEntries(
    entries.map(([key, one]) => {
      const camel = key.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
      return [camel, plain(one, camel)];
    }),
  );
}

it("is the same with the client", async () => {
  // Skaffold's own description at rest may be recorded between two requests.
  const position = expect.any(String);
  using tapedeck = connect({ url: `http://${stack.http}` });
  expect(await tapedeck.compare("bob/shop")).toEqual({ ...(await compare("left=bob/shop")), position });
  const both = await tapedeck.compare("bob/shop", { right: "alice/shop" });
  expect(both).toEqual({ ...(await compare("left=bob/shop&right=alice/shop")), position });
  await expect(tapedeck.compare("nobody/shop")).rejects.toMatchObject({ code: "unknown_source" });
});

describe("in the terminal", () => {
  async function tapedeck(...args: string[]) {
    await using cli = startCli(args, { cwd: tmpdir(), env: { TAPEDECK_URL: `http://${stack.http}` } });
    return { code: await cli.ended, out: cli.stdout(), err: cli.stderr() };
  }

  it("`why` says what failed and what differs", async () => {
    const { code, out, err } = await tapedeck("why", "-s", "bob/shop");
    expect([code, err]).toEqual([0, ""]);
    expect(out).toMatch(
      /^bob\/shop {2}loop 4 {2}failed after .*\n {2}render: MalformedYAMLError: .*\n(?: {2}.*\n)+beside\nbob\/shop {2}loop 3 {2}succeeded/,
    );
    expect(out).toMatch(/\n 1 {2}render failed: .*\n {4}failure, recorded at \S+\n/);
    const json = JSON.parse((await tapedeck("why", "-s", "bob/shop", "--json")).out);
    expect(json).toEqual({ ...(await compare("left=bob/shop")), position: expect.any(String) });
    const failed = (await loops("source=bob/shop&outcome=failed")).at(-1);
    expect((await tapedeck("why", failed === undefined ? "" : nameOf(failed))).out).toContain(
      'no matches for kind "Deploymint"',
    );
    // Without a name it is about the source that failed last.
    const newest = ["--outcome", "failed", "--kind", "loop,command", "-n", "1", "--json"];
    const [{ source }] = JSON.parse((await tapedeck("search", ...newest)).out).items;
    expect((await tapedeck("why", "--json")).out).toContain(`"source":"${source}"`);
    expect(await tapedeck("logs", "--failed")).toEqual({ ...(await tapedeck("logs", source, "--failed")), code: 0 });
    // The line that it names works where it is pasted.
    const line = /^output: +\S*tapedeck (.*)$/m.exec(out)?.[1] ?? "";
    expect(await tapedeck(...line.split(" "))).toMatchObject({
      code: 0,
      out: expect.stringContaining("MalformedYAMLError"),
    });
    expect((await tapedeck("why", "-s", "nobody/shop")).err).toContain("nobody/shop");
  });

  it("`compare` takes sources, also of earlier", async () => {
    expect((await tapedeck("compare", "alice/shop", "olga/shop")).out).toMatch(
      / version: v2\.\d+\.\d+; v1\.39\.18 in olga\/shop\n/,
    );
    expect((await tapedeck("compare", "bob/shop", "bob/shop")).out).toContain("no differences are recorded");
    expect((await tapedeck("compare", "bob/shop", "bob/shop@yesterday")).err).toContain("bob/shop has no session at");
    expect((await tapedeck("compare", "bob/shop", "bob/shop@soonish")).err).toContain(
      "is neither a position nor a time",
    );
  });

  it("`loops` lists what is over, with what failed first", async () => {
    const { code, out } = await tapedeck("loops", "-s", "bob/shop");
    const rows = out.trimEnd().split("\n");
    expect([code, rows[0]]).toEqual([
      0,
      expect.stringMatching(/^LOOP +STARTED +OUTCOME +WAITED +REASON +FAILED FIRST$/),
    ]);
    const expected = await loops("source=bob/shop");
    const names = rows.slice(1).map((row) => row.split(/ +/)[0] ?? "");
    expect(names).toEqual(expected.map(({ loop }) => `bob/shop#${loop}`));
    // What is listed can be pasted.
    const [newest] = expected.map(nameOf);
    for (const name of [names[0] ?? "", "4", newest?.slice(-10) ?? ""])
      expect((await tapedeck("why", name, "-s", "bob/shop")).out).toMatch(/^bob\/shop {2}loop 4 {2}failed/);
    expect((await tapedeck("compare", ...names.slice(0, 2))).out).toContain("beside\nbob/shop  loop 3  succeeded");
    expect((await tapedeck("why", "bob/shop#99")).err).toContain("there is no loop 99 of bob/shop");
    expect(rows[1]).toMatch(/ failed +\S+ \S+ +\w.* {2,}render: MalformedYAMLError/);
    expect(rows[2]).toMatch(/ succeeded +\S+ \S+$/);
    expect((await tapedeck("loops", "-s", "bob/shop", "--outcome", "canceled")).out).toBe("No matching loops.\n");
    expect(JSON.parse((await tapedeck("loops", "--json", "--limit", "2")).out).items).toHaveLength(2);
  });
});

it("answers the same each time, and prints how long that takes", async () => {
  const answers: unknown[] = [];
  const times: number[] = [];
  for (let count = 0; count < 5; count++) {
    const begun = performance.now();
    answers.push(await compare("left=bob/shop&right=alice/shop"));
    times.push(Math.round(performance.now() - begun));
  }
  // A busy machine proves nothing about the bound of one second.
  console.log(`compare: ${times.join(", ")} ms`);
  for (const answer of answers) expect(answer).toEqual(answers[0]);
});
