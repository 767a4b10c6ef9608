import { GetLogsRequest, GetLogsResponse, Pod } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { until } from "@tapedeck/shared/testing/until";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { CallContext } from "../../call-context.ts";
import { recordedCalls } from "./testing/recorded-calls.ts";
import { type Fields, type Harness, reader, rktHarness } from "./testing/rkt-harness.ts";

let on: Harness;
beforeEach(async () => {
  on = await rktHarness();
  on.session(session);
});
afterEach(() => on[Symbol.asyncDispose]());

const session = "01A";
const id = "91d2f685-a122-492d-8bbe-c843c3cdb304";
const removed = "369e96b3-b185-4735-9cd2-d59dd21fb99a";
/** Second of the recorded scenario's first line. */
const begun = 1_795_188_504;

const list = (...ids: readonly string[]) =>
  on.hold("rkt.pods", Object.fromEntries(ids.map((one) => [one, Pod.encode(Pod.fromPartial({ id: one })).finish()])));

/** A line as record keeps it, printed at that moment by the host's own clock. */
function line(
  text: string,
  container: string,
  ms: number,
  more: { readonly pod?: string; readonly session?: string } = {},
): Fields {
  const at = { seconds: BigInt(Math.floor(ms / 1_000)), nanos: Math.round((ms % 1_000) * 1_000_000) };
  const bytes = Buffer.from(GetLogsResponse.encode({ lines: [text] }).finish());
  return {
    kind: "log.written",
    channel: "logs",
    session: more.session ?? session,
    occurred_at: at,
    observed_at: { ...at, seconds: at.seconds + 1n },
    detail: { $case: "text", value: { text, container, pod: more.pod ?? id } },
    original: { type: "v1alpha.GetLogsResponse", bytes, size: BigInt(bytes.byteLength) },
  };
}

async function logs(request: Partial<GetLogsRequest>, context: Partial<CallContext> = {}) {
  const message = GetLogsRequest.fromPartial({ pod_id: id, ...request });
  const { messages } = await on.api.getLogs(message, on.context(context));
  return reader(messages, (bytes) => GetLogsResponse.decode(bytes).lines);
}

/** The messages of a call that ends. */
async function all(request: Partial<GetLogsRequest>, context: Partial<CallContext> = {}) {
  const { got, done } = await logs(request, context);
  await done;
  return got;
}

describe("a real rkt's answers", () => {
  const calls = recordedCalls("08-logs-journal") as readonly (ReturnType<typeof recordedCalls>[number] & {
    readonly messages: readonly { readonly message: { readonly lines?: readonly string[] } }[];
  })[];
  const reported = calls.find(({ tag }) => tag === "all")?.messages[0]?.message.lines ?? [];
  const recorded = (text: string) => {
    const [, day, time, fraction, app = ""] = /^(\S+) (\S+)(\.\d+) \+0000 UTC MESSAGE=(web|side)/.exec(text) ?? [];
    return line(text, app, Date.parse(`${day}T${time}Z`) + 1_000 * Number(fraction));
  };
  // Those between the recording of `all` and the pod's next lines, but the one that ignores until_time.
  const ofOnePod = calls.filter(
    ({ n, tag = "", request }) => n >= 13 && n <= 29 && !tag.startsWith("until") && "pod_id" in request,
  );

  beforeEach(async () => {
    list(id);
    // An app's lines come in their order, and late ones after those of another app.
    const bySide = [...reported].sort((a, b) => Number(a.includes("=side")) - Number(b.includes("=side")));
    await on.add(...bySide.map(recorded));
  });

  it.each(ofOnePod)("$tag", async ({ request, messages, error }) => {
    const answered = all(GetLogsRequest.fromJSON(request));
    if (error !== undefined) await expect(answered).rejects.toMatchObject({ code: 2, message: error.details });
    else expect(await answered).toEqual(messages.map(({ message }) => message.lines ?? []));
  });

  it("but until_time counts", async () => {
    expect(await all({ until_time: BigInt(begun + 1) })).toEqual([reported.slice(0, 3)]);
    expect(await all({ until_time: -1n })).toEqual([[]]);
  });
});

describe("follow", () => {
  beforeEach(async () => {
    list(id);
    await on.add(line("one", "web", 1_000), line("two", "side", 2_000), line("three", "web", 3_000));
  });

  it("gives what there is, a line in each message, then what comes, without an end", async () => {
    const { got } = await logs({ follow: true });
    await until(() => got.length === 3, { message: "the recorded lines" });
    await on.add(line("four", "web", 4_000), line("of another pod", "web", 5_000, { pod: removed }));
    await on.add(line("five", "side", 6_000), { kind: "session.lost", channel: "tapedeck", session });
    await on.add(line("six", "web", 7_000, { session: "01B" }));
    await until(() => got.length === 6, { message: "the live lines" });
    expect(got).toEqual([["one"], ["two"], ["three"], ["four"], ["five"], ["six"]]);
  });

  it("gives the last lines of an app, then those that come of it", async () => {
    const { got } = await logs({ follow: true, lines: 1, app_name: "web" });
    await until(() => got.length === 1, { message: "the recorded line" });
    await on.add(line("side", "side", 4_000), line("four", "web", 5_000));
    await until(() => got.length === 2, { message: "the live line" });
    expect(got).toEqual([["three"], ["four"]]);
  });

  it.each([
    ["lines", { lines: -1 }],
    ["since_time", { since_time: -1n }],
  ])("gives only what comes where a negative %s leaves nothing", async (_, request) => {
    const { got } = await logs({ follow: true, ...request });
    await on.add(line("four", "web", 4_000));
    await until(() => got.length === 1, { message: "the live line" });
    expect(got).toEqual([["four"]]);
  });

  it("ends with the session that the call names", async () => {
    const { got, done } = await logs({ follow: true }, { session });
    await on.add(line("four", "web", 4_000), { kind: "session.ended", channel: "tapedeck", session });
    await done;
    expect(got).toEqual([["one"], ["two"], ["three"], ["four"]]);
  });
});

describe("the last lines", () => {
  /** More than the first window, all of them another pod's. */
  const others = async () => {
    for (let n = 0; n < 5; n++) {
      await on.addTogether(...Array.from({ length: 1_000 }, () => line("other", "web", Date.now(), { pod: removed })));
    }
  };

  it("are found however far back they are", async () => {
    list(id);
    await on.add(line("one", "web", 1_000), line("two", "web", 2_000), line("three", "web", 3_000));
    await others();
    expect(await all({ lines: 2 })).toEqual([["two", "three"]]);
    expect(await all({ lines: 9 })).toEqual([["one", "two", "three"]]);
  });

  it("are the last by their own time, though they were recorded early", async () => {
    list(id);
    await on.add(line("newest", "web", 9_000));
    await others();
    await on.add(line("old", "side", 1_000), line("older", "side", 500));
    expect(await all({ lines: 2 })).toEqual([["old", "newest"]]);
    expect(await all({ lines: 1, app_name: "side" })).toEqual([["old"]]);
  });
});

describe("a pod that is not on the host", () => {
  it("is served by its whole id", async () => {
    list();
    await on.add(line("one", "web", 1_000, { pod: removed }));
    expect(await all({ pod_id: removed })).toEqual([["one"]]);
    expect(await all({ pod_id: removed.toUpperCase(), lines: -1 })).toEqual([[]]);
    await expect(all({ pod_id: removed.slice(0, 8) })).rejects.toMatchObject({ message: "unable to resolve UUID" });
    await expect(all({ pod_id: id })).rejects.toMatchObject({ code: 2, message: "unable to resolve UUID" });
  });
});

describe("a pod on the host", () => {
  const unsupported = (pod: string) => ({ code: 2, message: `logging unsupported for pod "${pod}"` });

  it("that has no journal fails as rkt does, whatever others have written", async () => {
    list(id, removed);
    await expect(all({ pod_id: id.slice(0, 4) })).rejects.toMatchObject(unsupported(id.slice(0, 4)));
    await on.add(line("one", "web", 1_000, { pod: removed }));
    await expect(all({})).rejects.toMatchObject(unsupported(id));
    await expect(all({ lines: 3 })).rejects.toMatchObject(unsupported(id));
    const { done } = await logs({ follow: true, app_name: "web" });
    await expect(done).rejects.toMatchObject(unsupported(id));
    expect(await all({ pod_id: removed })).toEqual([["one"]]);
  });

  it("that has one answers nothing where there is nothing to say", async () => {
    list(id);
    await on.add(line("one", "", 1_000));
    expect(await all({ app_name: "web" })).toEqual([[]]);
    expect(await all({ app_name: "web", lines: 3 })).toEqual([[]]);
    expect(await all({ since_time: 5n })).toEqual([[]]);
    expect(await all({ lines: -1 })).toEqual([[]]);
  });

  it("has the lines of the session that is asked for", async () => {
    list(id);
    await on.add(line("first", "web", 1_000));
    on.session(session, { ended: true, end_position: on.position(1) });
    on.session("01B");
    await on.add(line("second", "web", 2_000, { session: "01B" }));
    expect(await all({})).toEqual([["second"]]);
    expect(await all({}, { session })).toEqual([["first"]]);
    expect(await all({}, { after: "start" })).toEqual([["first", "second"]]);
  });
});

it("so many lines that nobody takes them are refused", async () => {
  list(id);
  for (let n = 0; n < 12; n++) await on.add(line("x".repeat(3 << 20), "web", n));
  await expect(all({})).rejects.toMatchObject({ code: "limit_exceeded", details: { field: "lines" } });
  expect((await all({ lines: 2 }))[0]).toHaveLength(2);
});
