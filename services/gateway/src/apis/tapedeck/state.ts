import { toGatewayJson } from "@tapedeck/shared/descriptors/grpc-gateway-json";
import { messageType } from "@tapedeck/shared/descriptors/registry";
import type { UpstreamName } from "@tapedeck/shared/upstreams";
import type { CallContext } from "../../call-context.ts";
import type { QueryClient } from "../../query-client.ts";
import { resolveSource } from "../resolve-source.ts";
import { stateMessageTypes } from "../skaffold/methods.ts";

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

/** State of a source in its upstream's own words, now or at a moment. */
export function stateApi(query: QueryClient) {
  return async (context: CallContext): Promise<StateAnswer> => {
    const source = await resolveSource(query, context);
    const ask = (collection: string, at: string) =>
      query.readState({
        workspace: context.workspace,
        source: source.source,
        session: context.session ?? "",
        at,
        min_position: context.minPosition ?? "",
        collection,
      });
    const [firstCollection = "", ...others] = collections[source.upstream as UpstreamName];
    const first = await ask(firstCollection, context.at ?? "");
    // The other halves as of the first one's position, so that the answer is one moment.
    const rest = await Promise.all(others.map((collection) => ask(collection, first.head.position)));
    const bytes = [first, ...rest].map(({ rows }) => rows[0]?.bytes ?? new Uint8Array());
    return {
      source: source.source,
      session: first.head.session === "" ? null : first.head.session,
      sessionEnded: first.head.session_ended,
      position: first.head.position,
      at: context.at ?? null,
      upstream: source.upstream,
      state: stateJson[source.upstream as UpstreamName](bytes),
    };
  };
}

const collections: Record<UpstreamName, readonly string[]> = { skaffold: ["skaffold.v1", "skaffold.v2"] };

const stateJson: Record<UpstreamName, (bytes: readonly Uint8Array[]) => object> = {
  skaffold: ([v1 = new Uint8Array(), v2 = new Uint8Array()]) => ({
    v1: toGatewayJson(messageType(stateMessageTypes.v1), v1),
    v2: toGatewayJson(messageType(stateMessageTypes.v2), v2),
  }),
};
