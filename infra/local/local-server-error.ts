/** An error of a server on this machine, with what to do about it, in one sentence for people. */
export class LocalServerError extends Error {
  override readonly name = "LocalServerError";
}
