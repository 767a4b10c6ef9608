import { runningPod } from "@tapedeck/fakes/rkt/host";
import { GetLogsResponse, ListPodsResponse } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { Event, TimeSource } from "@tapedeck/proto/tapedeck/v1/event";
import { Observation } from "@tapedeck/proto/tapedeck/v1/observation";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { timestampOfNanos } from "@tapedeck/shared/time/timestamp";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ObservationOutcome, Observed, Watcher } from "../../inventory/observing.ts";
import { outcomesOf } from "../../inventory/observing.ts";
import { mask } from "../mask.ts";
import type { LineMasks } from "./masked-lines.ts";
import { maskAfter } from "./masked-lines.ts";
import { TextsWatcher } from "./texts-watcher.ts";

const pod = "91d2f685-a122-492d-8bbe-c843c3cdb304";
const plain = { mask: (_: string, bytes: Uint8Array) => ({ bytes, redacted: 0 }) };
const second = (count: number): Timestamp => ({ seconds: 1_795_188_600n + BigInt(count), nanos: 0 });

type LineOptions = { readonly app?: string; readonly reopened?: boolean; readonly pod?: string };

function text(lines: readonly string[], { app = "", reopened = false, ...given }: LineOptions = {}): Observation {
  const bytes = Buffer.from(GetLogsResponse.encode({ lines: [...lines] }).finish());
  return Observation.fromPartial({ result: { $case: "text", value: { pod: given.pod ?? pod, app, bytes, reopened } } });
}

const line = (time: string, message: string) => `2026-11-20 15:28:${time} +0000 UTC MESSAGE=${message}`;

/** The event of each fact, as far as a watcher minds. */
function eventsOf(seen: readonly ObservationOutcome[]): Event[] {
  return seen.flatMap((one) =>
    one.what !== "frame"
      ? []
      : one.facts.map((fact) =>
          Event.fromPartial({
            channel: "logs",
            kind: fact.kind,
            subject: fact.subject ?? "",
            summary: fact.summary,
            occurred_at: fact.occurredAt ?? one.observedAt,
            observed_at: one.observedAt,
            detail: fact.detail,
            time_source: fact.occurredAt ? TimeSource.TIME_SOURCE_UPSTREAM : TimeSource.TIME_SOURCE_OBSERVED,
          }),
        ),
  );
}

function printed(seen: readonly ObservationOutcome[]) {
  return eventsOf(seen).map(({ kind, subject, detail }) => {
    if (detail?.$case !== "text") return { kind, subject };
    return { kind, subject, container: detail.value.container, text: detail.value.text };
  });
}

/** A line as `printed` gives it; without a container, it is from the stream of everything in the pod. */
function written(text: string, container = "", of = pod) {
  return { kind: "log.written", subject: container === "" ? of : `${of}/${container}`, container, text };
}

function watcher(options = {}) {
  const watching = new TextsWatcher({ ...plain, ...options });
  const all: ObservationOutcome[] = [];
  let count = 0;
  const observation = (given: Observation) => {
    const seen = outcomesOf(watching.observe("logs", given, second(count++)));
    all.push(...seen);
    return seen;
  };
  return {
    all,
    printed: (given: Observation) => printed(observation(given)),
    see: observation,
    resume: (event: Event) => watching.resume(event),
    connected: () => watching.connected(),
    observe: (channel: string, given: Observation, at: Timestamp) => watching.observe(channel, given, at),
  };
}

describe("a line", () => {
  it("is emitted with its time, its app and its bytes", () => {
    const printed = line("29.36926", "web line 10");
    const given = text([printed], { app: "web" });
    expect(watcher().see(given)).toEqual([
      {
        what: "frame",
        original: {
          type: "v1alpha.GetLogsResponse",
          bytes: given.result?.$case === "text" && given.result.value.bytes,
          redacted: 0,
        },
        observedAt: second(0),
        facts: [
          {
            kind: "log.written",
            subject: `${pod}/web`,
            summary: "web line 10",
            occurredAt: { seconds: 1_795_188_509n, nanos: 369_260_000 },
            detail: {
              $case: "text",
              value: { text: printed, level: "", task: "", subtask: "", pod, container: "web", noise: false },
            },
          },
        ],
      },
    ]);
  });

  it("without a time has that of the line before, also of the message before", () => {
    const watch = watcher();
    watch.see(text([line("24.5", "Exception"), "  at main"], { app: "web" }));
    watch.see(text(["  at start"], { app: "web" }));
    expect(watch.all.map((seen) => seen.what === "frame" && seen.facts[0].occurredAt)).toEqual([
      { seconds: 1_795_188_504n, nanos: 500_000_000 },
      { seconds: 1_795_188_504n, nanos: 500_000_000 },
      { seconds: 1_795_188_504n, nanos: 500_000_000 },
    ]);
    const bytes = watch.all.map((seen) => seen.what === "frame" && seen.original?.bytes);
    expect(bytes.map((one) => one && GetLogsResponse.decode(one).lines)).toEqual([
      [line("24.5", "Exception")],
      ["  at main"],
      ["  at start"],
    ]);
  });

  it("has none where there never was one", () => {
    const [seen] = watcher().see(text(["hello"], { app: "web" }));
    expect(seen?.what === "frame" && seen.facts[0].occurredAt).toBeUndefined();
  });

  it("is masked in its text and its bytes", () => {
    const mask = (type: string, bytes: Uint8Array) => {
      expect(type).toBe("v1alpha.GetLogsResponse");
      const hidden = Buffer.from(Buffer.from(bytes).toString("latin1").replace("hunter2", "*******"), "latin1");
      return { bytes: hidden, redacted: hidden.equals(bytes) ? 0 : 1 };
    };
    const [seen] = watcher({ mask }).see(text([line("24", "password hunter2")], { app: "web" }));
    expect(seen).toMatchObject({ original: { redacted: 1 }, facts: [{ summary: "password *******" }] });
    expect(printed(seen ? [seen] : [])).toEqual([written(line("24", "password *******"), "web")]);
  });
});

describe("the stream of everything in a pod", () => {
  const [own, web] = [line("24.1", "Starting web"), line("24.2", "web line")];

  it("emits only what no app emits", () => {
    const watch = watcher();
    expect(watch.printed(text([web], { app: "web" }))).toEqual([written(web, "web")]);
    expect([...watch.printed(text([own])), ...watch.printed(text([web]))]).toEqual([written(own)]);
  });

  it("may be the first to emit what an app says", () => {
    const watch = watcher();
    expect(watch.printed(text([web]))).toEqual([written(web)]);
    expect(watch.printed(text([web], { app: "web" }))).toEqual([]);
    expect(watch.printed(text([web], { app: "web" }))).toEqual([written(web, "web")]);
    expect(watch.printed(text([web]))).toEqual([]);
  });

  it("is compared with apps of its own pod", () => {
    const watch = watcher();
    watch.see(text([web], { app: "web" }));
    expect(watch.printed(text([web], { pod: "another" }))).toEqual([written(web, "", "another")]);
  });
});

describe("a stream that is opened anew", () => {
  const [a, b, c] = [line("24.1", "a"), line("24.2", "b"), line("24.3", "c")];

  it("repeats what is known, as often as it is known, and goes on", () => {
    const watch = watcher();
    for (const each of [a, b, b]) watch.see(text([each], { app: "web" }));
    const again = [a, b, b, b, c].map((each, index) => text([each], { app: "web", reopened: index === 0 }));
    expect(again.flatMap(watch.printed)).toEqual([written(b, "web"), written(c, "web")]);
    // It does not repeat any more: a clock was set back.
    expect(watch.printed(text([a], { app: "web" }))).toEqual([written(a, "web")]);
  });

  it("is meant by a new connection too", () => {
    const watch = watcher();
    watch.see(text([a], { app: "web" }));
    watch.connected();
    expect(watch.printed(text([a, b], { app: "web" }))).toEqual([written(b, "web")]);
  });
});

describe("a watcher that takes over", () => {
  const lines = Array.from({ length: 6 }, (_, index) => line(`24.${index}`, `line ${index}`));

  it("knows by the log what was recorded", () => {
    const before = watcher();
    for (const each of lines.slice(0, 3)) before.see(text([each], { app: "web" }));
    const after = watcher();
    for (const event of eventsOf(before.all)) after.resume(event);
    expect(lines.flatMap((each) => after.printed(text([each], { app: "web" })))).toEqual(
      lines.slice(3).map((each) => written(each, "web")),
    );
  });

  it("knows by a description what was recorded before it", () => {
    const before = watcher({ describeEvery: 5 });
    for (const each of lines.slice(0, 5)) before.see(text([each], { app: "web" }));
    const description = before.all.at(-1);
    expect(description).toMatchObject({ facts: [{ kind: "inventory.described" }] });
    expect(description && "original" in description).toBe(false);
    const after = watcher();
    for (const event of eventsOf(description ? [description] : [])) after.resume(event);
    expect(after.printed(text(lines, { app: "web" }))).toEqual([written(lines[5] ?? "", "web")]);
    // What the pod had not repeated by then it repeats now.
    expect(after.printed(text([line("24.45", "of the pod"), ...lines]))).toEqual([
      written(line("24.45", "of the pod")),
    ]);
  });

  it("knows by all parts of a large description", () => {
    const before = watcher({ describeEvery: 30_000 });
    const apps = ["web", "api", "db"];
    // Without times: all of them are of the same moment.
    const many = (app: string) => Array.from({ length: 10_000 }, (_, index) => `${app} ${index}`);
    for (const app of apps) before.see(text(many(app), { app }));
    const parts = eventsOf(before.all).filter(({ kind }) => kind === "inventory.described");
    expect(parts.map(({ detail }) => detail)).toMatchObject([
      { value: { part: 0, parts: parts.length } },
      ...parts.slice(1).map((_, index) => ({ value: { part: index + 1, parts: parts.length } })),
    ]);
    expect(parts.length).toBeGreaterThan(2);
    for (const part of parts) expect(Event.encode(part).finish().length).toBeLessThan(600 * 1024);
    const after = watcher();
    for (const part of parts) after.resume(part);
    for (const app of apps)
      expect(after.printed(text([...many(app), `${app} more`], { app }))).toEqual([written(`${app} more`, app)]);
  });

  it("forgets pods that were gone for an hour", () => {
    const watch = watcher({ describeEvery: 2 });
    const list = (...pods: ReturnType<typeof runningPod>[]) =>
      Observation.fromPartial({
        result: { $case: "all", value: Buffer.from(ListPodsResponse.encode({ pods }).finish()) },
      });
    const [stays, goes] = [runningPod(1), runningPod(2)];
    const texts = () => {
      const [last] = eventsOf(watch.all.slice(-1));
      return last?.detail?.$case === "host" ? last.detail.value.texts.map((end) => end.pod) : [];
    };
    watch.observe("pods", list(stays, goes), second(0));
    watch.see(text([lines[0] ?? ""], { pod: goes.id, app: "web" }));
    watch.see(text([lines[0] ?? ""], { pod: stays.id, app: "web" }));
    expect(texts()).toContain(goes.id);
    watch.observe("pods", list(stays), second(10));
    const later = outcomesOf(new TextsWatcher(plain).observe("logs", text([lines[1] ?? ""]), second(0)));
    expect(printed(later)).toHaveLength(1);
    for (const at of [3_000, 4_000]) outcomesOf(watch.observe("logs", text([`${at}`], { pod: stays.id }), second(at)));
    const seen = outcomesOf(watch.observe("logs", text(["1", "2"], { pod: stays.id, app: "web" }), second(4_000)));
    watch.all.push(...seen);
    expect(texts()).toContain(stays.id);
    expect(texts()).not.toContain(goes.id);
  });
});

it("lines that are repeated are read with a pause at each", () => {
  const watching = new TextsWatcher(plain);
  const given = text(
    Array.from({ length: 1_000 }, (_, index) => line(`24.${index + 1_000}`, `line ${index}`)),
    { app: "web" },
  );
  expect([...watching.observe("logs", given, second(0))].map(({ what }) => what)).toEqual(Array(1_000).fill("frame"));
  watching.connected();
  expect([...watching.observe("logs", given, second(1))].map(({ what }) => what)).toEqual(Array(1_000).fill("yield"));
});

describe("odd answers", () => {
  it("is kept as unreadable", () => {
    const bytes = Buffer.from([0x0a, 200]);
    const value = { pod, app: "web", bytes, reopened: false };
    expect(watcher().see(Observation.fromPartial({ result: { $case: "text", value } }))).toMatchObject([
      { original: { bytes }, facts: [{ kind: "upstream.unreadable" }] },
    ]);
    expect(watcher().see(Observation.fromPartial({}))).toEqual([]);
  });

  it("is a gap, once, when texts can't be had", () => {
    const watch = watcher();
    const failed = Observation.fromPartial({
      result: { $case: "failed", value: { code: 2, message: "rkt built without logging support" } },
    });
    expect(watch.see(failed)).toEqual([
      { what: "gap", reason: "rkt built without logging support", after: undefined, until: second(0) },
    ]);
    expect(watch.see(failed)).toEqual([]);
  });
});

/** A pod's journal, its streams as the tap gives them, and a recorder that crashes. */
function worldOf(journal: readonly Entry[], describeEvery: number, masks: LineMasks = plain) {
  type Item = { readonly observation: Observation; readonly connected: boolean; readonly at: Timestamp };
  const items: Item[] = [];
  let log: { readonly event: Event; readonly item: number }[] = [];
  let watching = watch();
  const streams = new Map<string, { next: number; since: bigint; reopened: boolean }>();
  let connected = false;

  function watch(): Watcher<Observed> {
    return new TextsWatcher({ ...masks, describeEvery });
  }

  function streamOf(name: string) {
    return streams.get(name) ?? { next: 0, since: 0n, reopened: false };
  }

  function startTap() {
    for (const name of streamNames) streams.set(name, { next: 0, since: 0n, reopened: false });
    connected = true;
  }

  function reconnect() {
    for (const name of streamNames) reopen(name);
    connected = true;
  }

  function reopen(name: string) {
    const stream = streamOf(name);
    // It begins at least as far back as the pod's stream.
    let { since } = stream;
    if (streamOf("").since < since) since = streamOf("").since;
    const first = journal.findIndex(({ time }) => time >= since * 1_000_000_000n);
    stream.next = first === -1 ? journal.length : first;
    stream.reopened = true;
  }

  /** False when there is nothing left. */
  function deliver(name: string): boolean {
    const stream = streamOf(name);
    const index = journal.findIndex(({ app }, at) => at >= stream.next && (name === "" || app === name));
    const entry = journal[index];
    if (entry === undefined) return false;
    stream.next = index + 1;
    const inSeconds = entry.time / 1_000_000_000n;
    if (inSeconds > stream.since) stream.since = inSeconds;
    const observation = text(entry.lines, { app: name, reopened: stream.reopened });
    items.push({ observation, connected, at: second(items.length) });
    stream.reopened = false;
    connected = false;
    take(items.length - 1);
    return true;
  }

  function take(item: number, after?: Timestamp) {
    const taken = items[item];
    if (taken === undefined) return;
    if (taken.connected) watching.connected();
    if (after !== undefined && taken.at.seconds < after.seconds) return;
    const seen = outcomesOf(watching.observe("logs", taken.observation, taken.at));
    log.push(...eventsOf(seen).map((event) => ({ event, item })));
  }

  /** It has lost the last events; what they came from is pushed again, and some of what came before. */
  function crash(lost: number, again: number) {
    log = log.slice(0, Math.max(0, log.length - lost));
    const from = Math.min(log.at(-1)?.item ?? 0, items.length - 1) - again;
    watching = watch();
    const described = log.findLastIndex(({ event }) => event.kind === "inventory.described");
    for (const { event } of log.slice(Math.max(0, described))) watching.resume(event);
    const after = log.at(-1)?.event.observed_at;
    for (let item = Math.max(0, from); item < items.length; item++) take(item, after);
  }

  startTap();
  const texts = () => log.flatMap(({ event: { detail } }) => (detail?.$case === "text" ? [detail.value.text] : []));
  return { startTap, reconnect, reopen, deliver, crash, texts };
}

type Entry = { readonly app: string; readonly time: bigint; readonly lines: readonly string[] };
const streamNames = ["", "web", "db"];

/** `alike`: an app may say the very same twice at the same time. */
const journals = (alike: boolean) =>
  fc
    .array(
      fc.record({
        app: fc.constantFrom(...streamNames),
        step: fc.constantFrom(0n, 0n, 1_000n, 400_000_000n, 1_100_000_000n),
        message: fc.constantFrom("x", "y"),
        more: fc.constantFrom<readonly string[]>([], [], ["  at z", "  at z"]),
      }),
      { maxLength: 25 },
    )
    .map((entries) => {
      let time = 1_795_188_500_000_000_000n;
      return entries.map(({ app, step, message, more }, index): Entry => {
        time += step;
        const { seconds, nanos } = timestampOfNanos(time);
        const at = new Date(Number(seconds) * 1_000).toISOString().slice(0, 19).replace("T", " ");
        const of = alike ? app : `${app} ${index}`;
        const first = `${at}.${String(nanos).padStart(9, "0")} +0000 UTC MESSAGE=${message} of ${of}`;
        return { app, time, lines: [first, ...more.map((each) => `${each} of ${of}`)] };
      });
    });

/** Apps print private keys line by line, while others print something; lines of a key are alike when they are masked. */
const keys = (alike: boolean) =>
  fc
    .array(
      fc.record({
        app: fc.constantFrom(...streamNames),
        step: fc.constantFrom(alike ? 0n : 1_000n, 1_000n, 400_000_000n, 1_100_000_000n),
        begins: fc.boolean(),
      }),
      { maxLength: 40 },
    )
    .map((entries) => {
      let time = 1_795_188_500_000_000_000n;
      const open = new Map<string, number>();
      return entries.map(({ app, step, begins }, index): Entry & { readonly recorded: string } => {
        time += step;
        const printed = open.get(app) ?? 0;
        const isOfKey = printed > 0 || begins;
        open.set(app, isOfKey ? (printed + 1) % 6 : 0);
        const ofKey = [
          `-----BEGIN RSA PRIVATE KEY-----`,
          ...Array(4).fill(`MIIEow${index}`),
          "-----END RSA PRIVATE KEY-----",
        ];
        const message = (isOfKey ? ofKey[printed] : undefined) ?? `line ${index} of ${app}`;
        const at = new Date(Number(time / 1_000_000n)).toISOString().slice(0, 19).replace("T", " ");
        const prefix = `${at}.${String(time % 1_000_000_000n).padStart(9, "0")} +0000 UTC MESSAGE=`;
        const recorded = `${prefix}${message.startsWith("MII") ? "*".repeat(message.length) : message}`;
        return { app, time, lines: [prefix + message], recorded };
      });
    });

const stream = fc.constantFrom(...streamNames);
const deliver = { weight: 20, arbitrary: fc.record({ do: fc.constant("deliver" as const), stream }) };
const reopen = { weight: 1, arbitrary: fc.record({ do: fc.constant("reopen" as const), stream }) };
const anew = { weight: 1, arbitrary: fc.record({ do: fc.constantFrom("reconnect" as const, "startTap" as const) }) };
const crash = {
  weight: 1,
  arbitrary: fc.record({ do: fc.constant("crash" as const), lost: fc.nat(3), again: fc.nat(3) }),
};

type StreamAction =
  | { readonly do: "deliver" | "reopen"; readonly stream: string }
  | { readonly do: "crash"; readonly lost: number; readonly again: number }
  | { readonly do: "reconnect" | "startTap" };

/** And all that is left. */
function play(world: ReturnType<typeof worldOf>, steps: readonly StreamAction[]): void {
  for (const step of steps) {
    if (step.do === "deliver") world.deliver(step.stream);
    else if (step.do === "reopen") world.reopen(step.stream);
    else if (step.do === "crash") world.crash(step.lost, step.again);
    else world[step.do]();
  }
  for (const name of ["web", "db", ""]) while (world.deliver(name));
}

describe("each line is emitted once, whatever happens on the way", () => {
  it.each([
    { when: "the recorder crashes too", alike: false, steps: fc.oneof(deliver, reopen, anew, crash) },
    { when: "some lines are alike", alike: true, steps: fc.oneof(deliver, reopen, anew) },
  ])("and $when", ({ alike, steps }) => {
    const todo = fc.array(steps, { maxLength: 80 });
    fc.assert(
      fc.property(journals(alike), todo, fc.constantFrom(3, 5, 1_000), (journal, steps, describeEvery) => {
        const world = worldOf(journal, describeEvery);
        play(world, steps);
        expect(world.texts().toSorted()).toEqual(journal.flatMap(({ lines }) => lines).toSorted());
      }),
      { numRuns: 500 },
    );
  });
});

describe("each line of a key is masked, and emitted once, whatever happens on the way", () => {
  it.each([
    { when: "the recorder crashes too", alike: false, steps: fc.oneof(deliver, reopen, anew, crash) },
    { when: "lines come at the same time", alike: true, steps: fc.oneof(deliver, reopen, anew) },
  ])("and $when", ({ alike, steps }) => {
    const todo = fc.array(steps, { maxLength: 80 });
    fc.assert(
      fc.property(keys(alike), todo, fc.constantFrom(3, 5, 1_000), (journal, steps, describeEvery) => {
        const world = worldOf(journal, describeEvery, { mask, maskAfter });
        play(world, steps);
        expect(world.texts().toSorted()).toEqual(journal.map(({ recorded }) => recorded).toSorted());
      }),
      { numRuns: 500 },
    );
  });
});
