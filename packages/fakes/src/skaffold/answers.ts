import { status } from "@grpc/grpc-js";
import {
  Event as EventV1,
  LogEntry,
  State as StateV1,
  TriggerRequest,
  UserIntentRequest,
} from "@tapedeck/proto/skaffold/v1/skaffold";
import { Event as EventV2, State as StateV2 } from "@tapedeck/proto/skaffold/v2/skaffold";
import type { Api, Channel } from "@tapedeck/shared/skaffold/methods";
import type { RecordedState, Recording } from "./recording.ts";
import type { RecordedCall } from "./recording-calls.ts";

export type Answer = { readonly code: number; readonly message: string; readonly response: Buffer };

export type ControlName = "Execute" | "AutoBuild" | "AutoSync" | "AutoDeploy" | "Handle";

export type FakeCall = {
  readonly api: Api;
  readonly name: ControlName;
  readonly method: string;
  readonly request: Buffer;
  /** Absent: the call ended the process. */
  readonly answer?: Answer;
  /** The answer is the recorded one. */
  readonly recorded: boolean;
};

export type Answers = {
  readonly control: (api: Api, name: ControlName, method: string, request: Buffer) => FakeCall;
  readonly state: (api: Api, played: number, now: number) => Buffer;
  /** Control and Handle calls so far, in the order of arrival. */
  readonly calls: readonly FakeCall[];
};

const flags = { AutoBuild: "build", AutoSync: "sync", AutoDeploy: "deploy" } as const;
type Flag = (typeof flags)[keyof typeof flags];

/** GetState and control calls: as recorded where the recording has them, else by the rules of the real server. */
export function answers(recording: Recording): Answers {
  const calls: FakeCall[] = [];
  const unmade = [...recording.calls];
  let made = 0;
  const known: Record<Api, Record<Flag, boolean>> = {
    v1: firstFlags(recording, "v1"),
    v2: firstFlags(recording, "v2"),
  };
  const changed: Record<Api, Partial<Record<Flag, boolean>>> = { v1: {}, v2: {} };

  function takeRecorded(method: string, request: Buffer): RecordedCall | undefined {
    const index = unmade.findIndex((call) => call.method === method && call.request.equals(request));
    if (index < 0) return undefined;
    made = Math.max(made, recording.calls.indexOf(unmade[index] as RecordedCall) + 1);
    return unmade.splice(index, 1)[0];
  }

  function trigger(api: Api, name: keyof typeof flags, request: Buffer, recorded: boolean): Answer {
    const flag = flags[name];
    const enabled = TriggerRequest.decode(request).state?.val?.value;
    if (enabled === undefined && api === "v1") {
      return answer(status.INVALID_ARGUMENT, "missing required boolean parameter 'enabled'");
    }
    const value = enabled ?? false;
    if (known[api][flag] === value) {
      const noun = api === "v1" ? flag : flag.replace(/^./, (letter) => letter.toUpperCase());
      return answer(status.ALREADY_EXISTS, `auto ${noun} is already set to ${value}`);
    }
    known[api][flag] = value;
    if (!recorded) changed[api][flag] = value;
    return answer(status.OK);
  }

  function byRule(api: Api, name: ControlName, request: Buffer, recorded: boolean): Answer | undefined {
    try {
      if (name === "Execute") return UserIntentRequest.decode(request) && answer(status.OK);
      if (name !== "Handle") return trigger(api, name, request, recorded);
      return isDeadly(api, request) ? undefined : answer(status.OK);
    } catch (cause) {
      return answer(status.INTERNAL, `grpc: error unmarshalling request: ${(cause as Error).message}`);
    }
  }

  return {
    calls,
    control: (api, name, method, request) => {
      const found = takeRecorded(method, request);
      const ruled = byRule(api, name, request, found !== undefined);
      const given = found === undefined ? ruled : found.answer;
      const call = { api, name, method, request, ...(given && { answer: given }), recorded: found !== undefined };
      calls.push(call);
      return call;
    },
    state: (api, played, now) => {
      // Without any call made here, the recorded ones are taken as made by another client at their time.
      const nextCall = made > 0 ? (recording.calls[made]?.at ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY;
      const length = recording.messages[api].length;
      const seen = (state: RecordedState) => Math.min(state.seenAfter, length);
      const past = recording.states.filter((each) => each.api === api && seen(each) <= played && each.at < nextCall);
      // Several may belong to the same number of events: calls, or the other API's events, stand between them.
      const latest = past.filter((each) => seen(each) === seen(past.at(-1) as RecordedState));
      const lastCall = recording.calls[made - 1]?.at ?? 0;
      const sinceCall = latest.some(({ at }) => at > lastCall) ? latest.filter(({ at }) => at > lastCall) : latest;
      const state = sinceCall.findLast(({ at }) => at < now) ?? sinceCall[0];
      return withFlags(api, state?.bytes ?? Buffer.alloc(0), changed[api]);
    },
  };
}

function firstFlags(recording: Recording, api: Api): Record<Flag, boolean> {
  const first = recording.states.find((each) => each.api === api && each.bytes.length > 0);
  const state = (api === "v1" ? StateV1 : StateV2).decode(first?.bytes ?? Buffer.alloc(0));
  const flag = (part: { autoTrigger: boolean } | undefined) =>
    first === undefined ? true : (part?.autoTrigger ?? false);
  return { build: flag(state.buildState), sync: flag(state.fileSyncState), deploy: flag(state.deployState) };
}

function withFlags(api: Api, bytes: Buffer, changed: Partial<Record<Flag, boolean>>): Buffer {
  if (bytes.length === 0 || Object.keys(changed).length === 0) return bytes;
  const type = api === "v1" ? StateV1 : StateV2;
  const state = type.decode(bytes);
  if (state.buildState) state.buildState.autoTrigger = changed.build ?? state.buildState.autoTrigger;
  if (state.fileSyncState) state.fileSyncState.autoTrigger = changed.sync ?? state.fileSyncState.autoTrigger;
  if (state.deployState) state.deployState.autoTrigger = changed.deploy ?? state.deployState.autoTrigger;
  return Buffer.from((type as typeof StateV1).encode(state as StateV1).finish());
}

/**
 * For a recording that is played again and again: what Skaffold would answer at a place that was never recorded nobody
 * knows, so it is about to deploy, and what it says of the rest holds for no moment of rest.
 */
export function atWork(api: Api, bytes: Buffer): Buffer {
  const type = api === "v1" ? StateV1 : StateV2;
  const state = type.decode(bytes);
  if (state.deployState) state.deployState.status = api === "v1" ? "In Progress" : "InProgress";
  return Buffer.from((type as typeof StateV1).encode(state as StateV1).finish());
}

/** An injected event that ends the real process at once. (A terminationEvent does so with the event after it.) */
function isDeadly(api: Api, request: Buffer): boolean {
  const event = (api === "v1" ? EventV1 : EventV2).decode(request).event_type;
  return event?.$case === "devLoopEvent" && event.value.status === "Failed" && event.value.err === undefined;
}

/** A Handle call's event as it goes into the stream: stamped now, and logged as if Skaffold had said it. */
export function injected(api: Api, request: Buffer): { readonly channel: Channel; readonly bytes: Buffer } {
  const timestamp = { seconds: BigInt(Math.floor(Date.now() / 1_000)), nanos: (Date.now() % 1_000) * 1_000_000 };
  if (api === "v1") {
    const entry = LogEntry.encode({ timestamp, event: EventV1.decode(request), entry: "" });
    return { channel: "v1", bytes: Buffer.from(entry.finish()) };
  }
  const event = EventV2.decode(request);
  const channel = event.event_type?.$case === "applicationLogEvent" ? "logs" : "v2";
  return { channel, bytes: Buffer.from(EventV2.encode({ ...event, timestamp }).finish()) };
}

function answer(code: number, message = ""): Answer {
  return { code, message, response: Buffer.alloc(0) };
}
