import type { UpstreamName } from "@tapedeck/shared/upstreams";

export type RecordOptions = {
  readonly url?: string;
  readonly upstream?: UpstreamName;
  readonly address?: string;
  readonly developer?: string;
  readonly project?: string;
  readonly label?: Readonly<Record<string, string>>;
  readonly redact: "on" | "off";
  readonly set?: Readonly<Record<string, string>>;
  readonly spill?: string;
  /** A text is an address: what waits for it is delivered to `url`. */
  readonly waiting?: true | string;
};
