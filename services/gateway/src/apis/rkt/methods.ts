import type {
  GetInfoRequest,
  GetLogsRequest,
  InspectImageRequest,
  InspectPodRequest,
  ListenEventsRequest,
  ListImagesRequest,
  ListPodsRequest,
} from "@tapedeck/proto/rkt/v1alpha/rkt";
import type { CallContext } from "../../call-context.ts";
import type { EncodedAnswer, EncodedStream } from "../encoded-answer.ts";

type UnaryMethod<Request> = (request: Request, context: CallContext) => Promise<EncodedAnswer>;
type StreamMethod<Request> = (request: Request, context: CallContext) => Promise<EncodedStream>;

/**
 * rkt's v1alpha.PublicAPI, answered from the record, with rkt's own filters and errors. Everything throws UpstreamError
 * for what rkt refuses too, and TapedeckError (docs/api.md#errors) for the rest.
 */
export type RktApi = {
  /** An empty Info before rkt has reported one, and for a source without a session. */
  readonly getInfo: UnaryMethod<GetInfoRequest>;
  /** Ordered by id. */
  readonly listPods: UnaryMethod<ListPodsRequest>;
  readonly inspectPod: UnaryMethod<InspectPodRequest>;
  /** Ordered by id; rkt itself has no order. */
  readonly listImages: UnaryMethod<ListImagesRequest>;
  readonly inspectImage: UnaryMethod<InspectImageRequest>;
  readonly listenEvents: StreamMethod<ListenEventsRequest>;
  readonly getLogs: StreamMethod<GetLogsRequest>;
};
