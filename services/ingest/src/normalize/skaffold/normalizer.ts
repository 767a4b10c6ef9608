import { timestampOf } from "@tapedeck/tap/skaffold/frame-timestamp";
import { threadMasks } from "../mask-thread/thread-masks.ts";
import type { ChannelNormalizer, Normalizer } from "../normalizer.ts";
import { controlSteps } from "./control-steps.ts";
import { frameReader } from "./frame-reader.ts";
import { injects } from "./injects.ts";
import { logs } from "./logs.ts";
import { mask, maskAfter, pieceOf } from "./mask.ts";
import { stateDiffers } from "./state-diff.ts";
import { v1, v1Alone } from "./v1.ts";
import { v2 } from "./v2.ts";
import { v2AloneReader } from "./v2-alone.ts";

const channels: readonly ChannelNormalizer[] = [
  {
    name: "v1",
    messageType: "proto.LogEntry",
    replays: true,
    timestampOf,
    reader: () => frameReader(v1),
    without: { channel: "v2", reader: () => frameReader(v1Alone) },
  },
  {
    name: "v2",
    messageType: "proto.v2.Event",
    replays: true,
    timestampOf,
    reader: () => frameReader(v2),
    without: { channel: "v1", reader: v2AloneReader },
  },
  // It replays only the current loop (its log is emptied whenever a dev loop starts), so a missing frame proves nothing.
  { name: "logs", messageType: "proto.v2.Event", replays: false, timestampOf, reader: () => frameReader(logs) },
];

/** Skaffold streams frames of its own; each channel has a reader. */
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
