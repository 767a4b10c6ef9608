import { fromBinary, type JsonObject, toJson } from "@bufbuild/protobuf";
import { toGatewayJson } from "@tapedeck/shared/descriptors/grpc-gateway-json";
import { messageType } from "@tapedeck/shared/descriptors/registry";
import type { UpstreamName } from "@tapedeck/shared/upstreams";
import type { CallContext } from "../../call-context.ts";
import type { QueryClient } from "../../query-client.ts";
import { resolveSource } from "../resolve-source.ts";
import { stateMessageTypes } from "../skaffold/methods.ts";
import { vagrantState } from "../vagrant/state-json.ts";

export type StateAnswer = {
  readonly source: string;
  readonly session: string | null;
  readonly sessionEnded: boolean;
  /** The position that `state` reflects. */
  readonly position: string;
  /** What was asked for, where a moment was asked for. */
  readonly at: string | null;
  readonly upstream: string;
  /** The upstream's own JSON; Skaffold: `{"v1":…,"v2":…}`. */
  readonly state: object;
};

/** State of a source in its upstream's own words, now or at a moment. Throws TapedeckError. */
export function stateApi(query: QueryClient): (context: CallContext) => Promise<StateAnswer> {
  return async (context) => {
    const source = await resolveSource(query, context);
    const ask = (collection: string, at: string, session: string) =>
      query.readState({
        workspace: context.workspace,
        source: source.source,
        session,
        at,
        min_position: context.minPosition ?? "",
        collection,
      });
    const { collections, toJson } = statesOf[source.upstream as UpstreamName];
    const first = await ask(collections[0], context.at ?? "", context.session ?? "");
    // The others as of the first one's position, so that the answer is one moment, and of its session: Vagrant's jobs
    // are those of all sessions where none is named.
    const { position, session } = first.head;
    const rest = await Promise.all(collections.slice(1).map((collection) => ask(collection, position, session)));
    return {
      source: source.source,
      session: first.head.session === "" ? null : first.head.session,
      sessionEnded: first.head.session_ended,
      position: first.head.position,
      at: context.at ?? null,
      upstream: source.upstream,
      state: toJson([first, ...rest].map(({ rows }) => rows.map(({ bytes }) => bytes))),
    };
  };
}

type StateOf = {
  readonly collections: readonly [string, ...string[]];
  /** From the messages of each collection. */
  readonly toJson: (collections: readonly (readonly Uint8Array[])[]) => object;
};

/** What query keeps of an upstream's state, and how it looks as JSON. */
const statesOf: Record<UpstreamName, StateOf> = {
  skaffold: {
    collections: ["skaffold.v1", "skaffold.v2"],
    toJson: ([[v1 = new Uint8Array()] = [], [v2 = new Uint8Array()] = []]) => ({
      v1: toGatewayJson(messageType(stateMessageTypes.v1), v1),
      v2: toGatewayJson(messageType(stateMessageTypes.v2), v2),
    }),
  },
  // As rkt's own clients know it: original field names, what is zero left out. Manifests can be had through its API.
  rkt: {
    collections: ["rkt.info", "rkt.pods", "rkt.images"],
    toJson: ([[info] = [undefined], pods = [], images = []]) => ({
      info: info === undefined ? null : rktJson("v1alpha.GetInfoResponse", info).info,
      pods: pods.map((pod) => rktJson("v1alpha.Pod", pod)),
      images: images.map((image) => rktJson("v1alpha.Image", image)),
    }),
  },
  vagrant: {
    collections: [
      "vagrant.version",
      "vagrant.targets",
      "vagrant.projects",
      "vagrant.bases",
      "vagrant.boxes",
      "vagrant.runners",
      "vagrant.jobs",
    ],
    toJson: vagrantState,
  },
};

function rktJson(type: string, bytes: Uint8Array): JsonObject {
  const desc = messageType(type);
  const { manifest: _, ...json } = toJson(desc, fromBinary(desc, bytes), { useProtoFieldName: true }) as JsonObject;
  return json;
}
