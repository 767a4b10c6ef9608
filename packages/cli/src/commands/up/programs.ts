import { fileURLToPath } from "node:url";
import { installation } from "@tapedeck/shared/installation";
import type { UpstreamName } from "@tapedeck/shared/upstreams";

const isCheckout = installation === "checkout";

/** The file that runs a service, or one of the demo's stand-ins, `fakes/<upstream>`. */
export function programPath(name: string): string {
  if (isCheckout) return fileURLToPath(import.meta.resolve(`@tapedeck/${name}/main`));
  return fileURLToPath(new URL(`./${name.replace("/", "-")}.js`, import.meta.url));
}

/** Where a recording of the demo is: a folder, of Vagrant a file. */
export function recordingPath(upstream: UpstreamName, recording: string): string {
  const folder = isCheckout ? "../../../../fakes/recordings" : "./recordings";
  return fileURLToPath(new URL(`${folder}/${upstream}/${recording}`, import.meta.url));
}
