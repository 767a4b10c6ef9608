import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { toGatewayJson } from "@tapedeck/shared/descriptors/grpc-gateway-json";
import type { SkaffoldState } from "../state.ts";
import { toV1State } from "../to-v1-state.ts";
import { toV2State } from "../to-v2-state.ts";
import { type Api, stateTypes } from "./recorded-session.ts";

/** What GetState of both APIs would answer. */
export function answers(state: SkaffoldState): Readonly<Record<Api, JsonObject>> {
  return {
    v1: comparable(toGatewayJson(stateTypes.v1, toV1State(state))),
    v2: comparable(toGatewayJson(stateTypes.v2, toV2State(state))),
  };
}

/** The order of builders differs from process to process. */
export function comparable(json: JsonObject): JsonObject {
  return JSON.parse(
    JSON.stringify(json, (key, value: JsonValue) =>
      key === "builders" && Array.isArray(value) ? value.map((one) => JSON.stringify(one)).sort() : value,
    ),
  ) as JsonObject;
}
