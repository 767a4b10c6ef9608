export type ImportOptions = {
  readonly url?: string;
  readonly developer?: string;
  readonly project?: string;
  readonly label?: Readonly<Record<string, string>>;
  readonly redact: "on" | "off";
  readonly json?: boolean;
};
