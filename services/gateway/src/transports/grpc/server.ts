import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { Server, type ServerInterceptor, type ServiceDefinition, type UntypedHandleCall } from "@grpc/grpc-js";
import { loadFileDescriptorSetFromBuffer } from "@grpc/proto-loader";
import { ReflectionService } from "@grpc/reflection";
import { listenError } from "@tapedeck/shared/service/health";
import { HealthImplementation } from "grpc-health-check";
import type { Role } from "../../call-context.ts";
import { defaultLimits, type Limits } from "../../limits/settings.ts";
import { type Address, addressText } from "../address.ts";
import { type Liveness, liveness } from "../liveness.ts";
import type { Certificate } from "../tls.ts";
import { type AuthenticationOptions, authentication } from "./authentication.ts";
import { serverCredentials } from "./credentials.ts";

export type GrpcServices = {
  readonly definition: ServiceDefinition;
  readonly handlers: Record<string, UntypedHandleCall>;
  /** Full names, for reflection and health. */
  readonly names: readonly string[];
  /** Who may call it: by default viewers. Single methods may ask for more. */
  readonly role?: Role;
};

export type GrpcServerOptions = Omit<AuthenticationOptions, "roleOf"> & {
  /** Undefined: without TLS. */
  readonly certificate?: Certificate | undefined;
  readonly liveness?: Liveness;
  readonly limits?: Limits["grpc"];
  /** What calls of services pass once they are let in. */
  readonly interceptors?: readonly ServerInterceptor[];
};

export type GrpcServer = AsyncDisposable & {
  readonly address: string;
  /** What grpc.health.v1 answers, for the server ("") and each service. */
  setServing(isServing: boolean): void;
};

/**
 * Starts a server with health and reflection, which are open to everyone, for the services given, which are not. A peer that is gone is noticed by HTTP/2 pings:
 * one that reads slowly, or not at all, answers them.
 * @throws Error one sentence when the port is taken
 */
export async function grpcServer(
  { host, port }: Address,
  services: readonly GrpcServices[],
  {
    certificate,
    liveness: { quietMs, silentMs } = liveness,
    limits = defaultLimits.grpc,
    interceptors = [],
    ...letting
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
    interceptors: [authentication({ ...letting, roleOf: (path) => roles.get(path) }), ...interceptors],
    "grpc.keepalive_time_ms": quietMs,
    "grpc.keepalive_timeout_ms": silentMs - quietMs,
  });
  for (const { definition, handlers } of services) server.addService(definition, handlers);
  const names = services.flatMap((service) => service.names);
  const health = new HealthImplementation();
  const setServing = (isServing: boolean) => {
    for (const name of ["", ...names]) health.setStatus(name, isServing ? "SERVING" : "NOT_SERVING");
  };
  setServing(false);
  health.addToServer(server);
  const descriptors = readFileSync(createRequire(import.meta.url).resolve("@tapedeck/proto/descriptors.binpb"));
  new ReflectionService(loadFileDescriptorSetFromBuffer(descriptors), { services: names }).addToServer(server);

  const bound = await new Promise<number>((resolve, reject) => {
    server.bindAsync(addressText({ host, port }), serverCredentials(certificate), (error, actual) => {
      if (error === null) resolve(actual);
      else reject(listenError(Object.assign(error, taken(error)), host, port));
    });
  });
  return {
    address: addressText({ host, port: bound }),
    setServing,
    async [Symbol.asyncDispose]() {
      // Streams here have no end of their own, so a graceful stop would wait for ever.
      server.forceShutdown();
    },
  };
}

function taken(error: Error): { code?: string } {
  return /EADDRINUSE/.test(error.message) ? { code: "EADDRINUSE" } : {};
}
