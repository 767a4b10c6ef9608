import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { HostDetail_TextEnd, TimeSource } from "@tapedeck/proto/tapedeck/v1/event";
import type { Observation, Observation_Text } from "@tapedeck/proto/tapedeck/v1/observation";
import { podEntries } from "@tapedeck/shared/rkt/entries";
import { nanosOfTimestamp, type Timestamp, timestampOfNanos } from "@tapedeck/shared/time/timestamp";
import { linesOf, messageOf, timeOf } from "@tapedeck/tap/rkt/text-lines";
import type { Fact } from "../../fact.ts";
import { firstLine, name, summary, unreadable } from "../../facts.ts";
import { describedInParts } from "../../inventory/description.ts";
import { DescriptionDue } from "../../inventory/description-due.ts";
import type { FrameOutcome } from "../../inventory/inventory-rules.ts";
import type { ObservationOutcome, Observed, Outcomes, Watcher, WatcherOptions } from "../../inventory/observing.ts";
import { yieldPoint } from "../../inventory/observing.ts";
import { MaskedLines, responseType } from "./masked-lines.ts";
import { type ReceivedLine, TextMemory } from "./text-memory.ts";

export type TextsOptions = Pick<WatcherOptions, "mask" | "maskAfter"> & {
  /** Lines after which all that is known of the logs is described. Default 10,000. */
  readonly describeEvery?: number;
};

const channel = "logs";
/** A description does not hold a secret of several lines, so it waits for the end of one: for this many lines at most. */
const maxWaited = 500;
/** Longer than a list can lack a pod that is present. */
const forgetMissingSeconds = 3_600n;

/**
 * Observes the logs of pods: `log.written` for each line on channel "logs", once each (text-memory.ts explains how).
 * Observations of channel "pods" show which pods are gone; without them it only remembers more.
 */
export class TextsWatcher implements Watcher<Observed> {
  readonly #mask: TextsOptions["mask"];
  readonly #memory = new TextMemory();
  readonly #masked: MaskedLines;
  readonly #due: DescriptionDue;
  readonly #missingSince = new Map<string, Timestamp>();
  #observedAt: Timestamp | undefined;
  /** The last reported reason for which no lines come. */
  #outage: string | undefined;

  constructor({ mask, maskAfter, describeEvery = 10_000 }: TextsOptions) {
    this.#mask = mask;
    this.#masked = new MaskedLines({ mask, maskAfter });
    this.#due = new DescriptionDue(describeEvery);
  }

  observe(of: string, { result }: Observation, at: Timestamp): Observed {
    if (of === channel) return this.#observeLogs(result, at);
    if (of === "pods" && result?.$case === "all") this.#podsListed(result.value, at);
    return [];
  }

  connected(): void {
    this.#memory.mayRepeat();
  }

  resume(event: Event): void {
    if (event.channel !== channel) return;
    if (event.kind === "log.written") {
      this.#due.resume(event);
      const line = recordedLine(event);
      if (line === undefined) return;
      this.#memory.recorded(line);
      this.#masked.recorded(line, line.text);
    } else if (event.kind === "inventory.described" && event.detail?.$case === "host") {
      this.#due.resume(event);
      this.#memory.restore(event.detail.value.texts, event.detail.value.part);
    }
  }

  *#observeLogs(result: Observation["result"], at: Timestamp): Outcomes {
    if (result?.$case === "failed") return yield* this.#gap(result.value.message, at);
    if (result?.$case !== "text") return;
    this.#outage = undefined;
    this.#observedAt = at;
    for (const outcome of this.#lines(result.value, at)) {
      if (outcome.what !== "yield") this.#due.count(outcome);
      yield outcome;
    }
    if (!this.#due.isDue(at, this.#masked.isOpen ? maxWaited : 0)) return;
    for (const part of this.#description(at)) {
      this.#due.count(part);
      yield part;
    }
  }

  *#lines({ pod: podId, app: appName, bytes, reopened }: Observation_Text, at: Timestamp): Outcomes {
    const [pod, app] = [name(podId), name(appName)];
    if (reopened) this.#memory.mayRepeat(pod, app);
    const lines = linesOf(bytes);
    if (lines === undefined) {
      const original = { type: responseType, ...this.#mask(responseType, bytes) };
      return yield { what: "frame", original, facts: [unreadable(bytes, "not a GetLogsResponse")], observedAt: at };
    }
    for (const bytesOfLine of lines) {
      const { text, others, ...masked } = this.#masked.mask({ pod, app }, bytesOfLine);
      const line = { pod, app, text, time: timeOf(text) ?? this.#memory.lastTime(pod, app) };
      const known = this.#memory.take(line, others);
      this.#masked.took({ pod, app }, known ?? text);
      if (known !== undefined) yield yieldPoint;
      else {
        const original = { type: responseType, bytes: masked.bytes, redacted: masked.redacted };
        yield { what: "frame", original, facts: [written(line)], observedAt: at };
      }
    }
  }

  #gap(reason: string, at: Timestamp): readonly ObservationOutcome[] {
    if (reason === this.#outage) return [];
    this.#outage = reason;
    return [{ what: "gap", reason, after: this.#observedAt, until: at }];
  }

  #description(at: Timestamp): readonly FrameOutcome[] {
    this.#forgetMissing(at);
    return describedInParts(
      {
        entries: this.#memory.ends(),
        bytesOf: (end) => HostDetail_TextEnd.encode(end).finish().length,
        summary: summary(`how far ${this.#memory.pods.size} pods' texts are recorded`),
        detailOf: (texts) => ({ texts: [...texts] }),
      },
      at,
    );
  }

  #forgetMissing(now: Timestamp): void {
    for (const [pod, since] of this.#missingSince) {
      if (now.seconds - since.seconds < forgetMissingSeconds) continue;
      this.#masked.forget(pod, this.#memory.forget(pod));
      this.#missingSince.delete(pod);
    }
  }

  #podsListed(pods: Uint8Array, at: Timestamp): void {
    const known = this.#memory.pods;
    if (known.size === 0) return;
    const listed = new Set(podEntries(pods)?.map(({ id }) => id));
    for (const pod of known) {
      if (listed.has(pod)) this.#missingSince.delete(pod);
      else if (!this.#missingSince.has(pod)) this.#missingSince.set(pod, at);
    }
  }
}

function written({ pod, app, text, time }: ReceivedLine): Fact {
  return {
    kind: "log.written",
    subject: app === "" ? pod : `${pod}/${app}`,
    summary: summary(firstLine(messageOf(text))),
    ...(time !== 0n && { occurredAt: timestampOfNanos(time) }),
    detail: {
      $case: "text",
      value: { text, level: "", task: "", subtask: "", pod, container: app, noise: false },
    },
  };
}

function recordedLine({ detail, occurred_at, time_source }: Event): ReceivedLine | undefined {
  if (detail?.$case !== "text") return undefined;
  const { pod, container: app, text } = detail.value;
  const isOwn = occurred_at !== undefined && time_source === TimeSource.TIME_SOURCE_UPSTREAM;
  return { pod, app, text, time: isOwn ? nanosOfTimestamp(occurred_at) : 0n };
}
