/** "1 event", "2 events". */
export function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

/** "35314 events in 8745 messages of the log": a message holds one event or several. */
export function inMessages({ events, messages }: { readonly events: number; readonly messages: number }): string {
  return `${counted(events, "event")} in ${counted(messages, "message")} of the log`;
}
