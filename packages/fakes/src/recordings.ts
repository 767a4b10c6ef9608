import { fileURLToPath } from "node:url";

const folderOf = (upstream: string) => fileURLToPath(new URL(`../recordings/${upstream}`, import.meta.url));

/** Folders with recordings of the real upstreams. Each has a README that describes its contents. */
export const recordings = {
  skaffold: folderOf("skaffold"),
  rkt: folderOf("rkt"),
  vagrant: folderOf("vagrant"),
};
