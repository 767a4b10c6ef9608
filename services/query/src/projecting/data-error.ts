import { CheckpointMovedError } from "../db/checkpoint.ts";
import { StatementError } from "../db/pipeline.ts";

/**
 * SQLSTATE classes of what Postgres says about values: cardinality violation (21), data exception (22), integrity constraint
 * violation (23), check option violation (44), program limit exceeded (54, such as an index row that is too large), and what a
 * trigger raises (P0). All other classes are about the server, the connection, locks or the schema.
 */
const ofValues = /^(21|22|23|44|54|P0)/;

/** Postgres has no code for a value that is larger than it can hold in memory. */
const tooLarge = /^invalid memory alloc request size/;

/**
 * True when a transaction failed because of the values that it was to write, so that it would fail again: Postgres refused
 * them, or the code that makes the rows threw. False when a later attempt may succeed.
 */
export function isDataError(error: unknown): boolean {
  if (error instanceof CheckpointMovedError) return false;
  if (!(error instanceof StatementError)) return true;
  return ofValues.test(error.code ?? "") || (error.code === "XX000" && tooLarge.test(error.message));
}
