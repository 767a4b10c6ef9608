import type { JsonObject } from "@bufbuild/protobuf";
import { type ControlCall, ControlReply } from "@tapedeck/proto/tapedeck/v1/recorder";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { sourceName } from "@tapedeck/shared/source";
import type { Audit } from "../../../audit/audit-log.ts";
import type { CallContext } from "../../../call-context.ts";
import type { ControlClient } from "../../../control-client.ts";
import type { RefusedCall } from "../../../limits/refused-calls.ts";
import type { CollectionName } from "../../read-collection.ts";
import { largeAnswers, sourceHarness } from "../../testing/source-harness.ts";
import { vagrantApi } from "../vagrant-api.ts";
import { requestOf } from "./sample.ts";

export const shop = sourceName({ workspace: "default", developer: "alice", project: "shop", upstream: "vagrant" });

export type { Fields } from "../../testing/source-harness.ts";

export type Harness = Awaited<ReturnType<typeof vagrantHarness>>;

/** Vagrant's API on a real log, with stand-ins for query and for the upstream that give the answers of a test. */
export async function vagrantHarness() {
  const on = await sourceHarness(shop);
  const sent: ControlCall[] = [];
  const refusals: RefusedCall[] = [];
  const audited: Parameters<Audit>[0][] = [];

  let answer: ControlClient["call"] = async () => ControlReply.create();
  const control: ControlClient = {
    call(source, call) {
      sent.push(call);
      return answer(source, call);
    },
  };

  const refused = (refusal: RefusedCall) => refusals.push(refusal);
  const streams = { open: () => Promise.reject(new TapedeckError("upstream_away", "nothing is connected")) };
  const api = vagrantApi({
    ...on.deps,
    control,
    streams,
    largeAnswers,
    refused,
    audit: (entry) => audited.push(entry),
  });
  const unaries = new Map(Object.entries(api.unary));
  async function ask(rpc: string, request: Uint8Array | JsonObject = {}, more: Partial<CallContext> = {}) {
    const name = rpc.replace(/^_?./, (first) => first.slice(-1).toLowerCase());
    const bytes = request instanceof Uint8Array ? request : requestOf(rpc, request);
    const answer = await unaries.get(name)?.(bytes, on.context(more));
    if (answer === undefined) throw new Error(`no unary method ${name}`);
    return answer;
  }
  return {
    ...on,
    api,
    /** Bytes of the answer, by the method's name on the wire; the request as bytes, or as JSON with proto names. */
    ask,
    async call(rpc: string, request: Uint8Array | JsonObject = {}, more: Partial<CallContext> = {}): Promise<Buffer> {
      return Buffer.from((await ask(rpc, request, more)).bytes);
    },
    /** What has gone to the upstream. */
    sent,
    refusals,
    audited,
    /** What query answers for a collection from here on, by key. */
    hold: (collection: CollectionName<"vagrant">, items: Readonly<Record<string, Uint8Array>>) =>
      on.hold(`vagrant.${collection}`, items),
    /** What the upstream answers from here on. */
    answers: (as: (call: ControlCall) => Partial<ControlReply>) => {
      answer = async (_, call) => ControlReply.fromPartial(as(call));
    },
  };
}
