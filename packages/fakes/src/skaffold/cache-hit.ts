import { LogEntry } from "@tapedeck/proto/skaffold/v1/skaffold";
import { Event } from "@tapedeck/proto/skaffold/v2/skaffold";
import type { RecordedMessage, RecordedUpstream } from "./recording.ts";

/**
 * A recording in which the first artifact that is built well after a moment is found in the cache: v2 reports a cache hit,
 * and no build is reported, until the next dev loop. Real recordings have no such case.
 */
export function withCacheHit(recording: RecordedUpstream, from: number): RecordedUpstream {
  const { v1, v2, logs } = recording.messages;
  const miss = v2.find((message) => message.at >= from && isCacheMiss(message.bytes) && !failsToBuild(v1, message));
  const missed = miss === undefined ? undefined : Event.decode(miss.bytes).event_type;
  if (miss === undefined || missed?.$case !== "buildSubtaskEvent") return recording;
  const { artifact, task_id: task } = missed.value;
  const loop = v1.findLast(({ at, bytes }) => at <= miss.at && isLoopStart(bytes))?.at ?? from;
  const next = v1.find(({ at, bytes }) => at > miss.at && isLoopStart(bytes))?.at ?? Number.POSITIVE_INFINITY;
  const isInLoop = ({ at }: RecordedMessage) => at >= loop && at < next;
  return {
    ...recording,
    messages: {
      logs,
      v1: v1.filter((message) => !(isInLoop(message) && builtIn(message.bytes) === artifact)),
      v2: v2.flatMap((message) => (isInLoop(message) ? hit(message, artifact, task) : [message])),
    },
  };
}

/** The lookup succeeds; the build's own events are left out. */
function hit(message: RecordedMessage, artifact: string, task: string): RecordedMessage[] {
  const event = Event.decode(message.bytes);
  const said = event.event_type;
  if (said?.$case === "skaffoldLogEvent") {
    const isOfBuild = said.value.task_id === task && said.value.subtask_id === artifact;
    return isOfBuild ? [] : [message];
  }
  if (said?.$case !== "buildSubtaskEvent") return [message];
  const { value } = said;
  if (value.artifact !== artifact || value.task_id !== task) return [message];
  if (value.step !== "Cache") return [];
  if (value.status !== "Failed") return [message];
  const event_type = { $case: "buildSubtaskEvent", value: { ...value, status: "Succeeded" } } as const;
  return [{ ...message, bytes: Buffer.from(Event.encode({ ...event, event_type }).finish()) }];
}

function isCacheMiss(bytes: Buffer): boolean {
  const event = Event.decode(bytes).event_type;
  return event?.$case === "buildSubtaskEvent" && event.value.step === "Cache" && event.value.status === "Failed";
}

/** Whether the next report about its build's end is a failure. */
function failsToBuild(v1: readonly RecordedMessage[], { at, bytes }: RecordedMessage): boolean {
  const missed = Event.decode(bytes).event_type;
  const artifact = missed?.$case === "buildSubtaskEvent" ? missed.value.artifact : "";
  const builds = v1.flatMap((message) => {
    const event = LogEntry.decode(message.bytes).event?.event_type;
    return message.at >= at && event?.$case === "buildEvent" ? [event.value] : [];
  });
  return builds.find((build) => build.artifact === artifact && build.status !== "In Progress")?.status === "Failed";
}

function builtIn(bytes: Buffer): string | undefined {
  const event = LogEntry.decode(bytes).event?.event_type;
  return event?.$case === "buildEvent" ? event.value.artifact : undefined;
}

function isLoopStart(bytes: Buffer): boolean {
  const event = LogEntry.decode(bytes).event?.event_type;
  return event?.$case === "devLoopEvent" && event.value.status === "In Progress";
}
