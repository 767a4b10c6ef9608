import { status } from "@grpc/grpc-js";
import type { FakeCall } from "@tapedeck/fakes/rkt/calls";
import { type Poll, readPolls } from "@tapedeck/fakes/rkt/polls";
import type { InventoryKind, RecordedUpstream } from "@tapedeck/fakes/rkt/recording";
import { type FakeRkt, type FakeRktOptions, startFakeRkt } from "@tapedeck/fakes/rkt/server";
import type { Timestamp } from "@tapedeck/proto/google/protobuf/timestamp";
import { AppState, type Pod, PodState } from "@tapedeck/proto/rkt/v1alpha/rkt";
import type { LogReader, RecordedEvent } from "@tapedeck/shared/log/log";
import { type SourceName, sourceName } from "@tapedeck/shared/source";
import { startTestNats, type TestNats } from "@tapedeck/shared/testing/nats";
import { until } from "@tapedeck/shared/testing/until";
import { openTestLog, spillFolder } from "../faults/processes.ts";
import { sourceEvents } from "../faults/recorded-events.ts";
import { type ServiceProcess, startServiceProcess } from "../faults/service-process.ts";
import { metric } from "./ingest-harness.ts";
import { Observations } from "./rkt-observations.ts";

export const kinds = ["pods", "images"] as const;

/** The delay between two polls. */
const intervalMs = 20;
/** The clocks of two processes differ by less, and polls are further apart. */
const clockMs = 5;

/**
 * The answer of a host whose list of pods is held: the host and its clock stand still, so it is not observed either. The
 * fake could only repeat what the last list said. The undisturbed host was never observed in that state a second time,
 * and rkt shows some states only once: a pod that died before it wrote its pid is RUNNING with apps that have exited in the
 * one answer that waited for it, and EXITED in the next.
 */
const standsStill = { error: { code: status.DEADLINE_EXCEEDED, details: "the host stands still" } };

/** A fake rkt host that records when each row of its recording was the newest. */
export type Host = AsyncDisposable & {
  readonly name: string;
  readonly source: SourceName;
  readonly fake: FakeRkt;
  /** Rows of the recording. */
  readonly rows: { readonly [K in InventoryKind]: number };
  /** The rows of the pods. */
  readonly pods: readonly Poll<"pods">[];
  /** The rows of the pods that each connection has read. */
  readonly observations: Observations;
  /**
   * The row (from 1) that the last observation before that moment returned; 0: none yet. A repeated row keeps its
   * number.
   */
  readonly rowAt: (kind: InventoryKind, at: Timestamp) => number;
  /** Plays on until the row before this one is reported, and no further (nor back). Past the last row: to the end. */
  readonly playTo: (kind: InventoryKind, row: number) => void;
  /** Whether it has played as far as allowed and the next poll hangs (or the last row is reported repeatedly). */
  readonly stands: () => boolean;
  /** Called when one pod or image is inspected; then not again. */
  onInspect: (() => void) | undefined;
};

export async function startHost(name: string, recording: RecordedUpstream, options: Partial<FakeRktOptions> = {}) {
  const { pods, images } = readPolls(recording);
  const rows = { pods: pods.length, images: images.length };
  const answered: { readonly [K in InventoryKind]: { readonly at: number; readonly before: number }[] } = {
    pods: [],
    images: [],
  };
  const held: { [K in InventoryKind]?: { readonly row: number; readonly open: () => void } } = {};
  const observations = new Observations();
  const fake = await startFakeRkt({ recording, repeatOnReconnect: true, ...options, lie: noted });

  function noted(call: FakeCall) {
    if (call.rpc === "ListPods") {
      answered.pods.push({ at: Date.now(), before: fake.played.pods });
      observations.answered(call.peer, { reported: fake.played.pods, answers: fake.polls.pods });
    }
    if (call.rpc === "ListImages") answered.images.push({ at: Date.now(), before: fake.played.images });
    if (call.rpc === "InspectPod" && isFrozen()) return standsStill;
    if (call.rpc === "InspectPod" || call.rpc === "InspectImage") {
      host.onInspect?.();
      host.onInspect = undefined;
    }
    return options.lie?.(call);
  }

  const isFrozen = () => held.pods?.row === fake.played.pods + 1 && fake.calls.ListPods.inFlight > 0;

  const host: Host = {
    name,
    source: sourceName({ workspace: "default", developer: name, project: "host", upstream: "rkt" }),
    fake,
    rows,
    pods,
    observations,
    rowAt(kind, { seconds, nanos }) {
      const ms = Number(seconds) * 1_000 + nanos / 1_000_000;
      const next = answered[kind].find(({ at }) => at - clockMs > ms);
      return next === undefined ? fake.played[kind] : next.before;
    },
    playTo(kind, row) {
      const before = held[kind];
      const next = Math.max(row, before?.row ?? fake.played[kind] + 1);
      if (next > rows[kind]) delete held[kind];
      else held[kind] = { row: next, open: fake.hold(kind, next) };
      before?.open();
    },
    stands() {
      return kinds.every((kind) => {
        const gate = held[kind];
        if (gate === undefined) return fake.played[kind] === rows[kind];
        const rpc = kind === "pods" ? "ListPods" : "ListImages";
        return fake.played[kind] === gate.row - 1 && fake.calls[rpc].inFlight > 0;
      });
    },
    onInspect: undefined,
    [Symbol.asyncDispose]: () => fake[Symbol.asyncDispose](),
  };
  return host;
}

/** A separate log; hosts and ingest processes come and go. */
export type RktHarness = AsyncDisposable & {
  readonly nats: TestNats;
  readonly log: LogReader;
  /** Starts an ingest on these hosts. `settings` of the hosts as in tapedeck.yaml. */
  ingest(hosts: readonly Host[], settings?: HostSettings): Promise<ServiceProcess>;
  events(host: Host): Promise<readonly RecordedEvent[]>;
};

export type HostSettings = (host: Host) => Readonly<Record<string, string>>;

export async function rktHarness(): Promise<RktHarness> {
  await using cleanup = new AsyncDisposableStack();
  const nats = cleanup.use(await startTestNats({ syncAlways: true }));
  const log = cleanup.use(await openTestLog(nats.url));
  const readers = new Map<Host, ReturnType<typeof sourceEvents>>();
  const owned = cleanup.move();
  return {
    nats,
    log: log.reader,
    async ingest(hosts, settings = () => ({})) {
      const sources = hosts.map((host) => ({
        upstream: "rkt",
        developer: host.name,
        address: host.fake.address,
        redact: "off",
        interval: `${intervalMs}ms`,
        load: 100,
        ...settings(host),
      }));
      return owned.use(
        await startServiceProcess("ingest", {
          TAPEDECK_NATS_URL: nats.url,
          TAPEDECK_SOURCES: JSON.stringify(sources),
          TAPEDECK_INGEST_SPILL_DIR: await spillFolder(),
        }),
      );
    },
    events(host) {
      const events = readers.get(host) ?? sourceEvents(log.reader, host.source);
      readers.set(host, events);
      return events();
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Resolves when all observations are in the log. */
export async function recorded(ingest: ServiceProcess): Promise<void> {
  const isEmpty = async () => (await metric(ingest, "tapedeck_ingest_spill_items")) === 0;
  await until(isEmpty, { message: "all that was seen to be in the log" });
}

/** Waits for so many more polls, whatever their answers. */
export async function pollsLater({ fake }: Host, polls = 3): Promise<void> {
  const goal = { pods: fake.polls.pods + polls, images: fake.polls.images + polls };
  await until(() => kinds.every((kind) => fake.polls[kind] >= goal[kind]), { message: `${polls} more polls` });
}

/** Returns the pod as ended with exit code 7, which is accepted from rkt at once. */
export function failed(pod: Pod): Pod {
  const apps = pod.apps.map((app) => ({ ...app, state: AppState.APP_STATE_EXITED, exit_code: 7 }));
  return { ...pod, apps, state: PodState.POD_STATE_EXITED, cgroup: "" };
}
