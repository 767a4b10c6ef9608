/** The upstreams that Tapedeck knows. With one more name every registry of theirs stops compiling. */
export const upstreamNames = ["skaffold", "rkt", "vagrant"] as const;

/** The name of an upstream. */
export type UpstreamName = (typeof upstreamNames)[number];

/** Whether this version knows the upstream. */
export function isUpstreamName(name: string): name is UpstreamName {
  return (upstreamNames as readonly string[]).includes(name);
}
