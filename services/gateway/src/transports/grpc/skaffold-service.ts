import type { MethodDefinition, UntypedHandleCall } from "@grpc/grpc-js";
import { type SkaffoldMethod, skaffoldMethods } from "../../apis/skaffold/methods.ts";
import type { SkaffoldApi } from "../../apis/skaffold/skaffold-api.ts";
import { asBytes } from "./byte-methods.ts";
import type { GrpcCaller } from "./call-context.ts";
import { CallHandlers, type ServiceOptions } from "./call-handlers.ts";
import type { GrpcServices } from "./server.ts";

/** proto.SkaffoldService and proto.v2.SkaffoldV2Service over gRPC. */
export function skaffoldServices(api: SkaffoldApi, caller: GrpcCaller, options: ServiceOptions): GrpcServices {
  const handlers = new CallHandlers(caller, options);
  const names = [...new Set(skaffoldMethods.map(({ path }) => path.split("/")[1] ?? ""))];
  return {
    definition: Object.fromEntries(skaffoldMethods.map((method) => [method.path, definitionOf(method)])),
    handlers: Object.fromEntries(skaffoldMethods.map((method) => [method.path, handlerOf(method)])),
    names,
  };

  function handlerOf(method: SkaffoldMethod): UntypedHandleCall {
    switch (method.kind) {
      case "stream":
        // Clients of Skaffold 0.x call Events as a bidirectional stream. What they send has no meaning.
        return handlers.duplexStream((context) => api.events(method, context));
      case "state":
        return handlers.unary((_, context) => api.getState(method, context));
      case "control":
        return handlers.unary((request, context) => api.control(method, request, context));
    }
  }
}

function definitionOf(method: SkaffoldMethod): MethodDefinition<Buffer, Buffer> {
  return {
    path: method.path,
    requestStream: method.kind === "stream" && method.bidirectional,
    responseStream: method.kind === "stream",
    ...asBytes,
  };
}
