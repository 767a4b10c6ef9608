import { credentials, Metadata } from "@grpc/grpc-js";
import type { GatewayLink } from "@tapedeck/tap/push/link";
import type { GrpcTarget } from "./grpc-target.ts";

/** What a gRPC client needs to reach a target. Its metadata belongs to one client: calls may add to it. */
export function grpcEndpoint({ address, isTls, certificates, metadata: texts, options }: GrpcTarget) {
  const metadata = new Metadata();
  for (const [name, text] of Object.entries(texts)) metadata.set(name, text);
  const trusted = certificates && Buffer.from(certificates.join("\n"));
  return {
    address,
    credentials: isTls ? credentials.createSsl(trusted) : credentials.createInsecure(),
    metadata,
    options,
  } satisfies GatewayLink;
}
