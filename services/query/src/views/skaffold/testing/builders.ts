import type { JsonObject } from "@bufbuild/protobuf";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { fromGatewayJson } from "@tapedeck/shared/descriptors/grpc-gateway-json";
import { messageType } from "@tapedeck/shared/descriptors/registry";
import { expect } from "vitest";
import { evolve } from "../evolve.ts";
import { initialState, type SkaffoldState } from "../state.ts";
import { answers } from "./answers.ts";
import { controlEvent, describedAs, eventOf, stateTypes } from "./recorded-session.ts";

const v1Type = messageType("proto.LogEntry");
const v2Type = messageType("proto.v2.Event");

export function v1(event: JsonObject, fields: Partial<Event> = {}): Event {
  return eventOf("v1", fromGatewayJson(v1Type, { event }), fields);
}

export function v2(event: JsonObject, fields: Partial<Event> = {}): Event {
  return eventOf("v2", fromGatewayJson(v2Type, event), fields);
}

export const runner = v1({
  metaEvent: { entry: "Starting Skaffold: &{}", metadata: { build: { numberOfArtifacts: 2 } } },
});
export const loop = (status: string, errCode?: string) =>
  v1({ devLoopEvent: { status, ...(errCode ? { err: { errCode } } : {}) } });
export const build = (artifact: string, status: string, errCode = "OK") =>
  v1({ buildEvent: { artifact, status, errCode } });
export const test = (status: string, errCode = "OK") => v1({ TestEvent: { status, actionableErr: { errCode } } });
export const deploy = (status: string, errCode = "OK") => v1({ deployEvent: { status, errCode } });
export const sync = (status: string) => v1({ fileSyncEvent: { status } });
export const port = (localPort: number, podName = "") => v1({ portEvent: { localPort, podName } });

export const runnerV2 = (runID: string, ...names: string[]) =>
  v2({ metaEvent: { metadata: { runID, build: { artifacts: names.map((name) => ({ name })) } } } });
export const taskV2 = (task: string, status = "InProgress") => v2({ taskEvent: { task, status } });
export const buildV2 = (artifact: string, status: string, step = "Build") =>
  v2({ buildSubtaskEvent: { artifact, status, step } });

/** A complete first loop, and what v2 reports at its start. */
export const firstLoop = [
  runner,
  loop("In Progress"),
  build("web", "Complete"),
  build("api", "Complete"),
  test("Complete"),
  deploy("Complete"),
  port(8080),
  loop("Succeeded"),
];
export const firstLoopV2 = [runnerV2("a", "web", "api"), taskV2("DevLoop")];

/** For toMatchObject, to which `{}` is any object. */
export const empty = expect.toSatisfy((value: object) => Object.keys(value).length === 0, "is empty");

export const injected = (event: Event): Event => ({ ...event, injected: true });

export function describedBy(states: { readonly v1?: JsonObject; readonly v2?: JsonObject }): Event {
  return describedAs({
    ...(states.v1 ? { v1: fromGatewayJson(stateTypes.v1, states.v1) } : {}),
    ...(states.v2 ? { v2: fromGatewayJson(stateTypes.v2, states.v2) } : {}),
  });
}

/** One control call: the name of the method, its request as JSON, and an id of its own. */
export function call(method: string, request: JsonObject = {}, api: "v1" | "v2" = "v1") {
  const type = method === "Execute" ? "proto.UserIntentRequest" : "proto.TriggerRequest";
  const bytes = Buffer.from(fromGatewayJson(messageType(type), request));
  const made = {
    call: crypto.randomUUID(),
    method: api === "v1" ? `/proto.SkaffoldService/${method}` : `/proto.v2.SkaffoldV2Service/${method}`,
    request: bytes,
    forwarded_method: `/proto.SkaffoldService/${method}`,
    forwarded_request: bytes,
  };
  return {
    requested: controlEvent("requested", made),
    accepted: controlEvent("accepted", made),
    rejected: controlEvent("rejected", { ...made, code: 6 }),
  };
}

export function fold(...events: readonly Event[]): SkaffoldState {
  return events.reduce(evolve, initialState);
}

export function v1After(...events: readonly Event[]): JsonObject {
  return answers(fold(...events)).v1;
}

export function v2After(...events: readonly Event[]): JsonObject {
  return answers(fold(...events)).v2;
}
