import { status } from "@grpc/grpc-js";

/** Why a call is answered otherwise than it was recorded, and how. */
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
 * Answers with jobs in them, whose fields are compared in the order of their definition: the server that is recorded here
 * writes a job's fields in another order than the real one, and bytes are passed on as they come. (They are compared with
 * its own as they are.)
 */
export const reordered: ReadonlySet<string> = new Set(["_ListJobs", "GetJob"]);
