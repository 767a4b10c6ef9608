/** What went wrong with a server on this machine and what to do about it, in one sentence made for people. */
export class LocalServerError extends Error {
  override readonly name = "LocalServerError";
}
