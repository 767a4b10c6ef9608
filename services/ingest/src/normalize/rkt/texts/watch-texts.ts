import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { HostDetail_TextEnd, TimeSource } from "@tapedeck/proto/tapedeck/v1/event";
import type { Look, Look_Text } from "@tapedeck/proto/tapedeck/v1/look";
import { podEntries } from "@tapedeck/shared/rkt/entries";
import type { Moment } from "@tapedeck/shared/time/moment";
import { linesOf, messageOf, momentOfNanos, nanosOfMoment, timeOf } from "@tapedeck/tap/rkt/text-lines";
import type { Fact } from "../../fact.ts";
import { firstLine, name, summary, unreadable } from "../../facts.ts";
import { inParts } from "../../in-parts.ts";
import type { ObservationOutcome, Observed, Watcher, WatchOptions, YieldPoint } from "../../inventory/observing.ts";
import { yieldPoint } from "../../inventory/observing.ts";
import { maskedLines, responseType } from "./masked-lines.ts";
import { type GivenLine, textMemory } from "./text-memory.ts";

export type TextsOptions = Pick<WatchOptions, "mask" | "maskAfter"> & {
  /** After so many lines what is known of all texts is told. Default 10,000. */
  readonly describeEvery?: number;
};

const channel = "logs";
/** A description waits for the end of a secret of several lines: it says nothing of that. So many lines at most. */
const mostWaited = 500;
/** Longer than a list can miss a pod that is there. */
const forgetGoneSeconds = 3_600n;

/**
 * Watches what the pods say: `log.written` for each line on channel "logs", once each (text-memory.ts says how). Looks at
 * channel "pods" tell it which pods are gone; it can do without.
 */
export function watchTexts({ mask, maskAfter, describeEvery = 10_000 }: TextsOptions): Watcher<Observed> {
  const memory = textMemory();
  const masked = maskedLines({ mask, maskAfter });
  const goneSince = new Map<string, Moment>();
  let lines = 0;
  let heardAt: Moment | undefined;
  let complaint: string | undefined;

  function* read({ pod: podId, app: appName, bytes, reopened }: Look_Text, at: Moment): Telling {
    const [pod, app] = [name(podId), name(appName)];
    if (reopened) memory.mayRepeat(pod, app);
    const given = linesOf(bytes);
    if (given === undefined) {
      const original = { type: responseType, ...mask(responseType, bytes) };
      return yield { what: "frame", original, facts: [unreadable(bytes, "not a GetLogsResponse")], observedAt: at };
    }
    for (const bytesOfLine of given) {
      const { text, others, bytes: maskedBytes, redacted } = masked.mask({ pod, app }, bytesOfLine);
      const line = { pod, app, text, time: timeOf(text) ?? memory.lastTime(pod, app) };
      const known = memory.take(line, others);
      masked.took({ pod, app }, known ?? text);
      if (known !== undefined) yield yieldPoint;
      else yield toldLine(line, { type: responseType, bytes: maskedBytes, redacted }, at);
    }
  }

  function description(at: Moment): readonly ObservationOutcome[] {
    forgetGone(at);
    const ends = memory.ends();
    const parts = inParts(ends, (end) => HostDetail_TextEnd.encode(end).finish().length);
    const line = summary(`how far ${memory.pods().size} pods' texts are recorded`);
    return parts.map((texts, part) => {
      const value = { part, parts: parts.length, entries: ends.length, texts: [...texts], gone: [], returned: [] };
      const fact: Fact = { kind: "host.described", summary: line, detail: { $case: "host", value } };
      return { what: "frame", facts: [fact], observedAt: at };
    });
  }

  function forgetGone(now: Moment): void {
    for (const [pod, since] of goneSince) {
      if (now.seconds - since.seconds < forgetGoneSeconds) continue;
      masked.forget(pod, memory.forget(pod));
      goneSince.delete(pod);
    }
  }

  function list(pods: Uint8Array, at: Moment): void {
    const known = memory.pods();
    if (known.size === 0) return;
    const listed = new Set(podEntries(pods)?.map(({ id }) => id));
    for (const pod of known) {
      if (listed.has(pod)) goneSince.delete(pod);
      else if (!goneSince.has(pod)) goneSince.set(pod, at);
    }
  }

  function gap(reason: string, at: Moment): readonly ObservationOutcome[] {
    if (reason === complaint) return [];
    complaint = reason;
    return [{ what: "gap", reason, after: heardAt, until: at }];
  }

  function* look(seen: Look["seen"], at: Moment): Telling {
    if (seen?.$case === "failed") return yield* gap(seen.value.message, at);
    if (seen?.$case !== "text") return;
    complaint = undefined;
    heardAt = at;
    for (const one of read(seen.value, at)) {
      if (one.what === "frame") lines += 1;
      yield one;
    }
    if (lines < describeEvery || (masked.isOpen() && lines < describeEvery + mostWaited)) return;
    lines = 0;
    yield* description(at);
  }

  return {
    resume(event) {
      if (event.channel !== channel) return;
      if (event.kind === "log.written") {
        lines++;
        const line = recordedLine(event);
        if (line === undefined) return;
        memory.recorded(line);
        masked.recorded(line, line.text);
      } else if (event.kind === "host.described" && event.detail?.$case === "host") {
        lines = 0;
        memory.restore(event.detail.value.texts, event.detail.value.part);
      }
    },
    connected: () => memory.mayRepeat(),
    observe: (of, { seen }, at) => {
      if (of === channel) return look(seen, at);
      if (of === "pods" && seen?.$case === "all") list(seen.value, at);
      return [];
    },
  };
}

type Telling = Generator<ObservationOutcome | YieldPoint, void>;

function toldLine(line: GivenLine, original: Frame["original"] & {}, observedAt: Moment): Frame {
  return { what: "frame", original, facts: [written(line)], observedAt };
}

type Frame = Extract<ObservationOutcome, { what: "frame" }>;

function written({ pod, app, text, time }: GivenLine): Fact {
  return {
    kind: "log.written",
    subject: app === "" ? pod : `${pod}/${app}`,
    summary: summary(firstLine(messageOf(text))),
    ...(time !== 0n && { occurredAt: momentOfNanos(time) }),
    detail: {
      $case: "text",
      value: { text, level: "", task: "", subtask: "", pod, container: app, noise: false },
    },
  };
}

function recordedLine({ detail, occurred_at, time_source }: Event): GivenLine | undefined {
  if (detail?.$case !== "text") return undefined;
  const { pod, container: app, text } = detail.value;
  const isOwn = occurred_at !== undefined && time_source === TimeSource.TIME_SOURCE_UPSTREAM;
  return { pod, app, text, time: isOwn ? nanosOfMoment(occurred_at) : 0n };
}
