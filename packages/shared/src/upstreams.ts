/** The upstreams that Tapedeck knows: the only place in the middle that names them. */
export const upstreamNames = ["skaffold", "rkt", "vagrant"] as const;

export type UpstreamName = (typeof upstreamNames)[number];

export function isUpstreamName(name: string): name is UpstreamName {
  return (upstreamNames as readonly string[]).includes(name);
}
