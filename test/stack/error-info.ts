import { ErrorInfo } from "@tapedeck/proto/google/rpc/error_details";
import { Status } from "@tapedeck/proto/google/rpc/status";
import type { Answer } from "../skaffold/client.ts";
import type { HttpAnswer } from "./http-call.ts";

const infoType = "type.googleapis.com/google.rpc.ErrorInfo";

export type Info = {
  readonly reason: string;
  readonly domain: string;
  readonly metadata: Readonly<Record<string, string>>;
};
type Any = Info & { readonly "@type": string };

/** The google.rpc.ErrorInfo of a gRPC refusal. */
export function infoOf({ metadata }: Answer): Info | undefined {
  const [trailer] = metadata.get("grpc-status-details-bin");
  if (!Buffer.isBuffer(trailer)) return undefined;
  const detail = Status.decode(trailer).details[0];
  if (detail?.type_url !== infoType) return undefined;
  const { reason, domain, metadata: more } = ErrorInfo.decode(detail.value);
  return { reason, domain, metadata: more };
}

/** Skaffold's body of an HTTP refusal, and the ErrorInfo in it. */
export function skaffoldRefusal({ body }: HttpAnswer) {
  const { code, message, details } = JSON.parse(body) as { code: number; message: string; details: Any[] };
  const [{ "@type": type, ...info } = {} as Any] = details;
  return { code, message, info: type === infoType ? info : undefined };
}
