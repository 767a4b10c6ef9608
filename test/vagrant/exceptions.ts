import { status } from "@grpc/grpc-js";

/** Why an answer differs from the recorded one, and how. */
export type Exception = { readonly why: string; readonly answer: object };

/** By the number of the row, which the two samples have in common. All others are answered exactly as recorded. */
export const exceptions: Readonly<Record<number, Exception>> = {
  6: {
    why: "nothing lists runners: one is known when a job names it",
    answer: { code: status.NOT_FOUND, message: "failed to locate runner (record not found)" },
  },
  9: {
    why: "the real text has a dump of the request with addresses of memory in it",
    answer: { code: status.NOT_FOUND, message: "failed to locate project (record not found)" },
  },
};

/**
 * Answers that contain jobs, whose fields are compared in the order of their definition: the server recorded here
 * writes a job's fields in another order than the real one, and bytes are passed on as they come. (They are compared
 * with its own bytes unchanged.)
 */
export const reordered: ReadonlySet<string> = new Set(["_ListJobs", "GetJob"]);
