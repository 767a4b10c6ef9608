import { fieldsOf, numberIn } from "@tapedeck/shared/descriptors/message-fields";
import { isFinished as isOver } from "./job-facts.ts";

/** A job of a list; the bytes are a view of the list's own, encoded as the server encoded them. */
export type JobEntry = { readonly id: string; readonly bytes: Buffer };

/** The jobs of an encoded ListJobsResponse, in its order. Only their ids are decoded. Throws for other bytes. */
export function jobsIn(list: Uint8Array): readonly JobEntry[] {
  return fieldsOf(list, 1).map((bytes) => ({ id: fieldsOf(bytes, 1).at(-1)?.toString("utf8") ?? "", bytes }));
}

/** The content of a GetJobStreamResponse; its parts are as the server encoded them. */
export type StreamMessage =
  | { readonly what: "open" | "complete" | "error" | "unknown" }
  /** `isFirst`: the stream's first state. `isFinished`: the job is over by it. */
  | {
      readonly what: "state";
      readonly job: Buffer | undefined;
      readonly isFirst: boolean;
      readonly isFinished: boolean;
    }
  | { readonly what: "terminal"; readonly events: readonly Buffer[]; readonly isBuffered: boolean };

/** Throws for bytes that are no message. */
export function streamMessageIn(response: Uint8Array): StreamMessage {
  const terminal = messageIn(response, 3);
  if (terminal) return { what: "terminal", events: fieldsOf(terminal, 1), isBuffered: numberIn(terminal, 2) !== 0 };
  const state = messageIn(response, 2);
  if (state) {
    const [isFirst, isFinished] = [numberIn(state, 1) === 0, isOver({ state: numberIn(state, 2) })];
    return { what: "state", job: messageIn(state, 3), isFirst, isFinished };
  }
  const rest = [[1, "open"] as const, [5, "complete"] as const, [4, "error"] as const];
  return { what: rest.find(([field]) => messageIn(response, field))?.[1] ?? "unknown" };
}

/** Several occurrences of a field are parts of one message. */
function messageIn(message: Uint8Array, field: number): Buffer | undefined {
  const [first, ...more] = fieldsOf(message, field);
  return first === undefined || more.length === 0 ? first : Buffer.concat([first, ...more]);
}
