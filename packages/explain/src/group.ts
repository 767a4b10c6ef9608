/** The key under which failures of one kind are counted: a cause without what differs from run to run. */
export function causeGroup(reason: string, cause: string): string {
  return `${reason}: ${cause.replace(/\d+/g, "#").trim()}`;
}
