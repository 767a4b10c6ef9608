import { Client, type Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { grpcEndpoint } from "../../grpc-endpoint.ts";
import type { GrpcTarget } from "../../grpc-target.ts";
import { failureOf } from "../../recording/connection-failure.ts";

/** Written out: the messages' module takes longer to load than the answer takes to come, and none is sent. */
const push = "/tapedeck.v1.Recorder/Push";
const asIs = (bytes: Buffer) => bytes;

/** Answers that no restart and no better network changes. */
const final: ReadonlySet<number> = new Set([status.UNAUTHENTICATED, status.PERMISSION_DENIED, status.UNIMPLEMENTED]);

/** How to fix the errors that a gateway words itself. */
const remedies: Readonly<Record<number, string>> = {
  [status.UNAUTHENTICATED]: "provide a valid token with `tapedeck login` or TAPEDECK_TOKEN",
  [status.PERMISSION_DENIED]: "an admin creates one with `tapedeck token create --role recorder`",
};

/**
 * Asks a target whether it would take a recording, by a push that ends before its first message: it goes the way of every
 * push (address, certificate, token, role), and records nothing. `/about` would not do: it has another port and no roles.
 * Gives what is wrong and what to do about it, for people. Undefined where nothing is wrong, where no answer came before
 * the signal, and where another answer may come later by itself. Rejects if gRPC can't use the address.
 */
export async function askTarget(target: GrpcTarget, signal: AbortSignal): Promise<string | undefined> {
  const { address, credentials, metadata, options } = grpcEndpoint(target);
  const client = new Client(address, credentials, {
    "grpc.enable_retries": 0,
    "grpc.use_local_subchannel_pool": 1,
    ...options,
  });
  try {
    const refusal = await pushNothing(client, metadata, signal);
    return refusal === undefined ? undefined : wrongIn(refusal, target);
  } finally {
    client.close();
  }
}

function pushNothing(client: Client, metadata: Metadata, signal: AbortSignal): Promise<ServiceError | undefined> {
  return new Promise((resolve) => {
    const call = client.makeBidiStreamRequest(push, asIs, asIs, metadata);
    signal.addEventListener("abort", () => {
      resolve(undefined);
      call.cancel();
    });
    call.on("error", resolve);
    call.on("status", () => resolve(undefined));
    call.resume();
    call.end();
  });
}

function wrongIn(refusal: ServiceError, target: GrpcTarget): string | undefined {
  const { code, details } = refusal;
  const failure = failureOf(refusal, target);
  // A proxy answers UNAVAILABLE too when the gateway behind it is away.
  const isConnection = code === status.UNAVAILABLE && !/HTTP status/.test(details);
  if (failure === undefined || failure.mends || !(final.has(code) || isConnection)) return undefined;
  const remedy = failure.why === details ? remedies[code] : undefined;
  return remedy === undefined ? failure.why : `${target.name} reports: ${failure.why}: ${remedy}`;
}
