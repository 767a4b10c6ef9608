/** Without the workspace, which is the same for all that one sees. */
export function shortSource(source: string): string {
  return source.split("/").slice(1).join("/");
}

/** The short form: "alice/shop", and "dana/shop/vagrant" where the upstream is not the usual one. */
export function spokenSource(source: string): string {
  const [developer, project, upstream] = shortSource(source).split("/");
  // A rkt host is <host>/host/rkt: nothing else is called so.
  const isPlain = upstream === "skaffold" || (upstream === "rkt" && project === "host");
  return isPlain ? `${developer}/${project}` : shortSource(source);
}
