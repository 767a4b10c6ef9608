import type { Look } from "@tapedeck/proto/tapedeck/v1/look";
import type { UpstreamName } from "@tapedeck/shared/upstreams";
import type { Masked } from "../secrets/mask-bytes.ts";
import type { MaskedFrame } from "../secrets/pieces.ts";
import type { ObservedEntry } from "./inventory/observing.ts";
import * as rkt from "./rkt/mask.ts";
import { entriesOf as entriesOfRkt } from "./rkt/masked-entries.ts";
import * as skaffold from "./skaffold/mask.ts";
import * as vagrant from "./vagrant/mask.ts";
import { entriesOf as entriesOfVagrant } from "./vagrant/masked-entries.ts";

/** How an upstream's messages are masked; pure, so that it can be done in any thread. */
export type Masks = {
  /** `name`: of the channel of a frame, or of the message of an entry of a look. */
  readonly mask: (name: string, bytes: Uint8Array) => MaskedFrame;
  readonly maskAfter?: (channel: string, bytes: Uint8Array, tail: string) => Masked & { readonly text: string };
  /** What a watcher masks of a look, most often. Throws for looks that can't be read. */
  readonly entriesOf?: (channel: string, look: Look) => readonly ObservedEntry[];
};

export const masks: Readonly<Record<UpstreamName, Masks>> = {
  skaffold: { mask: skaffold.mask, maskAfter: skaffold.maskAfter },
  vagrant: { mask: vagrant.mask, entriesOf: entriesOfVagrant },
  rkt: { mask: rkt.mask, entriesOf: entriesOfRkt },
};
