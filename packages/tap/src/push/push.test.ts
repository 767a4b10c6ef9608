import { mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { credentials, type handleBidiStreamingCall, Server, ServerCredentials, status } from "@grpc/grpc-js";
import {
  type ControlAnswer,
  type Item,
  type PushRequest,
  type PushResponse,
  RecorderClient,
  RecorderService,
} from "@tapedeck/proto/tapedeck/v1/recorder";
import { ownPort } from "@tapedeck/shared/testing/own-port";
import { defaultDeadlineMs } from "@tapedeck/shared/testing/until";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { openSpill, type Spill } from "../spill/spill.ts";
import { segmentPath } from "../spill/spill-folder.ts";
import { grpcLink, linkOptions, type RecorderLink } from "./link.ts";
import { type PushOptions, pushItems } from "./push.ts";

const until = (check: () => void) => vi.waitFor(check, { timeout: defaultDeadlineMs, interval: 5 });
const hello = { developer: "alice", project: "shop", upstream: "skaffold", tap: "01TAP", redact: "on", labels: {} };
const at = { seconds: 1n, nanos: 2 };

async function spillOf(texts: readonly string[]): Promise<Spill> {
  const root = mkdtempSync(join(tmpdir(), "push-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const spill = await openSpill({ dir: join(root, "tap"), hello });
  for (const text of texts) add(spill, text);
  return spill;
}

function add(spill: Spill, text: string): void {
  const value = { channel: "v1", bytes: Buffer.from(text), more: false };
  spill.append({ connection: "01CONN", at, what: { $case: "frame", value } });
}

/** A recorder that keeps what it is given, commits each whole frame, and can be set to behave otherwise. */
function recorder() {
  const got: Item[] = [];
  const hellos: bigint[] = [];
  const answers: ControlAnswer[] = [];
  const state = { committed: 0n, silent: false, failAfter: Number.POSITIVE_INFINITY, refuse: 0, taken: "" };
  let reply: (response: PushResponse) => void = () => {};

  async function serve(requests: AsyncIterable<PushRequest>, respond: (response: PushResponse) => void): Promise<void> {
    reply = respond;
    for await (const { body } of requests) {
      if (body?.$case === "hello") {
        if (state.refuse-- > 0) throw Object.assign(new Error("not_ready"), { code: status.UNAVAILABLE });
        if (body.value.project === state.taken)
          throw Object.assign(new Error("source_taken"), { code: status.ALREADY_EXISTS });
        hellos.push(body.value.first_index);
        const source = `default/alice/${body.value.project}/skaffold`;
        respond({ body: { $case: "welcome", value: { source, committed: state.committed } } });
      } else if (body?.$case === "item") {
        if (got.length >= state.failAfter) {
          state.failAfter = Number.POSITIVE_INFINITY;
          throw Object.assign(new Error("gone"), { code: status.UNAVAILABLE });
        }
        got.push(body.value);
        if (body.value.what?.$case === "frame" && body.value.what.value.more) continue;
        state.committed = body.value.index;
        if (!state.silent) respond({ body: { $case: "committed", value: { index: state.committed } } });
      } else if (body?.$case === "control_answer") answers.push(body.value);
    }
  }

  /** Handles the call as gRPC would bring it. */
  const handle: handleBidiStreamingCall<PushRequest, PushResponse> = (call) => {
    // A loop that is left by an error would otherwise destroy the call before the error is sent.
    const requests = call.iterator({ destroyOnReturn: false }) as AsyncIterable<PushRequest>;
    serve(requests, (response) => call.write(response)).then(
      () => call.end(),
      (error: Error & { code: number }) => call.emit("error", { code: error.code, details: error.message }),
    );
  };
  return { got, hellos, answers, state, handle, reply: (response: PushResponse) => reply(response) };
}

type TestRecorder = ReturnType<typeof recorder>;

async function overGrpc(
  { handle }: TestRecorder,
  options: { port?: number } = {},
): Promise<{ link: RecorderLink; port: number; stop: () => void }> {
  const server = new Server({ "grpc.max_receive_message_length": 4 * 1024 * 1024 });
  server.addService(RecorderService, { push: handle });
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync(`127.0.0.1:${options.port ?? 0}`, ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    ),
  );
  const client = new RecorderClient(`127.0.0.1:${port}`, credentials.createInsecure(), linkOptions);
  const stop = () => server.forceShutdown();
  onTestFinished(() => {
    client.close();
    stop();
  });
  return { link: grpcLink(client), port, stop };
}

function push(link: RecorderLink, spill: Spill, options: Partial<PushOptions> = {}) {
  const stop = new AbortController();
  const control = async ({ call }: { call: string }) => ({ call, code: 0, message: "", response: Buffer.from("done") });
  const log = { info: () => {}, warn: () => {} };
  const running = pushItems({ link, spill, control, log, signal: stop.signal, ...options });
  onTestFinished(async () => {
    stop.abort();
    await running.done;
  });
  return running;
}

const textsOf = (items: readonly Item[]) =>
  items.map(({ what }) => (what?.$case === "frame" ? what.value.bytes.toString() : ""));

describe("pushing", () => {
  it("brings everything in order, then what is still to come, and ends when all is committed", async () => {
    const record = recorder();
    const spill = await spillOf(["a", "b"]);
    const { link } = await overGrpc(record);
    const pushing = push(link, spill);
    await until(() => expect(spill.state().committed).toBe(2n));
    add(spill, "c");
    expect(await pushing.finish(60_000)).toBe(true);
    expect(textsOf(record.got)).toEqual(["a", "b", "c"]);
    expect(record.got.map(({ index }) => index)).toEqual([1n, 2n, 3n]);
    expect(record.hellos).toEqual([1n]);
    expect(spill.state()).toMatchObject({ firstIndex: 4n, memoryBytes: 0 });
  });

  it("goes on after the last committed item when the recorder is lost", async () => {
    const record = recorder();
    record.state.failAfter = 3;
    const spill = await spillOf(["a", "b", "c", "d", "e"]);
    push((await overGrpc(record)).link, spill);
    await until(() => expect(spill.state().committed).toBe(5n));
    expect(textsOf(record.got)).toEqual(["a", "b", "c", "d", "e"]);
    expect(record.hellos).toEqual([1n, 4n]);
  });

  it("sends again what was never said to be committed, from where the recorder says it is", async () => {
    const record = recorder();
    record.state.silent = true;
    record.state.failAfter = 2;
    const spill = await spillOf(["a", "b", "c"]);
    push((await overGrpc(record)).link, spill);
    await until(() => expect(record.got).toHaveLength(3));
    expect(record.hellos).toEqual([1n, 1n]);
    expect(spill.state().committed).toBe(2n);
  });

  it("waits for a recorder that is not there or not ready", async () => {
    const record = recorder();
    record.state.refuse = 1;
    const first = await overGrpc(record, { port: await ownPort() });
    first.stop();
    const spill = await spillOf(["a"]);
    const warnings: unknown[] = [];
    push(first.link, spill, { log: { info: () => {}, warn: (fields) => warnings.push(fields) } });
    await until(() => expect(warnings.length).toBeGreaterThan(0));
    expect(spill.state().committed).toBe(0n);
    await overGrpc(record, { port: first.port });
    await until(() => expect(spill.state().committed).toBe(1n));
  });

  it("cuts large frames into pieces of 1 MiB with the same index", async () => {
    const record = recorder();
    const spill = await spillOf(["x".repeat(2.5 * 1024 * 1024), "y"]);
    push((await overGrpc(record)).link, spill);
    await until(() => expect(spill.state().committed).toBe(2n));
    expect(record.got.map(({ index }) => index)).toEqual([1n, 1n, 1n, 2n]);
    const pieces = record.got.flatMap(({ what }) => (what?.$case === "frame" ? [what.value] : []));
    expect(pieces.map(({ bytes, more }) => [bytes.length, more])).toEqual([
      [1_048_576, true],
      [1_048_576, true],
      [524_288, false],
      [1, false],
    ]);
  });

  it("cuts large states likewise, and reports as lost what is too large altogether", async () => {
    const record = recorder();
    const spill = await spillOf(["a"]);
    const MiB = 1024 * 1024;
    const state = Buffer.alloc(1.5 * MiB, "s");
    spill.append({ connection: "01CONN", at, what: { $case: "described", value: { channel: "v2", state } } });
    add(spill, "x".repeat(64 * MiB + 1));
    add(spill, "b");
    push((await overGrpc(record)).link, spill);
    await until(() => expect(spill.state().committed).toBe(4n));
    const reported = record.got.map(({ index, what }) => [
      index,
      what?.$case === "described" ? [what.value.state.length, what.value.more] : what?.$case,
    ]);
    expect(reported).toEqual([
      [1n, "frame"],
      [2n, [MiB, true]],
      [2n, [0.5 * MiB, false]],
      [3n, "dropped"],
      [4n, "frame"],
    ]);
    const dropped = { channel: "v1", count: 1n, bytes: BigInt(64 * MiB + 1), reason: "too_large" };
    expect(record.got[3]?.what).toMatchObject({ value: dropped });
  });

  it("does not break off for an answer that no message can hold", async () => {
    const record = recorder();
    const spill = await spillOf(["a"]);
    const control = async ({ call }: { call: string }) => ({ call, code: 0, message: "", response: Buffer.alloc(5e6) });
    push((await overGrpc(record)).link, spill, { control });
    await until(() => expect(spill.state().committed).toBe(1n));
    record.reply({ body: { $case: "control", value: { call: "7", method: "/x", request: Buffer.alloc(0) } } });
    await until(() => expect(record.answers).toMatchObject([{ call: "7", code: 8 }]));
    expect(record.hellos).toHaveLength(1);
  });

  it("answers control requests in between", async () => {
    const record = recorder();
    const spill = await spillOf(["a"]);
    push((await overGrpc(record)).link, spill);
    await until(() => expect(spill.state().committed).toBe(1n));
    record.reply({ body: { $case: "control", value: { call: "7", method: "/x", request: Buffer.alloc(0) } } });
    await until(() => expect(record.answers).toMatchObject([{ call: "7", response: Buffer.from("done") }]));
  });

  it("goes on when control, or the reading of its files, fails", async () => {
    const record = recorder();
    const root = mkdtempSync(join(tmpdir(), "push-"));
    onTestFinished(() => rmSync(root, { recursive: true, force: true }));
    const dir = join(root, "tap");
    const spill = await openSpill({ dir, hello, memoryBytes: 1_000 });
    for (const text of ["a", "b", "c"]) add(spill, text.repeat(500));
    const path = segmentPath(dir, 1n);
    renameSync(path, `${path}.away`);
    mkdirSync(path);
    const warnings: object[] = [];
    const log = { info: () => {}, warn: (fields: object) => warnings.push(fields) };
    const control = () => Promise.reject(new Error("closed"));
    push((await overGrpc(record)).link, spill, { log, control });
    await until(() => expect(warnings.length).toBeGreaterThan(0));
    rmSync(path, { recursive: true });
    renameSync(`${path}.away`, path);
    await until(() => expect(spill.state().committed).toBe(3n));
    record.reply({ body: { $case: "control", value: { call: "7", method: "/x", request: Buffer.alloc(0) } } });
    await until(() => expect(record.answers).toMatchObject([{ call: "7", code: 14 }]));
  });

  it("goes on under another name when the source is taken, or stops", async () => {
    const record = recorder();
    record.state.taken = "shop";
    const spill = await spillOf(["a"]);
    const { link } = await overGrpc(record);
    const stopped = push(link, spill, { sourceTaken: () => undefined });
    await stopped.done;
    expect(spill.state().committed).toBe(0n);
    const sources: string[] = [];
    const away: unknown[] = [];
    push(link, spill, {
      sourceTaken: () => ({ ...hello, project: "shop-2" }),
      // The recorder is there: a caller that learned it was away would not wait for it.
      away: (error) => away.push(error),
      welcomed: ({ source }) => sources.push(source),
    });
    await until(() => expect(spill.state().committed).toBe(1n));
    expect([sources, away]).toEqual([["default/alice/shop-2/skaffold"], []]);
    expect(spill.hello().project).toBe("shop-2");
  });

  it("stops at its bound when the recorder commits nothing", async () => {
    const record = recorder();
    record.state.silent = true;
    const spill = await spillOf(["a"]);
    const pushing = push((await overGrpc(record)).link, spill);
    await until(() => expect(record.got).toHaveLength(1));
    expect(await pushing.finish(50)).toBe(false);
  });

  it("stops after a step in which the recorder commits nothing", async () => {
    const record = recorder();
    record.state.silent = true;
    const spill = await spillOf(["a"]);
    const pushing = push((await overGrpc(record)).link, spill);
    await until(() => expect(record.got).toHaveLength(1));
    expect(await pushing.finishWhileMoving(50)).toBe(false);
  });

  it("sends no faster than the recorder takes", async () => {
    const spill = await spillOf(Array.from({ length: 1_000 }, () => "z".repeat(10_000)));
    let taken = 0;
    const stuck: handleBidiStreamingCall<PushRequest, PushResponse> = (call) => {
      call.write({ body: { $case: "welcome", value: { source: "", committed: 0n } } });
      // Takes a few, then none.
      call.on("data", () => {
        if (++taken === 5) call.pause();
      });
    };
    const { link } = await overGrpc({ ...recorder(), handle: stuck });
    let given = 0;
    async function* counted(requests: AsyncIterable<PushRequest>) {
      for await (const request of requests) {
        given++;
        yield request;
      }
    }
    push((requests, signal) => link(counted(requests), signal), spill);
    await until(() => expect(taken).toBeGreaterThanOrEqual(5));
    let before = -1;
    await vi.waitFor(
      () => {
        const now = given;
        const isSteady = now === before;
        before = now;
        expect(isSteady).toBe(true);
      },
      { interval: 200, timeout: defaultDeadlineMs },
    );
    expect(given).toBeLessThan(500);
  });
});

it("items that are there already travel together, in order, and large frames in their pieces", async () => {
  const spill = await spillOf([
    ...Array.from({ length: 2_500 }, (_, n) => `frame ${n}`),
    "x".repeat(2_500_000),
    "last",
  ]);
  const messages: Item[][] = [];
  const link: RecorderLink = async function* (requests) {
    for await (const { body } of requests) {
      if (body?.$case === "hello") yield { body: { $case: "welcome", value: { source: "s", committed: 0n } } };
      if (body?.$case !== "items") continue;
      messages.push(body.value.items);
      yield { body: { $case: "committed", value: { index: body.value.items.at(-1)?.index ?? 0n } } };
    }
  };
  const running = push(link, spill, { together: true });
  expect(await running.finish(60_000)).toBe(true);
  const came = messages.flat();
  expect(came.map(({ index }) => index)).toEqual(came.map(({ index }) => index).toSorted((a, b) => Number(a - b)));
  const texts = new Map<bigint, string>();
  for (const { index, what } of came)
    if (what?.$case === "frame") texts.set(index, (texts.get(index) ?? "") + String(what.value.bytes));
  expect([...texts.values()].slice(-2)).toEqual(["x".repeat(2_500_000), "last"]);
  expect(texts.size).toBe(2_502);
  expect(messages.length).toBeLessThan(10);
});
