/** Without the workspace, which is the same for all that one sees. */
export function shortSource(source: string): string {
  return source.split("/").slice(1).join("/");
}
