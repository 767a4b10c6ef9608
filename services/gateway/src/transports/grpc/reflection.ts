import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { ReflectionService } from "@grpc/reflection";
import { descriptorBytes } from "@tapedeck/shared/descriptors/descriptor-bytes";

type Descriptors = ConstructorParameters<typeof ReflectionService>[0];

/**
 * grpc.reflection v1 and v1alpha, which list these services and know all of our messages. Each file is served as it was
 * compiled: proto-loader would make one file per package, without imports and with names that only some clients resolve.
 */
export function reflection(services: readonly string[]): ReflectionService {
  const { file } = fromBinary(FileDescriptorSetSchema, descriptorBytes());
  const fileDescriptorProtos = file.map((one) => Buffer.from(toBinary(FileDescriptorProtoSchema, one)));
  const descriptors: Descriptors = {
    files: { format: "Protocol Buffer 3 DescriptorProto", type: {}, fileDescriptorProtos },
  };
  return new ReflectionService(descriptors, { services: [...services] });
}
