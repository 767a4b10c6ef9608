import type {
  GetInfoRequest,
  GetLogsRequest,
  InspectImageRequest,
  InspectPodRequest,
  ListenEventsRequest,
  ListImagesRequest,
  ListPodsRequest,
} from "@tapedeck/proto/rkt/v1alpha/rkt";
import { EventFilter, GetInfoResponse, Info } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { listOf } from "@tapedeck/shared/rkt/entries";
import type { AnswerHead, CallContext } from "../../call-context.ts";
import { resolveSource } from "../resolve-source.ts";
import { sessionScope } from "../session-scope.ts";
import { stateHead } from "../state-head.ts";
import { imageNotFound, unresolvedPod } from "./errors.ts";
import { imagePasses, podPasses } from "./filters.ts";
import { assertEventFilter, listenEvents } from "./listen-events.ts";
import { type LogPod, type PodLogsDeps, podLogs } from "./pod-logs.ts";
import { withoutManifest } from "./without-manifest.ts";

/** The encoded answer of one call, and what goes with it. */
export type RktAnswer = { readonly head: AnswerHead; readonly bytes: Uint8Array };

/** Encoded messages, and what goes before them. */
export type RktStream = { readonly head: AnswerHead; readonly messages: AsyncIterable<Uint8Array> };

type Call<Request, Answer> = (request: Request, context: CallContext) => Promise<Answer>;

/**
 * rkt's v1alpha.PublicAPI, answered from the record, with rkt's own filters and errors. Everything throws UpstreamError
 * for what rkt refuses too, and TapedeckError (docs/api.md#errors) for the rest.
 */
export type RktApi = {
  /** Before rkt has told it (and for a source without a session): an Info that is there, and empty. */
  readonly getInfo: Call<GetInfoRequest, RktAnswer>;
  /** In order of the ids. */
  readonly listPods: Call<ListPodsRequest, RktAnswer>;
  readonly inspectPod: Call<InspectPodRequest, RktAnswer>;
  /** In order of the ids: rkt itself has none. */
  readonly listImages: Call<ListImagesRequest, RktAnswer>;
  readonly inspectImage: Call<InspectImageRequest, RktAnswer>;
  readonly listenEvents: Call<ListenEventsRequest, RktStream>;
  readonly getLogs: Call<GetLogsRequest, RktStream>;
};

type Collection = "info" | "pods" | "images";

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Knows no transport. Pods and images go out as they were recorded: nothing encodes them again. */
export function rktApi(deps: PodLogsDeps): RktApi {
  const { query, positions } = deps;

  /** Rows in order of their keys: a pod's or an image's id. */
  async function read(collection: Collection, context: CallContext, prefix = "") {
    const { source } = await resolveSource(query, context, "rkt");
    const { head, rows } = await query.readState({
      workspace: context.workspace,
      source,
      session: context.session ?? "",
      at: context.at ?? "",
      min_position: context.minPosition ?? "",
      collection: `rkt.${collection}`,
      key_prefix: prefix,
    });
    return { head: stateHead(head), rows: rows.toSorted((a, b) => (a.key < b.key ? -1 : 1)) };
  }

  /** What passes, as rkt lists it. */
  async function list(
    collection: Collection,
    { detail }: { readonly detail: boolean },
    passes: (item: Uint8Array) => boolean,
    context: CallContext,
  ): Promise<RktAnswer> {
    const { head, rows } = await read(collection, context);
    const items = rows.map(({ bytes }) => bytes).filter(passes);
    return { head, bytes: listOf(detail ? items : items.map(withoutManifest)) };
  }

  /** By any prefix that only one pod on the host has, in whatever case. */
  async function podOf(id: string, context: CallContext) {
    const { head, rows } = await read("pods", context, id.toLowerCase());
    return { head, pod: id === "" || rows.length > 1 ? undefined : rows[0] };
  }

  async function logPodOf(id: string, context: CallContext): Promise<LogPod> {
    const { pod } = await podOf(id, context);
    if (pod !== undefined) return { id: pod.key, isListed: true };
    if (!uuid.test(id.toLowerCase())) throw unresolvedPod();
    return { id: id.toLowerCase(), isListed: false };
  }

  return {
    async getInfo(_, context) {
      const { head, rows } = await read("info", context);
      return { head, bytes: rows[0]?.bytes ?? GetInfoResponse.encode({ info: Info.create() }).finish() };
    },

    listPods: (request, context) => list("pods", request, podPasses(request.filters), context),

    async inspectPod({ id }, context) {
      const { head, pod } = await podOf(id, context);
      if (pod === undefined) throw unresolvedPod();
      return { head, bytes: listOf([pod.bytes]) };
    },

    listImages: (request, context) => list("images", request, imagePasses(request.filters), context),

    async inspectImage({ id }, context) {
      const { head, rows } = await read("images", context, id);
      const image = rows.find(({ key }) => key === id);
      if (image === undefined) throw imageNotFound(id);
      return { head, bytes: listOf([image.bytes]) };
    },

    async listenEvents({ filter = EventFilter.create() }, context) {
      assertEventFilter(filter);
      const scope = await sessionScope(deps, context, "rkt");
      return { head: scope.head, messages: listenEvents(deps, scope, filter, context.signal) };
    },

    async getLogs(request, context) {
      const scope = await sessionScope(deps, context, "rkt");
      const pod = await logPodOf(request.pod_id, context);
      const lastSeq = await positions.lastSeq();
      return { head: scope.head, messages: podLogs(deps, { scope, pod, request, lastSeq }, context.signal) };
    },
  };
}
