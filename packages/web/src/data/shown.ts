import { signal } from "@preact/signals";
import type { Now } from "@tapedeck/client/lanes/now";

/** What Now shows, which the header counts; undefined until it was read. */
export const now = signal<Now | undefined>(undefined);
/** What is typed into the search of the header. */
export const search = signal("");
