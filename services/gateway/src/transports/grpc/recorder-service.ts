import type { MethodDefinition, UntypedHandleCall } from "@grpc/grpc-js";
import { RecorderService } from "@tapedeck/proto/tapedeck/v1/recorder";
import type { PushCall, RecorderRelay } from "../../apis/recorder/relay.ts";
import type { Caller } from "./skaffold-service.ts";

const asIs = (bytes: Buffer) => bytes;

/** tapedeck.v1.Recorder: taps push here, whatever ingest answers goes back. */
export function recorderServices(relay: RecorderRelay, caller: Caller) {
  const push: MethodDefinition<Buffer, Buffer> = {
    path: RecorderService.push.path,
    requestStream: true,
    responseStream: true,
    requestSerialize: asIs,
    requestDeserialize: asIs,
    responseSerialize: asIs,
    responseDeserialize: asIs,
  };
  const handler: UntypedHandleCall = (call: PushCall) => {
    const { workspace, who } = caller(call);
    relay.push(call, workspace, who);
  };
  return { definition: { push }, handlers: { push: handler } };
}
