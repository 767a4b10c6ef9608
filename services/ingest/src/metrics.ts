import { Counter, createMetrics, Gauge, type Registry } from "@tapedeck/shared/service/metrics";
import { SourceValues } from "@tapedeck/shared/service/source-values";
import type { SourceName } from "@tapedeck/shared/source";
import { msOfTimestamp } from "@tapedeck/shared/time/timestamp";
import type { SpillState } from "@tapedeck/tap/spill/spill";
import type { DamageState } from "./damage/damage-watch.ts";
import type { SessionRecorderListener } from "./record/pushed-session.ts";
import type { RecordingBound } from "./record/recorder-options.ts";

export type IngestMetrics = {
  readonly registry: Registry;
  readonly listener: (source: SourceName) => SessionRecorderListener;
  /** Recording of a source began or resumed. */
  readonly recordingBegan: (source: SourceName) => void;
  readonly refused: (bound: RecordingBound) => void;
};

/** The values that are read when the metrics are. */
export type IngestGauges = {
  readonly spills: () => Iterable<readonly [SourceName, SpillState]>;
  readonly connected: () => Iterable<readonly [SourceName, boolean]>;
  readonly isRecorded: (source: string) => boolean;
  readonly isFull: () => boolean;
  /** How many workspaces have a log that is as large as it may be. */
  readonly atQuota: () => number;
  /** Undefined before the log was read. */
  readonly damage: () => readonly DamageState[];
};

export function ingestMetrics(gauges: IngestGauges): IngestMetrics {
  const registry = createMetrics("ingest");
  const registers = [registry];
  const recorded = recordedCounts(registry, gauges.isRecorded);
  const refused = new Counter({
    name: "tapedeck_ingest_recordings_refused_total",
    help: "Recordings refused by a bound that an operator has set.",
    labelNames: ["bound"],
    registers,
  });
  sourceGauges(registry, gauges);
  logGauges(registry, gauges);
  return {
    registry,
    listener(source) {
      return {
        frame: (channel, what) => add(recorded.of(source).frames, `${what} ${channel}`),
        published(count) {
          const counts = recorded.of(source);
          counts.events += count;
          counts.batches++;
        },
        onPublishFailure: ({ outcome }) => add(recorded.of(source).failures, outcome),
        unknownChannel() {
          recorded.of(source).unknown++;
        },
        onSeen: (collection, at) => recorded.of(source).lastSeen.set(collection, msOfTimestamp(at) / 1_000),
      };
    },
    recordingBegan(source) {
      recorded.of(source).began++;
    },
    refused: (bound) => refused.inc({ bound }),
  };
}

/** `frames`: by result and channel. `failures`: by outcome. `lastSeen`: by collection. */
type Counts = Record<"events" | "batches" | "began" | "unknown", number> & {
  readonly frames: Map<string, number>;
  readonly failures: Map<string, number>;
  readonly lastSeen: Map<string, number>;
};

function add(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

/** What changes with each event is counted plainly: a counter finds its labels anew each time. */
function recordedCounts(registry: Registry, isRecorded: (source: string) => boolean): SourceValues<Counts> {
  const registers = [registry];
  const none = (): Counts => ({
    events: 0,
    batches: 0,
    began: 0,
    unknown: 0,
    frames: new Map(),
    failures: new Map(),
    lastSeen: new Map(),
  });
  const counts = new SourceValues(none, isRecorded);
  new Counter({
    name: "tapedeck_ingest_frames_total",
    help: "Frames by result (recorded, repeated, unreadable, oversize).",
    labelNames: ["source", "channel", "what"],
    registers,
    collect() {
      this.reset();
      for (const [source, { frames }] of counts) {
        for (const [key, count] of frames) {
          const what = key.slice(0, key.indexOf(" "));
          this.inc({ source, channel: key.slice(what.length + 1), what }, count);
        }
      }
    },
  });
  const plain = (name: string, help: string, of: "events" | "batches" | "began" | "unknown") =>
    new Counter({
      name,
      help,
      labelNames: ["source"],
      registers,
      collect() {
        this.reset();
        for (const [source, { [of]: count }] of counts) if (count > 0) this.inc({ source }, count);
      },
    });
  plain("tapedeck_ingest_events_total", "Events that are in the log.", "events");
  plain("tapedeck_ingest_batches_total", "Publishes that the log acknowledged.", "batches");
  plain("tapedeck_ingest_recordings_total", "Times that recording began or resumed.", "began");
  plain("tapedeck_ingest_unknown_channel_total", "Frames of unknown channels.", "unknown");
  new Counter({
    name: "tapedeck_ingest_publish_failures_total",
    help: "Publishes without a clear acknowledgement.",
    labelNames: ["source", "outcome"],
    registers,
    collect() {
      this.reset();
      for (const [source, { failures }] of counts)
        for (const [outcome, count] of failures) this.inc({ source, outcome }, count);
    },
  });
  new Gauge({
    name: "tapedeck_ingest_heard_timestamp_seconds",
    help: "When a list of a polled source was last seen: seconds since 1970, by the clock of its tap.",
    labelNames: ["source", "collection"],
    registers,
    collect() {
      this.reset();
      for (const [source, { lastSeen }] of counts)
        for (const [collection, at] of lastSeen) this.set({ source, collection }, at);
    },
  });
  return counts;
}

/** The spill and the upstream's connection of each source. */
function sourceGauges(registry: Registry, { spills, connected }: Pick<IngestGauges, "spills" | "connected">): void {
  const registers = [registry];
  new Gauge({
    name: "tapedeck_ingest_spill_bytes",
    help: "What waits to be recorded, in memory and on disk.",
    labelNames: ["source", "where"],
    registers,
    collect() {
      this.reset();
      for (const [source, { memoryBytes, diskBytes }] of spills()) {
        this.set({ source, where: "memory" }, memoryBytes);
        this.set({ source, where: "disk" }, diskBytes);
      }
    },
  });
  new Gauge({
    name: "tapedeck_ingest_spill_items",
    help: "Items that are not in the log yet.",
    labelNames: ["source"],
    registers,
    collect() {
      this.reset();
      for (const [source, { nextIndex, committed }] of spills())
        this.set({ source }, Number(nextIndex - 1n - committed));
    },
  });
  new Gauge({
    name: "tapedeck_ingest_spill_dropped",
    help: "Frames that the spill had no room for.",
    labelNames: ["source"],
    registers,
    collect() {
      this.reset();
      for (const [source, { dropped }] of spills()) this.set({ source }, Number(dropped));
    },
  });
  new Gauge({
    name: "tapedeck_ingest_connected",
    help: "1 while the source's upstream is connected.",
    labelNames: ["source"],
    registers,
    collect() {
      this.reset();
      for (const [source, isConnected] of connected()) this.set({ source }, isConnected ? 1 : 0);
    },
  });
}

/** The state of the log itself. */
function logGauges(
  registry: Registry,
  { isFull, atQuota, damage }: Pick<IngestGauges, "isFull" | "atQuota" | "damage">,
): void {
  const registers = [registry];
  new Gauge({
    name: "tapedeck_ingest_log_full",
    help: "1 while nothing is recorded because the log's disk is full.",
    registers,
    collect() {
      this.set(isFull() ? 1 : 0);
    },
  });
  new Gauge({
    name: "tapedeck_ingest_logs_at_quota",
    help: "Workspaces in which nothing is recorded because their logs are as large as nats.logs allows.",
    registers,
    collect() {
      this.set(atQuota());
    },
  });
  new Gauge({
    name: "tapedeck_ingest_log_lost_events",
    help: "Recorded events that are not in the log any more because its files were damaged.",
    labelNames: ["source"],
    registers,
    collect() {
      this.reset();
      for (const { lost } of damage()) for (const [source, count] of lost) this.set({ source }, count);
    },
  });
  new Gauge({
    name: "tapedeck_ingest_log_checked_position",
    help: "The furthest position up to which the last check of a workspace's log came; 0 before the first one.",
    registers,
    collect() {
      this.set(Math.max(0, ...damage().map(({ checkedSeq }) => checkedSeq)));
    },
  });
  new Gauge({
    name: "tapedeck_ingest_log_check_seconds",
    help: "How long the longest of the last checks of the workspaces' logs took.",
    registers,
    collect() {
      this.set(Math.max(0, ...damage().map(({ seconds }) => seconds)));
    },
  });
}
