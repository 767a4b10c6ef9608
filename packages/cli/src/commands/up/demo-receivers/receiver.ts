/** A receiver of this machine, to which the demo delivers what it records. */
export type DemoReceiver = AsyncDisposable & {
  readonly name: string;
  /** A sink as the settings have it. */
  readonly sink: Readonly<Record<string, unknown>>;
  /** "host:port". */
  readonly host: string;
};

export type StartReceiver = (printLine: (line: string) => void) => Promise<DemoReceiver>;
