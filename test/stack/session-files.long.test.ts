import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { credentials, Metadata } from "@grpc/grpc-js";
import { loadRecording as loadRkt } from "@tapedeck/fakes/rkt/recording";
import { loadRecording as loadSkaffold } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { loadRecording as loadVagrant } from "@tapedeck/fakes/vagrant/recording";
import { startFakeVagrant } from "@tapedeck/fakes/vagrant/server";
import { newNames, runSteps } from "@tapedeck/fakes/vagrant/timed";
import { idIn } from "@tapedeck/ingest/record/imported/imported-id";
import { GetInfoRequest } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { Event } from "@tapedeck/proto/tapedeck/v1/event";
import {
  Hello,
  Imported,
  type PushRequest,
  type PushResponse,
  RecorderClient,
} from "@tapedeck/proto/tapedeck/v1/recorder";
import { ListJobsResponse } from "@tapedeck/proto/vagrant/vagrant";
import { ended, foreignSession, frameOf } from "@tapedeck/shared/testing/foreign-session";
import { until } from "@tapedeck/shared/testing/until";
import { exportSessions } from "tapedeck/commands/export/run";
import { importFiles } from "tapedeck/commands/import/run";
import type { ProgressTo } from "tapedeck/progress";
import { sessionEvents, verifySessionFile } from "tapedeck/session-file/session-file";
import { type ExportedEvent, readEventLine } from "tapedeck/session-file/session-file-format";
import { startCli } from "tapedeck/testing/cli";
import { progressPipe } from "tapedeck/testing/progress";
import { urlOf } from "tapedeck/testing/recorder";
import { sessionFileLines, textOf } from "tapedeck/testing/session-file-lines";
import { ulid } from "ulid";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { rktClient } from "../rkt/client.ts";
import { rktKinds } from "../rkt/events.ts";
import { kinds, settled, startRktHost } from "../rkt/host.ts";
import { skaffoldClient } from "../skaffold/client.ts";
import { vagrantClient } from "../vagrant/client.ts";
import { type Stack, startStack } from "./stack.ts";

const fixtures = join(import.meta.dirname, "../../packages/fakes/recordings");
const cleanup = new AsyncDisposableStack();
let origin: Stack;
let target: Stack;
let folder: string;

/** The sources by their names here and after the import. */
const moves = {
  skaffold: { from: "alice/shop/skaffold", to: "bob/moved/skaffold" },
  rkt: { from: "h1/host/rkt", to: "h1/host/rkt" },
  vagrant: { from: "alice/shop/vagrant", to: "bob/moved/vagrant" },
} as const;
type Move = keyof typeof moves;

const fileOf = (move: Move) => join(folder, `${move}.tapedeck${move === "skaffold" ? ".gz" : ""}`);
const head = (source: string) => ({ "tapedeck-source": source });

async function importFile(
  stack: Stack,
  file: string,
  names: { developer?: string; project?: string } = {},
  progressTo: ProgressTo = {},
) {
  const said = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  try {
    await importFiles([file], { url: urlOf(stack.grpc), redact: "on", ...names }, progressTo);
    return said.mock.calls.join("").trimEnd();
  } finally {
    said.mockRestore();
  }
}

async function exportTo(
  stack: Stack,
  source: string,
  output: string,
  progressTo: ProgressTo = {},
): Promise<ExportedEvent[]> {
  const said = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  await exportSessions([], { url: urlOf(stack.grpc), source, output }, progressTo);
  said.mockRestore();
  const { sessions } = await verifySessionFile(output);
  if (output.endsWith(".gz")) return [];
  const lines = (await readFile(output, "utf8")).trimEnd().split("\n").slice(1, -1);
  expect(lines).toHaveLength(sessions[0]?.events ?? 0);
  return lines.map(readEventLine);
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tapedeck-session-files-"));
  cleanup.defer(() => rm(folder, { recursive: true, force: true }));
  const recording = loadSkaffold(join(fixtures, "skaffold", "10-status-check-port-forward-sync-app-logs"));
  const skaffold = cleanup.use(await startFakeSkaffold({ recording }));
  const host = cleanup.use(await startRktHost(loadRkt(join(fixtures, "rkt", "01-full-lifecycle"))));
  const vagrant = cleanup.use(await startFakeVagrant());
  [origin, target] = await Promise.all([
    startStack({
      skaffold: [{ address: skaffold.address }],
      rkt: [{ address: host.fake.address, interval: "10ms", timeout: "1h" }],
      vagrant: [{ address: vagrant.address }],
    }),
    startStack({ env: { TAPEDECK_WORKSPACE: "team" } }),
  ]);
  cleanup.use(origin);
  cleanup.use(target);
  await origin.connected();

  const playSkaffold = async () => {
    await skaffold.play();
    await skaffold.end("graceful");
    await origin.sessionEnded();
  };
  const playRkt = async () => {
    // The pod has run and still exists.
    host.playTo("pods", 52);
    host.playTo("images", 10);
    for (const kind of kinds) await until(() => host.stands(kind), { message: `the host's ${kind} to stand` });
  };
  const playVagrant = async () => {
    const sample = loadVagrant(join(fixtures, "vagrant", "samples", "up.jsonl"));
    await until(() => vagrant.calls("_ListJobs").made > 0, { message: "somebody to look" });
    await vagrant.playAsNow(runSteps(sample, "failing"), newNames(vagrant, sample)).run({ speed: "max" });
    const isReceived = () => vagrant.calls("GetJobStream").made >= 2 && vagrant.streams() === 0;
    await until(isReceived, { message: "all of the output to be heard" });
    const observations = vagrant.calls("ListTargets").made;
    await until(() => vagrant.calls("ListTargets").made > observations, {
      message: "a look at what the jobs have changed",
    });
    await until(() => vagrant.calls("ListTargets").inFlight === 0, { message: "its answer" });
  };
  await Promise.all([playSkaffold(), playRkt(), playVagrant()]);
  for (const kind of kinds) await settled(host, origin, kind);

  for (const [move, { from, to }] of Object.entries(moves) as [Move, { from: string; to: string }][]) {
    await exportTo(origin, from, fileOf(move));
    const [developer = "", project = ""] = to.split("/");
    if (move === "skaffold") await importPart(target, fileOf(move), { developer, project });
    // A rkt host keeps its name by default.
    const summary = await importFile(target, fileOf(move), move === "rkt" ? {} : { developer, project });
    expect(summary).toMatch(
      new RegExp(
        `^${developer}/${project}/${move}: recorded session \\w{26} of default/${from}, \\d+ events, as session \\w{26}$`,
      ),
    );
  }
  await target.caughtUp();
});
afterAll(() => cleanup.disposeAsync());

/** Kills the importing process when a part of the session is in the log. */
async function importPart(stack: Stack, file: string, names: { developer: string; project: string }): Promise<void> {
  const {
    header,
    sessions: [filed = expect.fail()],
  } = await verifySessionFile(file);
  const { source, upstream } = header;
  const imported = Imported.fromPartial({ session: filed.session, source });
  const client = new RecorderClient(stack.grpc, credentials.createInsecure());
  const call = client.push(new Metadata());
  const got: PushResponse[] = [];
  call.on("error", () => {}).on("data", (response: PushResponse) => got.push(response));
  const send = (body: PushRequest["body"]) => call.write({ body });
  send({
    $case: "hello",
    value: Hello.fromPartial({ ...names, upstream, tap: filed.session, first_index: 1n, imported }),
  });
  let index = 0n;
  for await (const event of sessionEvents(file, filed)) {
    const value = { events: [Buffer.from(Event.encode(event).finish())], more: false };
    send({ $case: "item", value: { index: ++index, connection: "C", what: { $case: "recorded", value } } });
    if (index === 200n) break;
  }
  const isThere = ({ body }: PushResponse) => body?.$case === "committed" && body.value.index >= 100n;
  await until(() => got.some(isThere), { message: "the beginning to be in the log" });
  call.cancel();
  client.close();
}

/** The event without the fields that differ between Tapedecks. */
function anywhere({ event }: ExportedEvent): string {
  const places = event.channel === "tapedeck" ? { ordinal: 0n, frame_ordinal: 0n } : {};
  const { detail } = event;
  const started = detail?.$case === "session_detail" ? { ...detail.value, origin_session: undefined } : undefined;
  const sessionDetail = started === undefined ? {} : { detail: { $case: "session_detail", value: started } as const };
  const bytes = Event.encode({ ...event, id: "", source: "", session: "", ...places, ...sessionDetail }).finish();
  return `${event.kind} ${Buffer.from(bytes).toString("base64")}`;
}

describe.each(Object.keys(moves) as Move[])("%s, recorded here and imported there", (move) => {
  const { from, to } = moves[move];

  it("is exported again unchanged", async () => {
    const before = await exportTo(origin, from, join(folder, "before"));
    const after = await exportTo(target, to, join(folder, "after"));
    const isEnded = before.some(({ event }) => event.kind === "session.ended");
    expect(isEnded).toBe(move === "skaffold");
    if (!isEnded) expect(after.pop()?.event).toMatchObject({ kind: "session.ended", inferred: true });
    expect(after.map(anywhere)).toEqual(before.map(anywhere));
    expect(before.length).toBeGreaterThan(15);
    expect(new Set(after.map(({ event }) => event.source))).toEqual(new Set([`team/${to}`]));
    const [id = ""] = new Set(after.map(({ event }) => event.session));
    expect(id).toBe(idIn("team", before[0]?.event.session ?? ""));
    // The log's own time is the time of the import.
    expect(after[0]?.recordedAt.getTime()).toBeGreaterThan(before.at(-1)?.recordedAt.getTime() ?? Infinity);
  });

  it("has the same operations, and the session its labels and times", async () => {
    const places = /^(id|source|session|startPosition|endPosition)$/;
    const items = async (stack: Stack, path: string) => {
      const { body } = await stack.httpCall("GET", path);
      const page = JSON.parse(body) as { readonly items: readonly Readonly<Record<string, unknown>>[] };
      return page.items.map((item) => Object.fromEntries(Object.entries(item).filter(([name]) => !places.test(name))));
    };
    const operations = await items(origin, `/api/v1/operations?limit=1000&source=${from}`);
    expect(await items(target, `/api/v1/operations?limit=1000&source=${to}`)).toEqual(operations);
    expect(operations.length).toBeGreaterThan(0);
    const [before] = await items(origin, `/api/v1/sessions?source=${from}`);
    const [after] = await items(target, `/api/v1/sessions?source=${to}`);
    expect(after).toEqual(
      move === "skaffold"
        ? before
        : { ...before, endedAt: expect.any(String), endReason: expect.stringMatching(/^it was still running/) },
    );
  });

  it("is recognised when it is imported again", async () => {
    const last = await target.log.bounds();
    const [developer = "", project = ""] = to.split("/");
    expect(await importFile(target, fileOf(move), { developer, project })).toMatch(
      /events: already recorded, as session/,
    );
    expect(await target.log.bounds()).toEqual(last);
  });
});

it("an imported session is served by Skaffold's API as the original", async () => {
  using here = skaffoldClient(origin.grpc);
  using there = skaffoldClient(target.grpc);
  const base64 = (messages: readonly Buffer[]) => messages.map((bytes) => bytes.toString("base64"));
  const {
    sessions: [{ session } = expect.fail()],
  } = await verifySessionFile(fileOf("skaffold"));
  for (const service of ["/proto.SkaffoldService", "/proto.v2.SkaffoldV2Service"]) {
    const streams = service.includes("v2") ? ["Events", "ApplicationLogs"] : ["Events"];
    for (const rpc of streams) {
      const only = (id: string) => ({ "tapedeck-session": id });
      const before = base64(await here.all(`${service}/${rpc}`, { ...head(moves.skaffold.from), ...only(session) }));
      const headThere = { ...head(moves.skaffold.to), ...only(idIn("team", session)) };
      expect(base64(await there.all(`${service}/${rpc}`, headThere))).toEqual(before);
      expect(before.length).toBeGreaterThan(3);
    }
    const { code, bytes } = await here.unary(`${service}/GetState`, undefined, head(moves.skaffold.from));
    expect(await there.unary(`${service}/GetState`, undefined, head(moves.skaffold.to))).toMatchObject({ code, bytes });
    expect([code, bytes.byteLength > 50]).toEqual([0, true]);
  }
});

it("an imported session has the original's past Skaffold states", async () => {
  using here = skaffoldClient(origin.grpc);
  using there = skaffoldClient(target.grpc);
  const before = await exportTo(origin, moves.skaffold.from, join(folder, "before"));
  const after = await exportTo(target, moves.skaffold.to, join(folder, "after"));
  const states = new Set<string>();
  for (let index = 5; index < before.length; index += 80) {
    const at = (events: readonly ExportedEvent[]) => ({ "tapedeck-at": events[index]?.position ?? "" });
    const method = "/proto.v2.SkaffoldV2Service/GetState";
    const { bytes } = await here.unary(method, undefined, { ...head(moves.skaffold.from), ...at(before) });
    expect(await there.unary(method, undefined, { ...head(moves.skaffold.to), ...at(after) })).toMatchObject({
      code: 0,
      bytes,
    });
    states.add(bytes.toString("base64"));
  }
  expect(states.size).toBeGreaterThan(2);
});

it("an imported session is served by rkt's API as the original", async () => {
  using here = rktClient(origin.grpc);
  using there = rktClient(target.grpc);
  for (const rpc of ["ListPods", "ListImages", "GetInfo"] as const) {
    const request = rpc === "GetInfo" ? GetInfoRequest.encode({}).finish() : new Uint8Array();
    const before = await here.unary(`/v1alpha.PublicAPI/${rpc}`, request, head(moves.rkt.from));
    const after = await there.unary(`/v1alpha.PublicAPI/${rpc}`, request, head(moves.rkt.to));
    expect([after.code, after.bytes]).toEqual([0, before.bytes]);
    expect(before.bytes.byteLength).toBeGreaterThan(0);
  }
  const file = await exportTo(origin, moves.rkt.from, join(folder, "before"));
  const count = file.filter(({ event }) => rktKinds.has(event.kind)).length;
  expect(count).toBeGreaterThan(3);
  const events = await here.events(count);
  expect(await there.events(count)).toEqual(events);
});

it("an imported session is served by Vagrant's API as the original", async () => {
  using here = vagrantClient(origin.grpc);
  using there = vagrantClient(target.grpc);
  for (const rpc of ["_ListJobs", "ListTargets", "ListProjects", "GetVersionInfo"]) {
    const before = await here.ask(rpc, undefined, head(moves.vagrant.from));
    const after = await there.ask(rpc, undefined, head(moves.vagrant.to));
    expect([after.code, after.bytes], rpc).toEqual([0, before.bytes]);
  }
  const { jobs } = ListJobsResponse.decode((await here.ask("_ListJobs", undefined, head(moves.vagrant.from))).bytes);
  expect(jobs).toHaveLength(2);
  for (const { id } of jobs) {
    const before = here.job(id, head(moves.vagrant.from));
    const after = there.job(id, head(moves.vagrant.to));
    expect([await before.end, await after.end]).toMatchObject([{ code: 0 }, { code: 0 }]);
    expect(after.messages).toEqual(before.messages);
    expect(before.messages.length).toBeGreaterThan(2);
  }
});

it("a session exists in one source only", async () => {
  const refusal = "is in this Tapedeck already, as team/bob/moved/skaffold";
  await expect(importFile(target, fileOf("skaffold"), { project: "other" })).rejects.toThrow(refusal);
});

it("an erased session can be imported again, and erased again", async () => {
  const file = fileOf("vagrant");
  const {
    sessions: [filed = expect.fail()],
  } = await verifySessionFile(file);
  const sessions = async () => JSON.parse((await target.httpCall("GET", "/api/v1/sessions?upstream=vagrant")).body);
  for (let round = 0; round < 2; round++) {
    const erased = await target.httpCall("DELETE", `/api/v1/sessions/${idIn("team", filed.session)}`);
    const progress = erased.body.trim().split("\n").slice(0, -1);
    // The session has the end that it was given.
    const events = filed.events + 1;
    expect(JSON.parse(progress.at(-1) ?? "")).toMatchObject({ state: "done", events, removed: events });
    expect(await sessions()).toMatchObject({ items: [] });
    await importFile(target, file, { developer: "bob", project: "moved" });
    await target.caughtUp();
    expect(await sessions()).toMatchObject({ items: [{ session: idIn("team", filed.session) }] });
  }
});

it("several sessions of a source are moved at once", async () => {
  // With this many sessions the recorder often still holds the source when the next one comes.
  const sessions = Array.from({ length: 12 }, (_, ms) => foreignSession({ session: ulid(1_700_000_000_000 + ms) }));
  for (const foreign of sessions) foreign.add(...frameOf("v2", "hi", "log.written"), ended);
  const ids = sessions.map(({ session }) => idIn("team", session));
  const file = join(folder, "several");
  await writeFile(file, textOf(sessionFileLines({ sessions })));
  // Two seconds or less for each of them.
  const progress = progressPipe(1_000);
  expect((await importFile(target, file, {}, progress)).split("\n")).toEqual(
    sessions.map(({ session }) => {
      const what = `session ${session} of globex/carol/site/skaffold, 4 events`;
      return `carol/site/skaffold: recorded ${what}, as session ${idIn("team", session)}`;
    }),
  );
  expect(progress.lines()).toContain(`importing ${file}: 40 of 48 events (83 %)`);
  await target.caughtUp();
  const again = join(folder, "again");
  const exportIds = (expected: readonly string[], source?: string) =>
    exportSessions(expected, { url: urlOf(target.grpc), output: again, ...(source !== undefined && { source }) });
  const said = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  const exporting = progressPipe(60_000);
  await exportTo(target, "carol/site", again, exporting);
  expect(exporting.lines().at(-1)).toMatch(/^exporting carol\/site\/skaffold: [1-9]\d* events$/);
  await exportIds(ids.toReversed());
  expect((await verifySessionFile(again)).sessions.map(({ session }) => session)).toEqual(ids);
  await exportIds([], "carol/site");
  expect((await verifySessionFile(again)).sessions.map(({ session }) => session)).toEqual(ids.slice(-1));
  said.mockRestore();
  await expect(exportIds([ulid()])).rejects.toThrow(/^there is no session \w+: see `tapedeck sessions`\.$/);
  await expect(exportIds([ids[0] ?? ""], "bob/moved")).rejects.toThrow(`there is no session ${ids[0]} of bob/moved`);
  const {
    sessions: [vagrant = expect.fail()],
  } = await verifySessionFile(fileOf("vagrant"));
  await expect(exportIds([idIn("team", vagrant.session), ...ids])).rejects.toThrow(
    "a file holds sessions of one source, and these belong to",
  );
  await expect(exportIds([])).rejects.toThrow(
    /^several sources match: choose one with -s \((\w+\/\w+\/\w+(, )?){4}\)\.$/,
  );
  await expect(exportIds([], "bob/nothing")).rejects.toThrow(
    "there are no recordings of bob/nothing: see `tapedeck status`",
  );
  // The first of them would precede the existing events.
  const earlier = foreignSession({ session: ulid(1_700_000_000_000) });
  await writeFile(file, textOf(sessionFileLines({ sessions: [earlier] })));
  await expect(importFile(target, file)).rejects.toThrow(
    "import this one as another project, such as --project site-import",
  );
});

it("a session that was running at its export continues with a later export, and stays open until then", async () => {
  const foreign = foreignSession({ session: ulid(1_750_000_000_000) });
  foreign.add(...frameOf("v2", "hi", "log.written"));
  const file = join(folder, "went-on");
  const names = { developer: "carol", project: "later" };
  const importNow = async () => {
    await writeFile(file, textOf(sessionFileLines({ sessions: [foreign] })));
    return importFile(target, file, names);
  };
  const listed = async () => {
    await target.caughtUp();
    return JSON.parse((await target.httpCall("GET", "/api/v1/sessions?project=later")).body);
  };
  await importNow();
  expect(await listed()).toMatchObject({ items: [{ endReason: expect.stringMatching(/^it was still running/) }] });
  foreign.add(...frameOf("v2", "there", "log.written"), ended);
  await importNow();
  expect(await listed()).toMatchObject({ items: [{ endReason: "process ended" }] });
  expect(await importNow()).toMatch(/already recorded/);
});

it("an event log of Skaffold is imported with progress, under the name that is recorded", async () => {
  const file = join(fixtures, "skaffold", "01-dev-success-3-artifacts-5-iterations", "event-log-file.v1.ndjson");
  const count = (await readFile(file, "utf8")).trimEnd().split("\n").length;
  const progress = progressPipe(60_000);
  const said = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  vi.stubEnv("TAPEDECK_GRPC_PORT", target.grpc.split(":").at(-1));
  onTestFinished(() => {
    said.mockRestore();
    vi.unstubAllEnvs();
  });
  // Event logs are first compared with the existing events over HTTP.
  const options = { url: `http://${target.http}`, redact: "on", developer: "Erin B", project: "Log" } as const;
  await importFiles([file], options, progress);
  expect(said.mock.calls.join("").trimEnd()).toMatch(
    new RegExp(`^erin-b/log: recorded ${count} messages of the process that began [^\n]+$`),
  );
  expect(progress.lines().at(-1)).toBe(`importing ${file}: ${count} of ${count} messages (100 %)`);
});

it("a source that is being recorded refuses imports", async () => {
  await expect(importFile(origin, fileOf("rkt"))).rejects.toThrow(
    "not imported: default/h1/host/rkt is recorded by another tap",
  );
});

it("the commands export to standard output and name the problem of a wrong file", async () => {
  await using exporting = startCli(["export", "--url", urlOf(origin.grpc), "-s", "alice/shop/vagrant"], {
    cwd: folder,
  });
  expect([await exporting.ended, exporting.stderr()]).toEqual([0, ""]);
  const whole = exporting.stdout();
  const into = ["export", "--url", urlOf(origin.grpc), "-s", "alice/shop/vagrant", "-o", "/dev/stdout"];
  await using piped = startCli(into, { cwd: folder, within: ["sh", "-c", '"$@" | cat', "sh"] });
  expect(await piped.ended).toBe(0);
  // The first line says when it was made, and the last one has a hash of all.
  const eventsIn = (text: string) => text.split("\n").slice(1, -2);
  expect(eventsIn(piped.stdout())).toEqual(eventsIn(whole));
  expect(piped.stderr()).toMatch(/^\/dev\/stdout: session \S+ of alice\/shop\/vagrant, /);
  const file = join(folder, "vagrant.cut");
  await writeFile(file, whole.slice(0, -400));
  await using importing = startCli(["import", "--url", urlOf(target.grpc), file, "--developer", "eve"], {
    cwd: folder,
  });
  expect(await importing.ended).toBe(1);
  const last = whole.slice(0, -400).split("\n").length;
  expect(importing.stderr()).toBe(`tapedeck: ${file}:${last}: it is not JSON, or is truncated.\n`);
  expect(JSON.parse((await target.httpCall("GET", "/api/v1/sources?developer=eve")).body)).toMatchObject({ items: [] });
});
