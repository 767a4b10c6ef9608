/** An upstream's own refusal, with its own code and text; not one of Tapedeck's errors. */
export class UpstreamError extends Error {
  override name = "UpstreamError";
  /** gRPC status code. */
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}
