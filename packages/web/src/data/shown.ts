import { signal } from "@preact/signals";
import type { Now } from "@tapedeck/client/lanes/now";

/** What Now shows, and the header of every view counts; undefined until it was read. */
export const now = signal<Now | undefined>(undefined);
/** Why it is not read any more. */
export const nowError = signal<string | undefined>(undefined);
/** The text in the header's search field. */
export const search = signal("");
