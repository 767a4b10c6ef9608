/** The calls that go to the Vagrant server itself, by VagrantService's names. */
export type WriteName =
  | "queueJob"
  | "cancelJob"
  | "validateJob"
  | "pruneOldJobs"
  | "upsertBasis"
  | "upsertProject"
  | "upsertTarget"
  | "deleteTarget"
  | "upsertBox"
  | "deleteBox";
