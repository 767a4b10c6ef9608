import type { Observation } from "@tapedeck/proto/tapedeck/v1/observation";
import type { UpstreamName } from "@tapedeck/shared/upstreams";
import type { MaskedBytes } from "../secrets/mask-bytes.ts";
import type { MaskedFrame } from "../secrets/pieces.ts";
import type { ObservedEntry } from "./inventory/observing.ts";
import * as rkt from "./rkt/mask.ts";
import { entriesOf as entriesOfRkt } from "./rkt/masked-entries.ts";
import * as skaffold from "./skaffold/mask.ts";
import * as vagrant from "./vagrant/mask.ts";
import { entriesOf as entriesOfVagrant } from "./vagrant/masked-entries.ts";

/** How an upstream's messages are masked. Pure, so that any thread can do it. */
export type Masks = {
  /** `name`: the channel of a frame, or the message type of an observation's entry. */
  readonly mask: (name: string, bytes: Uint8Array) => MaskedFrame;
  readonly maskAfter?: (channel: string, bytes: Uint8Array, tail: string) => MaskedBytes & { readonly text: string };
  /** The entries of an observation that a watcher masks, most often. Throws for one that can't be read. */
  readonly entriesOf?: (channel: string, observation: Observation) => readonly ObservedEntry[];
};

export const masks: Readonly<Record<UpstreamName, Masks>> = {
  skaffold: { mask: skaffold.mask, maskAfter: skaffold.maskAfter },
  vagrant: { mask: vagrant.mask, entriesOf: entriesOfVagrant },
  rkt: { mask: rkt.mask, entriesOf: entriesOfRkt },
};
