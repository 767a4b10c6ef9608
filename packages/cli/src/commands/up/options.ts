export type UpOptions = {
  readonly data: string;
  readonly config?: string;
  readonly skaffold?: string;
  readonly developer?: string;
  readonly project?: string;
  readonly vagrant?: string;
  readonly rkt?: string;
  readonly hostName?: string;
  readonly label?: Readonly<Record<string, string>>;
  readonly redact?: "on" | "off";
  /** false with --no-demo. */
  readonly demo?: boolean;
  /** Names of receivers that the demo delivers to. */
  readonly with?: readonly string[];
  readonly insecure?: boolean;
  readonly verbose?: boolean;
};
