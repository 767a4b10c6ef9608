import { fileURLToPath } from "node:url";

const folderOf = (upstream: string) => fileURLToPath(new URL(`../recordings/${upstream}`, import.meta.url));

/** Folders of what the real upstreams said. Each has a README that says what stands in it. */
export const recordings = {
  skaffold: folderOf("skaffold"),
  rkt: folderOf("rkt"),
  vagrant: folderOf("vagrant"),
};
