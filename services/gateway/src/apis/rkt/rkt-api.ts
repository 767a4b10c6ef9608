import { EventFilter, GetInfoResponse, Info } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { listOf } from "@tapedeck/shared/rkt/entries";
import type { CallContext } from "../../call-context.ts";
import type { EncodedAnswer } from "../encoded-answer.ts";
import { type CollectionName, readCollection } from "../read-collection.ts";
import { sessionScope } from "../session-scope.ts";
import { imageNotFound, unresolvedPod } from "./errors.ts";
import { imagePasses, podPasses } from "./filters.ts";
import { assertEventFilter, listenEvents } from "./listen-events.ts";
import type { RktApi } from "./methods.ts";
import { type LogPod, type PodLogsDeps, podLogs } from "./pod-logs.ts";
import { withoutManifest } from "./without-manifest.ts";

/** rkt's API. Knows no transport. Pods and images are sent as they were recorded, never encoded again. */
export function rktApi(deps: PodLogsDeps): RktApi {
  return {
    async getInfo(_, context) {
      const { head, rows } = await read(deps, "info", context);
      return { head, bytes: rows[0]?.bytes ?? GetInfoResponse.encode({ info: Info.create() }).finish() };
    },

    listPods: ({ detail, filters }, context) => list(deps, "pods", { detail, passes: podPasses(filters) }, context),

    async inspectPod({ id }, context) {
      const { head, pod } = await findPod(deps, id, context);
      if (pod === undefined) throw unresolvedPod();
      return { head, bytes: listOf([pod.bytes]) };
    },

    listImages: ({ detail, filters }, context) =>
      list(deps, "images", { detail, passes: imagePasses(filters) }, context),

    async inspectImage({ id }, context) {
      const { head, rows } = await read(deps, "images", context, id);
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
      const pod = await findLogPod(deps, request.pod_id, context);
      const lastOffset = await deps.positions.lastOffset();
      return { head: scope.head, messages: podLogs(deps, { scope, pod, request, lastOffset }, context.signal) };
    },
  };
}

/** Rows ordered by key, which is the id of a pod or image. */
async function read(deps: PodLogsDeps, collection: CollectionName<"rkt">, context: CallContext, prefix = "") {
  const { head, rows } = await readCollection(deps, "rkt", collection, context, prefix);
  return { head, rows: rows.toSorted((a, b) => (a.key < b.key ? -1 : 1)) };
}

type ListOptions = { readonly detail: boolean; readonly passes: (item: Uint8Array) => boolean };

/** The items that pass, as rkt lists them. */
async function list(
  deps: PodLogsDeps,
  collection: CollectionName<"rkt">,
  { detail, passes }: ListOptions,
  context: CallContext,
): Promise<EncodedAnswer> {
  const { head, rows } = await read(deps, collection, context);
  const items = rows.map(({ bytes }) => bytes).filter(passes);
  return { head, bytes: listOf(detail ? items : items.map(withoutManifest)) };
}

/** Finds a pod by any prefix that is unique on the host, in either case. */
async function findPod(deps: PodLogsDeps, id: string, context: CallContext) {
  const { head, rows } = await read(deps, "pods", context, id.toLowerCase());
  return { head, pod: id === "" || rows.length > 1 ? undefined : rows[0] };
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

async function findLogPod(deps: PodLogsDeps, id: string, context: CallContext): Promise<LogPod> {
  const { pod } = await findPod(deps, id, context);
  if (pod !== undefined) return { id: pod.key, isListed: true };
  if (!uuid.test(id.toLowerCase())) throw unresolvedPod();
  return { id: id.toLowerCase(), isListed: false };
}
