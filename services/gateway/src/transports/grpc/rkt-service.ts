import { PublicAPIService as methods } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { unreadableRequest } from "../../apis/rkt/errors.ts";
import type { RktApi } from "../../apis/rkt/methods.ts";
import type { CallContext } from "../../call-context.ts";
import { byteMethods } from "./byte-methods.ts";
import type { GrpcCaller } from "./call-context.ts";
import { CallHandlers, type ServiceOptions } from "./call-handlers.ts";
import type { GrpcServices } from "./server.ts";

/** v1alpha.PublicAPI over gRPC. */
export function rktServices(api: RktApi, caller: GrpcCaller, options: ServiceOptions): GrpcServices {
  const handlers = new CallHandlers(caller, options);
  return {
    definition: byteMethods(methods),
    handlers: {
      getInfo: handlers.unary(decoding(methods.getInfo, api.getInfo)),
      listPods: handlers.unary(decoding(methods.listPods, api.listPods)),
      inspectPod: handlers.unary(decoding(methods.inspectPod, api.inspectPod)),
      listImages: handlers.unary(decoding(methods.listImages, api.listImages)),
      inspectImage: handlers.unary(decoding(methods.inspectImage, api.inspectImage)),
      listenEvents: handlers.serverStream(decoding(methods.listenEvents, api.listenEvents)),
      getLogs: handlers.serverStream(decoding(methods.getLogs, api.getLogs)),
    },
    names: ["v1alpha.PublicAPI"],
  };
}

function decoding<Request, Answer>(
  { requestDeserialize }: { readonly requestDeserialize: (bytes: Buffer) => Request },
  call: (request: Request, context: CallContext) => Promise<Answer>,
) {
  return async (bytes: Buffer, context: CallContext): Promise<Answer> => {
    let request: Request;
    try {
      request = requestDeserialize(bytes);
    } catch {
      throw unreadableRequest();
    }
    return call(request, context);
  };
}
