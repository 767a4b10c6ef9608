import { Image, ListImagesResponse, ListPodsResponse, Pod } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { LogEntry } from "@tapedeck/proto/skaffold/v1/skaffold";
import { Event as V2Event } from "@tapedeck/proto/skaffold/v2/skaffold";
import { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { Basis, Box, Job, Project, Runner, Target } from "@tapedeck/proto/vagrant/vagrant";
import { kindNoun, kinds, operationKinds } from "@tapedeck/shared/events/kinds";
import { sessionCheck } from "@tapedeck/shared/events/session-check";
import { type SourceName, sourceName, sourceParts } from "@tapedeck/shared/source";
import { searchSeed } from "@tapedeck/shared/testing/searches";
import fc from "fast-check";
import { expect, it } from "vitest";
import { openDatabase } from "../db/database.ts";
import { projectUntil } from "../testing/run-projection.ts";
import { stage, written } from "../testing/stage.ts";
import { rows } from "../testing/tables.ts";
import { folds } from "../views/folds.ts";
import { type Fold, stateItems } from "../views/states/fold.ts";

/*
 * Events that can be decoded, and that the check of imports lets in, with values at and beyond every bound. What a live
 * recorder writes is among them, because it numbers its events itself.
 */

const hostileText = fc.oneof(
  fc.constantFrom(
    "",
    "web",
    "loop",
    "__proto__",
    "constructor",
    "toString",
    "hasOwnProperty",
    "a\0b",
    "\0",
    "{}",
    '"\\',
    "NULL",
    "%s",
    "../..",
    "\u202E",
  ),
  // Not compressible: every character once.
  fc.integer({ min: 1, max: 3_000 }).map((length) => String.fromCodePoint(...range(0x4e00, length))),
  fc.integer({ min: 1, max: 900 }).map((length) => String.fromCodePoint(...range(0x1f300, length))),
  fc.constantFrom("n".repeat(100_000), "李", "é".repeat(250), "é".repeat(251), "n".repeat(500), "n".repeat(501)),
  fc.string({ unit: "binary" }),
);
const int32 = fc.constantFrom(0, 1, 2, -1, 2 ** 31 - 1, -(2 ** 31), 2 ** 31 - 2);
/** Those that the check of imports lets in. */
const counted = fc.constantFrom(0, 1, 2, 3, 2 ** 31 - 1, 2 ** 31 - 2);
const int64 = fc.constantFrom(0n, 1n, -1n, 2n ** 63n - 1n, -(2n ** 63n), 1_763_600_000_000_000_000n);
const uint64 = fc.constantFrom(0n, 1n, 2n ** 53n, 2n ** 64n - 1n);
const time = fc.option(
  fc.record({
    seconds: fc.constantFrom(0n, -62_135_596_800n, 253_402_300_799n, 1_763_600_000n, 1_763_600_001n),
    nanos: fc.constantFrom(0, 1, 999_999_999),
  }),
  { nil: undefined },
);
/** An upstream's own message may say any time. */
const anyTime = fc.oneof(time, fc.record({ seconds: int64, nanos: int32 }));
const texts = fc.dictionary(hostileText, hostileText, { maxKeys: 3 });

function range(from: number, length: number): number[] {
  return Array.from({ length }, (_, index) => from + index);
}

type MessageType = {
  readonly fromPartial: (fields: never) => unknown;
  readonly encode: (message: never) => { finish(): Uint8Array };
};

/** An upstream's message with these fields. */
function original(type: string, message: unknown, fields: Readonly<Record<string, fc.Arbitrary<unknown>>>) {
  const { fromPartial, encode } = message as MessageType;
  return fc
    .record(fields)
    .map((value) => ({ type, bytes: Buffer.from(encode(fromPartial(value as never) as never).finish()) }));
}

const someOf = (one: fc.Arbitrary<unknown>) => fc.array(one, { maxLength: 3 });
const oneOf = (cases: Readonly<Record<string, Readonly<Record<string, fc.Arbitrary<unknown>>>>>) =>
  fc.oneof(
    ...Object.entries(cases).map(([$case, fields]) =>
      fc.record({ $case: fc.constant($case), value: fc.record(fields) }),
    ),
  );

const status = fc.oneof(
  fc.constantFrom("In Progress", "Complete", "Failed", "Succeeded", "Started", "Terminated"),
  hostileText,
);
const configured = fc.record({ build: fc.record({ artifacts: someOf(fc.record({ name: hostileText })) }) });
const skaffoldCases = {
  metaEvent: { entry: hostileText, metadata: configured },
  buildEvent: { artifact: hostileText, status, err: hostileText, errCode: int32 },
  devLoopEvent: { iteration: int32, status },
  deployEvent: { status },
  statusCheckEvent: { status },
  resourceStatusCheckEvent: { resource: hostileText, status },
  fileSyncEvent: { fileCount: int32, image: hostileText, status },
  portEvent: {
    localPort: int32,
    remotePort: int32,
    podName: hostileText,
    containerName: hostileText,
    resourceName: hostileText,
  },
  debuggingContainerEvent: {
    status,
    podName: hostileText,
    containerName: hostileText,
    namespace: hostileText,
    artifact: hostileText,
    debugPorts: fc.dictionary(hostileText, fc.constantFrom(0, 2 ** 32 - 1), { maxKeys: 2 }),
  },
};
const app = fc.record({
  name: hostileText,
  state: int32,
  exit_code: int32,
  image: fc.record({ id: hostileText, name: hostileText, version: hostileText }),
});
const podFields = {
  id: hostileText,
  pid: int32,
  state: int32,
  cgroup: hostileText,
  apps: someOf(app),
  created_at: int64,
  started_at: int64,
  gc_marked_at: int64,
  networks: someOf(fc.record({ name: hostileText, ipv4: hostileText, ipv6: hostileText })),
  annotations: someOf(
    fc.record({ Key: fc.oneof(fc.constant("rkt.kubernetes.io/name"), hostileText), value: hostileText }),
  ),
};
const imageFields = {
  id: hostileText,
  name: hostileText,
  version: hostileText,
  import_timestamp: int64,
  size: int64,
  labels: someOf(fc.record({ Key: hostileText, value: hostileText })),
};
const ref = fc.record({ resource_id: hostileText, name: hostileText });
const resourceFields = {
  resource_id: hostileText,
  name: hostileText,
  path: hostileText,
  provider: hostileText,
  uuid: hostileText,
};

/** By channel of an upstream. */
const originals: Readonly<Record<string, fc.Arbitrary<{ type: string; bytes: Buffer }>>> = {
  v1: original("proto.LogEntry", LogEntry, {
    timestamp: anyTime,
    entry: hostileText,
    event: oneOf(skaffoldCases).map((event_type) => ({ event_type })),
  }),
  v2: original("proto.v2.Event", V2Event, {
    timestamp: anyTime,
    event_type: oneOf({
      metaEvent: { metadata: configured },
      buildSubtaskEvent: { artifact: hostileText, step: fc.oneof(fc.constant("Build"), hostileText), status },
      statusCheckSubtaskEvent: { resource: hostileText, status },
      taskEvent: { task: hostileText, iteration: int32, status },
      portEvent: { localPort: int32, remotePort: int32, podName: hostileText },
    }),
  }),
  logs: original("proto.LogEntry", LogEntry, { entry: hostileText }),
  pods: fc.oneof(
    original("v1alpha.Pod", Pod, podFields),
    original("v1alpha.ListPodsResponse", ListPodsResponse, { pods: someOf(fc.record(podFields)) }),
  ),
  images: fc.oneof(
    original("v1alpha.Image", Image, imageFields),
    original("v1alpha.ListImagesResponse", ListImagesResponse, { images: someOf(fc.record(imageFields)) }),
  ),
  jobs: original("hashicorp.vagrant.Job", Job, {
    id: hostileText,
    state: int32,
    queue_time: anyTime,
    assign_time: anyTime,
    ack_time: anyTime,
    cancel_time: anyTime,
    complete_time: anyTime,
    expire_time: anyTime,
  }),
  resources: fc.oneof(
    original("hashicorp.vagrant.Target", Target, { ...resourceFields, state: int32, project: ref }),
    original("hashicorp.vagrant.Project", Project, resourceFields),
    original("hashicorp.vagrant.Basis", Basis, resourceFields),
    original("hashicorp.vagrant.Box", Box, { ...resourceFields, version: hostileText, directory: hostileText }),
    original("hashicorp.vagrant.Runner", Runner, {
      id: hostileText,
      components: someOf(fc.record({ type: int32, name: hostileText })),
    }),
  ),
};
const channels = { skaffold: ["v1", "v2", "logs"], rkt: ["pods", "images"], vagrant: ["jobs", "resources"] } as const;

const details = oneOf({
  session_detail: { labels: texts, upstream_version: hostileText, reason: hostileText },
  loop: { iteration: int32 },
  build: { artifact: hostileText, target_platforms: hostileText, cache_hit: fc.boolean() },
  host: { part: counted, parts: counted },
  pod: { phase: fc.constantFrom("removed", "never-ran", "running"), removed: fc.boolean() },
  app: { exit_code: fc.option(int32, { nil: undefined }) },
  job: {
    operation: hostileText,
    command: hostileText,
    args: someOf(hostileText),
    state: hostileText,
    runner: hostileText,
  },
  command: { command: hostileText, exit_code: int32, succeeded: fc.boolean() },
  thing: { kind: fc.constantFrom("target", "project", "basis", "box", "runner", "other"), removed: fc.boolean() },
  upstream: { address: hostileText, reason: hostileText, code: int32 },
  gap: { channel: hostileText, reason: hostileText },
  port: { local_port: int32, remote_port: int32 },
  debug: { ports: fc.dictionary(hostileText, fc.constant(2 ** 32 - 1), { maxKeys: 2 }) },
});

const steps = ["started", "succeeded", "failed", "canceled", "cached", "finished", "exited", "lost"];
const hostileKinds = fc.oneof(
  fc.constantFrom(...kinds),
  fc.tuple(fc.constantFrom(...operationKinds), fc.constantFrom(...steps)).map(([noun, verb]) => `${noun}.${verb}`),
);

function hostileEvents(upstream: keyof typeof channels): fc.Arbitrary<readonly Partial<Event>[]> {
  const one = fc.constantFrom(...channels[upstream], "tapedeck").chain((channel) =>
    fc.record({
      channel: fc.constant(channel),
      kind: hostileKinds,
      subject: hostileText,
      summary: hostileText,
      outcome: fc.integer({ min: 0, max: 4 }),
      time_source: fc.integer({ min: 0, max: 3 }),
      occurred_at: time,
      not_before: time,
      observed_at: time,
      redacted: counted,
      injected: fc.boolean(),
      error: fc.option(fc.record({ code: hostileText, message: hostileText, suggestions: fc.constant([]) }), {
        nil: undefined,
      }),
      operation: fc.option(
        fc.record({
          kind: fc.constantFrom(...operationKinds),
          subject: hostileText,
          runner: counted,
          loop: counted,
          instance: fc.option(hostileText, { nil: undefined }),
        }),
        { nil: undefined },
      ),
      detail: fc.option(details, { nil: undefined }),
      original: fc.option(
        fc
          .tuple(originals[channel] ?? fc.constant({ type: "", bytes: Buffer.alloc(0) }), uint64)
          .map(([message, size]) => ({
            ...message,
            size: size > 1n ? BigInt(message.bytes.length) : size + BigInt(message.bytes.length),
            sha256: Buffer.alloc(0),
            head: Buffer.alloc(0),
          })),
        { nil: undefined },
      ),
    }),
  );
  return fc.array(one, { minLength: 20, maxLength: 60 }) as fc.Arbitrary<readonly Partial<Event>[]>;
}

/** Those that the check of imports lets in as the events of a session, numbered. */
function letIn(source: SourceName, session: string, fields: readonly Partial<Event>[]): readonly Event[] {
  const { upstream } = sourceParts(source);
  const expected = { session, source, channels: channels[upstream as keyof typeof channels] };
  const begun = { channel: "tapedeck", kind: "session.started" };
  let kept: readonly Event[] = [];
  let check = sessionCheck(expected);
  const ordinals = new Map<string, bigint>();
  for (const one of [begun, ...fields]) {
    const { channel = "" } = one;
    const ordinal = (ordinals.get(channel) ?? 0n) + 1n;
    const id = `${channel === "tapedeck" ? source : session}.${channel}.${ordinal}`;
    const event = Event.decode(
      Event.encode(
        Event.fromPartial({ ...one, id, source, session, ordinal, frame_ordinal: ordinal } as never),
      ).finish(),
    );
    if (check.next(event) === undefined) {
      ordinals.set(channel, ordinal);
      kept = [...kept, event];
    } else {
      // Nothing more may be asked after a problem.
      check = sessionCheck(expected);
      for (const before of kept) check.next(before);
    }
  }
  return kept;
}

/** Reads what ReadState serves of the events' state. */
function served(upstream: keyof typeof channels, events: readonly Event[]): void {
  const fold: Fold = folds[upstream];
  const state = events.reduce((before, event) => fold.evolve(before, event), fold.initial);
  for (const name of Object.keys(fold.collections)) stateItems(fold, name, JSON.parse(JSON.stringify(state)));
}

it("no event that can be recorded stops the tables, is set aside, or keeps a state from being served", async () => {
  await using on = await stage();
  await using tables = openDatabase({ url: on.databaseUrl, connections: 1 });
  let session = 0;
  let applied = 0;
  const seen = new Set<string>();
  const properties = Object.keys(channels).map((upstream) => {
    const source = sourceName({ workspace: "acme", developer: "eve", project: "shop", upstream });
    return fc.asyncProperty(hostileEvents(upstream as keyof typeof channels), async (fields) => {
      session += 1;
      const events = letIn(source, `01KFFFFFFFFFFFFFFFFFFFF${String(session).padStart(3, "0")}`, fields);
      await projectUntil(on.databaseUrl, on.log.reader, await written(on, events));
      applied += events.length;
      for (const { kind } of events) seen.add(kindNoun(kind));
      expect(await rows(tables, "set_aside_events")).toEqual([]);
      served(upstream as keyof typeof channels, events);
    });
  });
  for (const property of properties) await fc.assert(property, { numRuns: 12, seed: searchSeed, endOnFailure: true });
  expect(applied).toBeGreaterThan(500);
  expect(seen.size).toBeGreaterThan(20);
});
