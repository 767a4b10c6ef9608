import { status } from "@grpc/grpc-js";
import {
  Event as EventV1,
  LogEntry,
  State as StateV1,
  TriggerRequest,
  UserIntentRequest,
} from "@tapedeck/proto/skaffold/v1/skaffold";
import { Event as EventV2, State as StateV2 } from "@tapedeck/proto/skaffold/v2/skaffold";
import type { ApiVersion, SkaffoldChannel } from "@tapedeck/shared/skaffold/methods";
import { timestampNow } from "@tapedeck/shared/time/timestamp";
import type { ControlAnswer, ControlName, FakeCall } from "./calls.ts";
import type { RecordedState, RecordedUpstream } from "./recording.ts";
import type { RecordedCall } from "./recording-calls.ts";

const flags = { AutoBuild: "build", AutoSync: "sync", AutoDeploy: "deploy" } as const;
type Flag = (typeof flags)[keyof typeof flags];

/** GetState and control calls: as recorded where the recording has them, otherwise by the rules of the real server. */
export class Answers {
  readonly #recording: RecordedUpstream;
  readonly #calls: FakeCall[] = [];
  /** Recorded calls that were not made here yet. */
  readonly #unmade: RecordedCall[];
  /** The number of recorded calls up to the latest one that was made here. */
  #made = 0;
  readonly #flags: Record<ApiVersion, Record<Flag, boolean>>;
  /** Flags that calls have changed here and not in the recording. */
  readonly #changed: Record<ApiVersion, Partial<Record<Flag, boolean>>> = { v1: {}, v2: {} };

  constructor(recording: RecordedUpstream) {
    this.#recording = recording;
    this.#unmade = [...recording.calls];
    this.#flags = { v1: firstFlags(recording, "v1"), v2: firstFlags(recording, "v2") };
  }

  /** Control and Handle calls so far, in the order of arrival. */
  get calls(): readonly FakeCall[] {
    return this.#calls;
  }

  control(api: ApiVersion, name: ControlName, method: string, request: Buffer): FakeCall {
    const found = this.#takeRecorded(method, request);
    const ruled = this.#byRule(api, name, request, found !== undefined);
    const given = found === undefined ? ruled : found.answer;
    const call = { api, name, method, request, ...(given && { answer: given }), recorded: found !== undefined };
    this.#calls.push(call);
    return call;
  }

  state(api: ApiVersion, played: number, now: number): Buffer {
    const { calls, messages, states } = this.#recording;
    // If no call was made here, the recorded calls count as made by another client at their times.
    const nextCall = this.#made > 0 ? (calls[this.#made]?.at ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY;
    const length = messages[api].length;
    const eventsBefore = (state: RecordedState) => Math.min(state.seenAfter, length);
    const past = states.filter((each) => each.api === api && eventsBefore(each) <= played && each.at < nextCall);
    // Several states may belong to the same number of events: calls or the other API's events are between them.
    const latest = past.filter((each) => eventsBefore(each) === eventsBefore(past.at(-1) as RecordedState));
    const lastCall = calls[this.#made - 1]?.at ?? 0;
    const sinceCall = latest.some(({ at }) => at > lastCall) ? latest.filter(({ at }) => at > lastCall) : latest;
    const state = sinceCall.findLast(({ at }) => at < now) ?? sinceCall[0];
    return withFlags(api, state?.bytes ?? Buffer.alloc(0), this.#changed[api]);
  }

  #takeRecorded(method: string, request: Buffer): RecordedCall | undefined {
    const index = this.#unmade.findIndex((call) => call.method === method && call.request.equals(request));
    const [found] = index < 0 ? [] : this.#unmade.splice(index, 1);
    if (found !== undefined) this.#made = Math.max(this.#made, this.#recording.calls.indexOf(found) + 1);
    return found;
  }

  #byRule(api: ApiVersion, name: ControlName, request: Buffer, isRecorded: boolean): ControlAnswer | undefined {
    try {
      if (name === "Execute") return UserIntentRequest.decode(request) && answer(status.OK);
      if (name !== "Handle") return this.#trigger(api, name, request, isRecorded);
      return isDeadly(api, request) ? undefined : answer(status.OK);
    } catch (cause) {
      return answer(status.INTERNAL, `grpc: error unmarshalling request: ${(cause as Error).message}`);
    }
  }

  #trigger(api: ApiVersion, name: keyof typeof flags, request: Buffer, isRecorded: boolean): ControlAnswer {
    const flag = flags[name];
    const enabled = TriggerRequest.decode(request).state?.val?.value;
    if (enabled === undefined && api === "v1") {
      return answer(status.INVALID_ARGUMENT, "missing required boolean parameter 'enabled'");
    }
    const value = enabled ?? false;
    if (this.#flags[api][flag] === value) {
      const noun = api === "v1" ? flag : flag.replace(/^./, (letter) => letter.toUpperCase());
      return answer(status.ALREADY_EXISTS, `auto ${noun} is already set to ${value}`);
    }
    this.#flags[api][flag] = value;
    if (!isRecorded) this.#changed[api][flag] = value;
    return answer(status.OK);
  }
}

function firstFlags(recording: RecordedUpstream, api: ApiVersion): Record<Flag, boolean> {
  const first = recording.states.find((each) => each.api === api && each.bytes.length > 0);
  const state = (api === "v1" ? StateV1 : StateV2).decode(first?.bytes ?? Buffer.alloc(0));
  const flag = (part: { autoTrigger: boolean } | undefined) =>
    first === undefined ? true : (part?.autoTrigger ?? false);
  return { build: flag(state.buildState), sync: flag(state.fileSyncState), deploy: flag(state.deployState) };
}

function withFlags(api: ApiVersion, bytes: Buffer, changed: Partial<Record<Flag, boolean>>): Buffer {
  if (bytes.length === 0 || Object.keys(changed).length === 0) return bytes;
  const type = api === "v1" ? StateV1 : StateV2;
  const state = type.decode(bytes);
  if (state.buildState) state.buildState.autoTrigger = changed.build ?? state.buildState.autoTrigger;
  if (state.fileSyncState) state.fileSyncState.autoTrigger = changed.sync ?? state.fileSyncState.autoTrigger;
  if (state.deployState) state.deployState.autoTrigger = changed.deploy ?? state.deployState.autoTrigger;
  return Buffer.from((type as typeof StateV1).encode(state as StateV1).finish());
}

/**
 * For a recording that is played again and again. Its answer at a position that was never recorded is unknown, so the
 * server claims to be deploying, and its state never counts as a state of rest.
 */
export function atWork(api: ApiVersion, bytes: Buffer): Buffer {
  const type = api === "v1" ? StateV1 : StateV2;
  const state = type.decode(bytes);
  if (state.deployState) state.deployState.status = api === "v1" ? "In Progress" : "InProgress";
  return Buffer.from((type as typeof StateV1).encode(state as StateV1).finish());
}

/** An injected event that ends the real process at once. (A terminationEvent does so with the event after it.) */
function isDeadly(api: ApiVersion, request: Buffer): boolean {
  const event = (api === "v1" ? EventV1 : EventV2).decode(request).event_type;
  return event?.$case === "devLoopEvent" && event.value.status === "Failed" && event.value.err === undefined;
}

/** A Handle call's event as it goes into the stream: stamped with the current time, like Skaffold's own events. */
export function injected(
  api: ApiVersion,
  request: Buffer,
): { readonly channel: SkaffoldChannel; readonly bytes: Buffer } {
  const timestamp = timestampNow();
  if (api === "v1") {
    const entry = LogEntry.encode({ timestamp, event: EventV1.decode(request), entry: "" });
    return { channel: "v1", bytes: Buffer.from(entry.finish()) };
  }
  const event = EventV2.decode(request);
  const channel = event.event_type?.$case === "applicationLogEvent" ? "logs" : "v2";
  return { channel, bytes: Buffer.from(EventV2.encode({ ...event, timestamp }).finish()) };
}

function answer(code: number, message = ""): ControlAnswer {
  return { code, message, response: Buffer.alloc(0) };
}
