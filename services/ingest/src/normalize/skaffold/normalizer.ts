import { momentOf } from "@tapedeck/tap/skaffold/frame-moment";
import { threadMasks } from "../../secrets/ahead/masked-apart.ts";
import type { ChannelNormalizer, Normalizer } from "../normalizer.ts";
import { controlSteps } from "./control-steps.ts";
import { frameReader } from "./frame-reader.ts";
import { injects } from "./injects.ts";
import { logs } from "./logs.ts";
import { mask, maskAfter, pieceOf } from "./mask.ts";
import { stateDiffers } from "./state-diff.ts";
import { v1 } from "./v1.ts";
import { v2 } from "./v2.ts";

const channels: readonly ChannelNormalizer[] = [
  { name: "v1", messageType: "proto.LogEntry", replays: true, momentOf, reader: () => frameReader(v1) },
  { name: "v2", messageType: "proto.v2.Event", replays: true, momentOf, reader: () => frameReader(v2) },
  // Replays only the current loop (its log is emptied whenever a dev loop starts), so what it lacks proves nothing.
  { name: "logs", messageType: "proto.v2.Event", replays: false, momentOf, reader: () => frameReader(logs) },
];

/** What Skaffold's frames mean. */
export const normalizer: Normalizer = {
  channels,
  mask,
  maskAfter,
  pieceOf,
  maskInThread: threadMasks("skaffold"),
  stateDiffers: stateDiffers,
  controlSteps,
  injects,
};
