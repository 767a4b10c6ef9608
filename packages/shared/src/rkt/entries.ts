import { fieldsOf, holding } from "../descriptors/message-fields.ts";

/** A pod or an image of an answer: `bytes` are a view of the answer's own, encoded as rkt encoded them. */
export type Entry = { readonly id: string; readonly bytes: Buffer };

/**
 * The pods of an encoded ListPodsResponse (or the one of an InspectPodResponse), in its order. Decodes only
 * their ids. Undefined if the bytes are not such a message; an entry is checked only as deep as its own fields.
 */
export function podEntries(answer: Uint8Array): readonly Entry[] | undefined {
  return entries(answer, 1);
}

/** The images of an encoded ListImagesResponse (or the one of an InspectImageResponse); otherwise like podEntries. */
export function imageEntries(answer: Uint8Array): readonly Entry[] | undefined {
  return entries(answer, 2);
}

/** The inverse of podEntries and imageEntries: a ListPodsResponse or ListImagesResponse of these pods or images. */
export function listOf(entries: readonly Uint8Array[]): Uint8Array {
  return holding(entriesField, entries);
}

/** `pods`, `images`, `pod` and `image` of the four answers. */
const entriesField = 1;

function entries(answer: Uint8Array, idField: number): readonly Entry[] | undefined {
  try {
    return fieldsOf(answer, entriesField).map((bytes) => {
      const id = fieldsOf(bytes, idField).at(-1)?.toString("utf8") ?? "";
      return { id, bytes };
    });
  } catch {
    return undefined;
  }
}
