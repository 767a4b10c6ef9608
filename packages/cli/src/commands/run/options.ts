import type { Find, RecordableUpstream } from "./recordable.ts";

export type RunOptions = {
  readonly url?: string;
  readonly upstream?: RecordableUpstream;
  readonly find?: Find;
  readonly developer?: string;
  readonly project?: string;
  readonly label?: Readonly<Record<string, string>>;
  readonly redact: "on" | "off";
  readonly spill?: string;
  readonly notify?: boolean;
};
