import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { Server, ServerCredentials, type ServiceDefinition, type UntypedHandleCall } from "@grpc/grpc-js";
import { loadFileDescriptorSetFromBuffer } from "@grpc/proto-loader";
import { ReflectionService } from "@grpc/reflection";
import { listenError } from "@tapedeck/shared/service/health";
import { HealthImplementation } from "grpc-health-check";

export type GrpcServices = {
  readonly definition: ServiceDefinition;
  readonly handlers: Record<string, UntypedHandleCall>;
};

export type GrpcServer = AsyncDisposable & { readonly address: string };

/** Skaffold's limit for requests is 4 MiB too; push streams stay below it by their 1 MiB pieces. */
const options = {
  "grpc.max_receive_message_length": 4 << 20,
  "grpc.max_send_message_length": -1,
  "grpc.max_concurrent_streams": 100,
  // A peer that is gone is noticed within 35 s.
  "grpc.keepalive_time_ms": 15_000,
  "grpc.keepalive_timeout_ms": 20_000,
};

/** Starts a server with health and reflection for the services named. A taken port is one sentence. */
export async function grpcServer(
  host: string,
  port: number,
  services: readonly GrpcServices[],
  serviceNames: readonly string[],
): Promise<GrpcServer> {
  const server = new Server(options);
  for (const { definition, handlers } of services) server.addService(definition, handlers);
  new HealthImplementation(
    Object.fromEntries(["", ...serviceNames].map((name) => [name, "SERVING" as const])),
  ).addToServer(server);
  const descriptors = readFileSync(createRequire(import.meta.url).resolve("@tapedeck/proto/descriptors.binpb"));
  new ReflectionService(loadFileDescriptorSetFromBuffer(descriptors), { services: [...serviceNames] }).addToServer(
    server,
  );

  const bound = await new Promise<number>((resolve, reject) => {
    server.bindAsync(`${host}:${port}`, ServerCredentials.createInsecure(), (error, actual) => {
      if (error === null) resolve(actual);
      else reject(listenError(Object.assign(error, taken(error)), host, port));
    });
  });
  return {
    address: `${host}:${bound}`,
    async [Symbol.asyncDispose]() {
      // Streams here have no end of their own, so a graceful stop would wait for ever.
      server.forceShutdown();
    },
  };
}

function taken(error: Error): { code?: string } {
  return /EADDRINUSE/.test(error.message) ? { code: "EADDRINUSE" } : {};
}
