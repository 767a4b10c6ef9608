/** An error of a server on this machine, with what to do about it, in one sentence for people. */
export class LocalServerError extends Error {
  override readonly name: string = "LocalServerError";
}

/** Something else listens on the port of a server. */
export class PortTakenError extends LocalServerError {
  override readonly name = "PortTakenError";
  readonly port: number;

  constructor(server: string, host: string, port: number) {
    super(
      `port ${port} on ${host} is taken, so ${server} can't listen there: stop what uses it or choose another port for ${server}.`,
    );
    this.port = port;
  }
}
