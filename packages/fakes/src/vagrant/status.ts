import type { status } from "@grpc/grpc-js";

/** An answer other than OK. */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly code: status;

  constructor(code: status, details: string) {
    super(details);
    this.code = code;
  }
}

/** What ends the process of the real server; nobody gets an answer any more. */
export class Panic extends Error {
  override readonly name = "Panic";
}
