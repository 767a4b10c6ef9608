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

/** An error that ends the process of the real server, so that no call is answered any more. */
export class Panic extends Error {
  override readonly name = "Panic";
}
