import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import type { Server, ServiceDefinition, UntypedHandleCall, UntypedServiceImplementation } from "@grpc/grpc-js";
import { ReflectionService } from "@grpc/reflection";
import { descriptorBytes } from "@tapedeck/shared/descriptors/descriptor-bytes";
import { ownValue } from "@tapedeck/shared/own-value";

type Descriptors = ConstructorParameters<typeof ReflectionService>[0];

type Served = { readonly definition: ServiceDefinition; readonly handlers: UntypedServiceImplementation };

/**
 * Adds grpc.reflection v1 and v1alpha, which list these services and know all of our messages. The descriptors are read
 * at the first call: that takes a tenth of a second and 12 MiB, and most gateways are never asked.
 */
export function addReflection(server: Pick<Server, "addService">, names: readonly string[]): void {
  let made: readonly Served[] | undefined;
  const answering = () => {
    made ??= servicesOf(ourDescriptors(), names);
    return made;
  };
  for (const [index, { definition, handlers }] of servicesOf({}, names).entries()) {
    const later = (method: string) => (call: unknown) => {
      const handler = ownValue(answering()[index]?.handlers, method) as ((call: unknown) => void) | undefined;
      handler?.(call);
    };
    const methods = Object.keys(handlers).map((method) => [method, later(method) as UntypedHandleCall] as const);
    server.addService(definition, Object.fromEntries(methods));
  }
}

function servicesOf(descriptors: Descriptors, names: readonly string[]): readonly Served[] {
  const served: Served[] = [];
  const collecting: Pick<Server, "addService"> = {
    addService: (definition, handlers) => void served.push({ definition, handlers }),
  };
  new ReflectionService(descriptors, { services: [...names] }).addToServer(collecting);
  return served;
}

/**
 * Each file is served as it was compiled: proto-loader would make one file per package, without imports and with names
 * that only some clients resolve.
 */
function ourDescriptors(): Descriptors {
  const { file } = fromBinary(FileDescriptorSetSchema, descriptorBytes());
  const fileDescriptorProtos = file.map((one) => Buffer.from(toBinary(FileDescriptorProtoSchema, one)));
  return { files: { format: "Protocol Buffer 3 DescriptorProto", type: {}, fileDescriptorProtos } };
}
