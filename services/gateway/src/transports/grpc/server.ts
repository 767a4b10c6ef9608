import { Server, type ServerInterceptor, type ServiceDefinition, type UntypedHandleCall } from "@grpc/grpc-js";
import { type ConnectionLimits, listenGrpc } from "@tapedeck/shared/service/grpc-listener";
import { grpcLiveness, keepaliveOptions, type Liveness } from "@tapedeck/shared/service/peer-liveness";
import type { Certificate } from "@tapedeck/shared/service/tls/certificate";
import { serverCredentials } from "@tapedeck/shared/service/tls/grpc-credentials";
import { HealthImplementation } from "grpc-health-check";
import type { Role } from "../../call-context.ts";
import { defaultLimits, type Limits } from "../../limits/settings.ts";
import { type Address, addressText } from "../address.ts";
import { type AuthenticationOptions, authentication } from "./authentication.ts";
import { messageGroups } from "./message-groups.ts";
import { addReflection } from "./reflection.ts";
import { refusingUnreadable } from "./refuse-unreadable.ts";

export type GrpcServices = {
  readonly definition: ServiceDefinition;
  readonly handlers: Record<string, UntypedHandleCall>;
  /** Full names, for reflection and health. */
  readonly names: readonly string[];
  /** The role that a caller needs; default: viewer. Single methods may need more. */
  readonly role?: Role;
};

export type GrpcServerOptions = Omit<AuthenticationOptions, "roleOf"> & {
  /** Undefined: without TLS. */
  readonly certificate?: Certificate | undefined;
  readonly liveness?: Liveness;
  readonly limits?: Limits["grpc"];
  /** How long a connection may take for its first request. */
  readonly arrivalMs?: ConnectionLimits["arrivalMs"];
  /** Interceptors that run after the authentication. */
  readonly interceptors?: readonly ServerInterceptor[];
};

export type GrpcServer = AsyncDisposable & {
  readonly address: string;
  /** Sets the answer of grpc.health.v1 for the server ("") and each service. */
  setServing(isServing: boolean): void;
};

/**
 * Starts a server with these services, which need authentication, and with health and reflection, which do not. HTTP/2
 * pings find peers that are gone: a peer that reads slowly, or not at all, answers them.
 * @throws Error one sentence when the port is taken
 */
export async function grpcServer(
  { host, port }: Address,
  services: readonly GrpcServices[],
  {
    certificate,
    liveness = grpcLiveness,
    limits = defaultLimits.grpc,
    arrivalMs = defaultLimits.arrivalMs,
    interceptors = [],
    ...authenticationOptions
  }: GrpcServerOptions,
): Promise<GrpcServer> {
  const roles = new Map(
    services.flatMap(({ definition, role = "viewer" }) =>
      Object.values(definition).map(({ path }) => [path, role] as const),
    ),
  );
  const server = new Server({
    "grpc.max_receive_message_length": limits.messageBytes,
    "grpc.max_send_message_length": -1,
    "grpc.max_concurrent_streams": limits.streams,
    interceptors: [
      messageGroups,
      authentication({ ...authenticationOptions, roleOf: (path) => roles.get(path) }),
      ...interceptors,
    ],
    ...keepaliveOptions(liveness),
  });
  for (const { definition, handlers } of services) server.addService(definition, handlers);
  const names = services.flatMap((service) => service.names);
  const health = new HealthImplementation();
  const setServing = (isServing: boolean) => {
    for (const name of ["", ...names]) health.setStatus(name, isServing ? "SERVING" : "NOT_SERVING");
  };
  setServing(false);
  health.addToServer({
    addService(definition, handlers) {
      const readable = refusingUnreadable(definition, handlers);
      server.addService(readable.definition, readable.handlers);
    },
  });
  addReflection(server, [...names, "grpc.health.v1.Health"]);

  const credentials = serverCredentials(certificate);
  const listener = await listenGrpc(server, { host, port, credentials }, { ...limits, arrivalMs });
  return {
    address: addressText({ host, port: listener.port }),
    setServing,
    [Symbol.asyncDispose]: () => listener[Symbol.asyncDispose](),
  };
}
