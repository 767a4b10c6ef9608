import { gzipSync } from "node:zlib";
import { Status } from "@tapedeck/proto/google/rpc/status";
import { ExportTraceServiceResponse } from "@tapedeck/proto/opentelemetry/proto/collector/trace/v1/trace_service";
import { endsLoopOnV2 } from "@tapedeck/shared/events/loop-end";
import { ulid } from "ulid";
import { z } from "zod";
import { isSuccess, type ReceivedAnswer } from "../../target/http-target.ts";
import type { Format } from "../format.ts";
import { readKinds } from "./otlp-kinds.ts";
import { OtlpPass, otlpHeaders } from "./otlp-pass.ts";

/** OTLP/HTTP with protobuf, compressed with gzip: a trace for each loop, command and run of a pod. */
export const otlp: Format = {
  kinds: () => readKinds,
  needs: (event) => event.kind !== "mirror.received" || endsLoopOnV2(event),
  open: (sink, reader, { lateMs }) => new OtlpPass(sink, reader, lateMs),
  // An export without spans is one that has nothing to say.
  test: (at) => ({
    id: `test_${ulid(at.getTime())}`,
    body: gzipSync(Buffer.alloc(0)),
    headers: otlpHeaders,
    covers: 0,
  }),
  ofOldEvents:
    "it delivers spans of more than a day ago next: several targets drop such spans although they accept them",
  errorIn,
};

/**
 * A target that accepts a part of the spans answers 200, and says so in the body: in protobuf, as it was asked. Some answer JSON
 * nevertheless.
 */
function errorIn(answer: ReceivedAnswer): string | undefined {
  const { status, contentType = "", body, isLong = false } = answer;
  const type = contentType.split(";")[0]?.trim().toLowerCase();
  const isProtobuf = type === "application/x-protobuf" || type === "application/protobuf";
  if ((!isProtobuf && type !== "application/json") || body.byteLength === 0) return undefined;
  const isTaken = isSuccess(status);
  try {
    if (isTaken) return rejectionText(isProtobuf ? partialIn(body) : partialInJson(body));
    return isProtobuf ? Status.decode(body).message || undefined : undefined;
  } catch {
    // An answer without a rejection has nothing to say that is so long.
    return isTaken && isLong
      ? `the answer is too long to be read, and may reject spans: ${body.toString("utf8")}`
      : undefined;
  }
}

type PartialSuccess = { readonly rejected: bigint; readonly message: string };

function partialIn(body: Buffer): PartialSuccess {
  const { rejected_spans: rejected = 0n, error_message: message = "" } =
    ExportTraceServiceResponse.decode(body).partial_success ?? {};
  return { rejected, message };
}

const jsonAnswer = z.object({
  partialSuccess: z
    .object({ rejectedSpans: z.coerce.bigint().default(0n), errorMessage: z.string().nullish() })
    .nullish(),
});

function partialInJson(body: Buffer): PartialSuccess {
  const { partialSuccess } = jsonAnswer.parse(JSON.parse(body.toString("utf8")));
  return { rejected: partialSuccess?.rejectedSpans ?? 0n, message: partialSuccess?.errorMessage ?? "" };
}

function rejectionText({ rejected, message }: PartialSuccess): string | undefined {
  if (rejected === 0n) return undefined;
  return `${rejected} ${rejected === 1n ? "span was" : "spans were"} rejected${message === "" ? "" : `: ${message}`}`;
}
