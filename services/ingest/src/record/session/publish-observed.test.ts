import { Observed } from "@tapedeck/proto/tapedeck/v1/observed";
import type { Item } from "@tapedeck/proto/tapedeck/v1/recorder";
import { observedSubject } from "@tapedeck/shared/log/subjects";
import { sourceName } from "@tapedeck/shared/source";
import { until } from "@tapedeck/shared/testing/until";
import { timestampOfMs } from "@tapedeck/shared/time/timestamp";
import { expect, it } from "vitest";
import { fakeLog } from "../testing/fake-log.ts";
import { plainNormalizer } from "../testing/plain-normalizer.ts";
import { observedPublisher } from "./publish-observed.ts";
import { openSessionRecorder } from "./session-recorder.ts";

const source = sourceName({ workspace: "acme", developer: "alice", project: "shop", upstream: "skaffold" });
const hello = {
  developer: "alice",
  project: "shop",
  upstream: "skaffold",
  tap: "T",
  labels: {},
  redact: "on",
  settings: {},
};
const well = { lands: "now", answers: true } as const;

type What = NonNullable<Item["what"]>;
const dialled: What = { $case: "dialled", value: { address: "127.0.0.1:50051", channels: ["a", "b"] } };
const frame = (channel: string, text: string): What => ({
  $case: "frame",
  value: { channel, bytes: Buffer.from(text), more: false },
});
const described = (state: string): What => ({
  $case: "described",
  value: { channel: "a", state: Buffer.from(state) },
});

/** `gate`: what a publish waits for. */
async function stage(gate: () => Promise<void> = async () => {}) {
  const log = fakeLog(() => well, { onPublish: gate });
  const reported: { readonly observed: Observed; readonly inLog: number }[] = [];
  const recording = await openSessionRecorder({
    log: { writer: log, reader: log.reader },
    source,
    hello: { ...hello, first_index: 1n },
    signal: new AbortController().signal,
    normalizer: plainNormalizer({ name: "a", replays: true }, { name: "b", replays: true }),
    listener: { observed: (observed) => reported.push({ observed, inLog: log.stored.length }) },
  });
  let index = 0n;
  return {
    log,
    reported,
    recording,
    push: (ms: number, what: What) => recording.take({ index: ++index, connection: "C1", at: timestampOfMs(ms), what }),
    [Symbol.asyncDispose]: () => recording[Symbol.asyncDispose](),
  };
}

it("reports every answer, also what is not recorded, with what came before it", async () => {
  await using on = await stage();
  await on.push(0, dialled);
  await on.push(10, frame("a", "1 one"));
  await on.push(11, frame("b", "2 two+1"));
  await on.push(250, described("names=x"));
  await on.push(300, frame("a", "3 three"));
  await on.push(600, described("names=x"));
  await until(() => on.reported.length === 2, { message: "both answers to be reported" });
  const [first, second] = on.reported.map(({ observed }) => observed);
  const session = on.log.recorded().at(-1)?.event.session;
  expect(first).toMatchObject({ source, session, channel: "a", observed_at: timestampOfMs(250) });
  expect(first?.state.toString()).toBe("names=x");
  expect(first?.ordinals).toMatchObject({ a: 1n, b: 2n });
  expect(second?.ordinals).toMatchObject({ a: 2n, b: 2n });
  const kinds = on.log.recorded().map(({ event }) => event.kind);
  expect(kinds.filter((kind) => kind === "session.described")).toHaveLength(1);
});

it("reports it when all before it is in the log, and keeps nothing waiting for that", async () => {
  const blocked = Promise.withResolvers<void>();
  await using on = await stage(() => blocked.promise);
  await on.push(0, dialled);
  await on.push(10, frame("a", "1 one"));
  await on.push(300, described("names=x"));
  await on.push(310, frame("a", "2 two"));
  expect(on.reported).toEqual([]);
  blocked.resolve();
  await until(() => on.reported.length === 1, { message: "the answer to be reported" });
  const { observed, inLog } = on.reported[0] ?? { observed: undefined, inLog: 0 };
  expect(observed?.ordinals).toMatchObject({ a: 1n });
  const before = on.log.stored.findIndex(({ written }) => written.cursor.ordinals.a === 1);
  expect(inLog).toBeGreaterThan(before);
});

it("reports nothing of an answer that overtook frames which are held back", async () => {
  await using on = await stage();
  await on.push(0, dialled);
  await on.push(10, frame("a", "1 one"));
  await on.recording.advance(timestampOfMs(300));
  await on.push(310, frame("b", "2 two"));
  await on.push(320, described("names=x"));
  await on.recording.advance(timestampOfMs(600));
  await on.push(700, described("names=y"));
  await until(() => on.reported.length === 1, { message: "the second answer to be reported" });
  expect(on.reported[0]?.observed.state.toString()).toBe("names=y");
});

it("publishes on the source's subject, and never throws", () => {
  const observed = { source, session: "S", channel: "v1", state: Buffer.from("x"), ordinals: { v1: 3n } };
  const published: [string, Observed][] = [];
  const publish = (subject: string, bytes: Uint8Array) => void published.push([subject, Observed.decode(bytes)]);
  observedPublisher({ publish } as Parameters<typeof observedPublisher>[0])(Observed.fromPartial(observed));
  expect(published).toMatchObject([[observedSubject(source), observed]]);
  const closed = () => {
    throw new Error("closed");
  };
  observedPublisher({ publish: closed })(Observed.fromPartial(observed));
});
