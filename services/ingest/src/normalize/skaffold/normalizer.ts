import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { Timestamp } from "@tapedeck/proto/google/protobuf/timestamp";
import { maskedApart } from "../../secrets/ahead/masked-apart.ts";
import { momentFrom } from "../facts.ts";
import type { ChannelReading, Moment, UpstreamReading } from "../normalizer.ts";
import { controlSteps } from "./control-steps.ts";
import { describedDiffers } from "./described.ts";
import { frameReader } from "./frame-reader.ts";
import { injects } from "./injects.ts";
import { logs } from "./logs.ts";
import { mask, maskAfter, pieceOf } from "./mask.ts";
import { v1 } from "./v1.ts";
import { v2 } from "./v2.ts";

const channels: readonly ChannelReading[] = [
  { name: "v1", messageType: "proto.LogEntry", replays: true, momentOf, reader: () => frameReader(v1) },
  { name: "v2", messageType: "proto.v2.Event", replays: true, momentOf, reader: () => frameReader(v2) },
  // Replays only the current loop (its log is emptied whenever a dev loop starts), so what it lacks proves nothing.
  { name: "logs", messageType: "proto.v2.Event", replays: false, momentOf, reader: () => frameReader(logs) },
];

/** What Skaffold's frames mean. */
export const reading: UpstreamReading = {
  channels,
  mask,
  maskAfter,
  pieceOf,
  apart: maskedApart("skaffold"),
  describedDiffers,
  controlSteps,
  injects,
};

/** Field 1 of LogEntry and of v2's Event; read alone, because frames may be large and are sorted by it. */
function momentOf(bytes: Uint8Array): Moment | undefined {
  const reader = new BinaryReader(bytes);
  let timestamp: Timestamp | undefined;
  try {
    while (reader.pos < reader.len) {
      const [field, wireType] = reader.tag();
      if (field === 1 && wireType === WireType.LengthDelimited) timestamp = Timestamp.decode(reader.bytes());
      else reader.skip(wireType);
    }
    return momentFrom(timestamp);
  } catch {
    return undefined;
  }
}
