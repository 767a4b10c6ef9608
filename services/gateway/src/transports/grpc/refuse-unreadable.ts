import type {
  ServerUnaryCall,
  ServerWritableStream,
  ServiceDefinition,
  sendUnaryData,
  UntypedHandleCall,
  UntypedServiceImplementation,
} from "@grpc/grpc-js";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { toGrpcStatus } from "@tapedeck/shared/errors/grpc";
import { decodedRequest } from "@tapedeck/shared/rpc/decoded-request";

type Handled = { readonly definition: ServiceDefinition; readonly handlers: UntypedServiceImplementation };
type Call = ServerUnaryCall<unknown, unknown> | ServerWritableStream<unknown, unknown>;

/** A service of a library, so that a request that can't be decoded is the client's fault: grpc-js says INTERNAL. */
export function refusingUnreadable(definition: ServiceDefinition, handlers: UntypedServiceImplementation): Handled {
  const refusing = (handler: UntypedHandleCall) => (call: Call, done?: sendUnaryData<unknown>) => {
    if (!(call.request instanceof TapedeckError)) return (handler as (...call: unknown[]) => void)(call, done);
    const status = toGrpcStatus(call.request);
    if (done === undefined) call.emit("error", status);
    else done(status);
  };
  return {
    definition: Object.fromEntries(
      Object.entries(definition).map(([name, method]) => [name, { ...method, requestDeserialize: readable(method) }]),
    ),
    handlers: Object.fromEntries(
      Object.entries(handlers).map(([name, handler]) => [name, refusing(handler) as UntypedHandleCall]),
    ),
  };
}

/** Gives the handler the error in place of the request. */
function readable(method: ServiceDefinition[string]) {
  return (bytes: Buffer): unknown => {
    try {
      return decodedRequest(method, bytes);
    } catch (error) {
      return error;
    }
  };
}
