export type Colour = "green" | "red" | "yellow" | "cyan" | "dim" | "reset";

/** The colour of a status of Skaffold, a state of rkt or of a machine, a verb of an event, or a word of our own for how a source is. */
export function statusColour(status: string): Colour {
  switch (status.toLowerCase()) {
    case "complete":
    case "succeeded":
    case "ready":
    case "recording":
    case "cached":
    case "accepted":
      return "green";
    case "failed":
    case "lost":
    case "rejected":
    case "unreadable":
    case "aborted prepare":
    case "prepare_aborted":
    case "gap":
      return "red";
    case "canceled":
    case "cancel_requested":
    case "requeued":
    case "waiting":
      return "yellow";
    case "in progress":
    case "started":
    case "running":
    case "preparing":
    case "pending":
    case "queued":
    case "assigned":
      return "cyan";
    case "not started":
    case "not created":
    case "powered off":
    case "garbage":
    case "deleting":
      return "dim";
    default:
      return "reset";
  }
}
