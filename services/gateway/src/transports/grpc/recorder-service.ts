import { RecorderService } from "@tapedeck/proto/tapedeck/v1/recorder";
import type { PushCall, RecorderRelay } from "../../apis/recorder/relay.ts";
import type { CallWatch } from "../../metrics.ts";
import { asBytes } from "./byte-methods.ts";
import type { GrpcCaller } from "./call-context.ts";
import type { GrpcServices } from "./server.ts";
import { callSignal } from "./server-stream.ts";
import { toStatus } from "./status.ts";

/** tapedeck.v1.Recorder: taps push here, and the answers of ingest go back. */
export function recorderServices(relay: RecorderRelay, caller: GrpcCaller, watch: CallWatch): GrpcServices {
  const { path } = RecorderService.push;
  const push = (call: PushCall) => {
    watch.seen(callSignal(call));
    relay.push(call, caller(call), (error) => toStatus(watch.failed(error)));
  };
  return {
    definition: { push: { path, requestStream: true, responseStream: true, ...asBytes } },
    handlers: { push },
    names: ["tapedeck.v1.Recorder"],
    role: "recorder",
  };
}
