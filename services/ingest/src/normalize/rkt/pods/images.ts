import { Image } from "@tapedeck/proto/rkt/v1alpha/rkt";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { imageEntries } from "@tapedeck/shared/rkt/entries";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { validTimestamp } from "@tapedeck/shared/time/timestamp";
import type { Fact } from "../../fact.ts";
import { name, summary } from "../../facts.ts";
import type { Sighting } from "../../inventory/inventory-rules.ts";
import type { HostRules } from "../host-rules.ts";

export type ImageMemory = {
  readonly image: Image;
  readonly redacted: number;
  /** The first list without it; undefined while it is present. */
  readonly removedAt?: Timestamp | undefined;
};

const entryType = "v1alpha.Image";

export const images: HostRules<ImageMemory> = {
  channel: "images",
  noun: "image",
  listType: "v1alpha.ListImagesResponse",
  answerType: "v1alpha.InspectImageResponse",
  entryType,
  entries: imageEntries,
  isConclusive: false,
  adopt: ({ bytes, redacted }) => ({ image: Image.decode(bytes), redacted }),
  judge(memory, sighting) {
    const { bytes, redacted, at } = sighting;
    const image = Image.decode(bytes);
    const isNew = memory === undefined || memory.removedAt !== undefined;
    if (!isNew && isSame(memory.image, image)) return { memory: { image, redacted }, outcomes: [] };
    const fact = isNew ? imported(image, memory?.removedAt, sighting) : imageFact("image.changed", image, "changed");
    const original = { type: entryType, bytes, redacted };
    return { memory: { image, redacted }, outcomes: [{ what: "frame", original, facts: [fact], observedAt: at }] };
  },
  isHeld: () => false,
  isPresent: ({ removedAt }) => removedAt === undefined,
  missed: (memory) => ({ memory, outcomes: [] }),
  lost(memory, { at, after }, inferred) {
    const fact = imageFact("image.removed", memory.image, "removed", { inferred, ...(after && { notBefore: after }) });
    return { memory: { ...memory, removedAt: at }, outcomes: [{ what: "frame", facts: [fact], observedAt: at }] };
  },
  // Any other text may also mean that the store can't be read.
  meaningOfError: ({ code, message }) => (code === 2 && message.startsWith("no such image ") ? "gone" : "nothing"),
  accepted: ({ image, redacted, removedAt }) =>
    removedAt === undefined ? { bytes: Image.encode(image).finish(), redacted } : undefined,
  mark: () => undefined,
  marked: () => undefined,
  described: (memory) => (memory.removedAt === undefined ? memory : undefined),
  known: (accepted) => ({ image: Image.decode(accepted), redacted: 0 }),
  subject: ({ detail }) => (detail?.$case === "image" ? detail.value.image : undefined),
  resume,
};

/** A service with a cached image answers the time of an import before the removal. */
function imported(image: Image, removedAt: Timestamp | undefined, { after }: Sighting): Fact {
  const time = validTimestamp({ seconds: image.import_timestamp, nanos: 0 });
  const isTrue = time && time.seconds > 0n && (removedAt === undefined || time.seconds > removedAt.seconds);
  return imageFact("image.imported", image, "imported", isTrue ? { occurredAt: time } : after && { notBefore: after });
}

function imageFact(
  kind: Fact["kind"],
  image: Image,
  what: string,
  more: Pick<Fact, "inferred" | "occurredAt" | "notBefore"> = {},
): Fact {
  const version = image.version === "" ? "" : `:${image.version}`;
  return {
    kind,
    subject: name(image.id),
    summary: summary(`image ${image.name || image.id}${version} ${what}`),
    ...more,
    detail: {
      $case: "image",
      value: { image: name(image.id), name: name(image.name), version: name(image.version), size: image.size },
    },
  };
}

function isSame(before: Image, now: Image): boolean {
  return Buffer.compare(Image.encode(before).finish(), Image.encode(now).finish()) === 0;
}

function resume(memory: ImageMemory | undefined, event: Event): ImageMemory | undefined {
  const { kind, original, observed_at, redacted } = event;
  if (original?.type === entryType && original.bytes.length > 0) {
    return { image: Image.decode(original.bytes), redacted };
  }
  return kind === "image.removed" && memory ? { ...memory, removedAt: observed_at } : memory;
}
