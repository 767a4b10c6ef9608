import type { Metadata } from "@grpc/grpc-js";
import { VagrantService as methods } from "@tapedeck/proto/vagrant/vagrant";
import type { VagrantApi } from "../../apis/vagrant/methods.ts";
import { checkProtocol, protocolKey } from "../../apis/vagrant/protocol.ts";
import { byteMethods } from "./byte-methods.ts";
import type { GrpcCaller } from "./call-context.ts";
import { CallHandlers, type ServiceOptions } from "./call-handlers.ts";
import type { GrpcServices } from "./server.ts";

/** hashicorp.vagrant.Vagrant over gRPC. */
export function vagrantServices(api: VagrantApi, caller: GrpcCaller, options: ServiceOptions): GrpcServices {
  const handlers = new CallHandlers(caller, options);
  return {
    definition: byteMethods(methods),
    handlers: {
      ...mapped(api.unary, (answer, name) =>
        handlers.unary(answer, name === "getVersionInfo" ? undefined : checkMetadata),
      ),
      ...mapped(api.streams, (open) => handlers.serverStream(open, checkMetadata)),
      ...mapped(api.runners, (open) => handlers.clientStream(open, checkMetadata)),
    },
    names: ["hashicorp.vagrant.Vagrant"],
  };
}

function checkMetadata(metadata: Metadata): void {
  checkProtocol(metadata.get(protocolKey).map(String));
}

function mapped<V, W>(record: Readonly<Record<string, V>>, change: (value: V, name: string) => W): Record<string, W> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value, name)]));
}
